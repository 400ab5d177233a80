"""Threads that divide the rows of a batch: the gradients of one thread, and the same bits every time."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from toy import prepared, trainer_of
from toy_language import trainer_for
from trainings import batches_of, content, gradients, interrupt_after, scarce

from heed.nn.state_io import state_tensors
from heed.tasks.task import Loss
from heed.training import gradients as module
from heed.training.checkpoints import newest_checkpoint
from heed.training.gradients import split
from heed.training.trainer import Trainer


@pytest.fixture(autouse=True)
def small_parts(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Divide the small batches of these tests; restore the number of threads."""
    monkeypatch.setattr(module, "LEAST_POSITIONS", 1)
    yield
    torch.set_num_threads(1)


def threads_of_losses(trainer: Trainer) -> list[tuple[bool, int]]:
    """Of each loss that is computed from now on: whether in the main thread, and the threads of its products."""
    loss, seen = trainer.task.loss, []

    def recorded(*arguments: Any) -> Loss:
        seen.append((threading.current_thread() is threading.main_thread(), torch.get_num_threads()))
        return loss(*arguments)

    trainer.task.loss = recorded  # type: ignore[method-assign]
    return seen


@pytest.mark.parametrize("threads", [2, 3])
@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_the_gradients_are_those_of_one_thread(tmp_path: Path, precision: str, threads: int) -> None:
    keys: dict[str, Any] = {"training__precision": precision, "training__accumulate": 2, "model__dropout": 0.3}
    alone = trainer_of(prepared(tmp_path, "alone", **keys))
    batches = batches_of(alone, 2)
    expected = gradients(alone, batches)
    divided = trainer_of(prepared(tmp_path, "divided", **keys), threads)
    seen = threads_of_losses(divided)
    found = gradients(divided, batches)
    assert sorted(seen) == [(False, 1)] * (2 * threads - 2) + [(True, 1)] * 2
    assert torch.get_num_threads() == threads
    assert found.keys() == expected.keys()
    for name, gradient in expected.items():
        assert found[name].dtype == torch.float32
        tolerance = 1e-4 if precision == "float32" else 0.02
        difference = (found[name] - gradient).norm() / gradient.norm().clamp(min=1e-9)
        assert difference < tolerance, name


def test_threads_that_are_left_divide_the_products(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trainer = trainer_of(prepared(tmp_path), threads=4)
    [batch] = batches_of(trainer, 1)
    seen = threads_of_losses(trainer)
    trainer.train_step([batch])
    assert [inner for _, inner in seen] == [1] * 4
    seen.clear()
    monkeypatch.setattr(module, "LEAST_POSITIONS", batch.num_positions // 2)
    trainer.train_step([batch])
    assert sorted(seen) == [(False, 2), (True, 2)]
    seen.clear()
    monkeypatch.setattr(module, "LEAST_POSITIONS", batch.num_positions)
    trainer.train_step([batch])
    assert seen == [(True, 4)]


def test_many_threads_compute_few_parts(tmp_path: Path) -> None:
    trainer = trainer_of(prepared(tmp_path), threads=2 * module.MOST_PARTS)
    seen = threads_of_losses(trainer)
    trainer.train_step(batches_of(trainer, 1))
    assert [inner for _, inner in seen] == [2] * module.MOST_PARTS


def test_the_loss_is_that_of_one_thread(tmp_path: Path) -> None:
    losses = []
    for threads in (1, 2):
        trainer = trainer_of(prepared(tmp_path, str(threads)), threads)
        trainer.train_step(batches_of(trainer, 1))
        losses.append(trainer.progress.window.values(0.0)["loss"])
    assert losses[0] == pytest.approx(losses[1], rel=1e-5)


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_a_training_with_threads_is_resumed_bit_for_bit(tmp_path: Path, precision: str) -> None:
    keys: dict[str, Any] = {"training__max_steps": 12, "training__save_every": 4, "training__precision": precision}
    straight = trainer_of(prepared(tmp_path, "straight", **keys), threads=2)
    straight.run()
    stopped = prepared(tmp_path, "stopped", **keys)
    trainer = trainer_of(stopped, threads=2)
    interrupt_after(trainer, 7, signal.SIGTERM)
    trainer.run()
    trainer = trainer_of(stopped, threads=2)
    trainer.restore(newest_checkpoint(tmp_path / "stopped" / "checkpoints"))
    assert trainer.progress.step == 7
    trainer.run()
    assert content(tmp_path / "stopped") == content(tmp_path / "straight")


def test_the_state_of_streams_is_that_of_one_thread(tmp_path: Path) -> None:
    states = []
    for threads in (1, 2):
        trainer = trainer_for(tmp_path, str(threads), threads=threads)
        for batch in batches_of(trainer, 3):
            trainer.train_step([batch])
        assert trainer.carried is not None
        states.append(state_tensors(trainer.carried))
    assert states[0].keys() == states[1].keys()
    for name, tensor in states[0].items():
        torch.testing.assert_close(states[1][name], tensor, rtol=1e-3, atol=1e-5)


def test_frozen_weights_get_no_gradient_in_any_thread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trainer = trainer_of(prepared(tmp_path), threads=2)
    names = {name for name in trainer.weights.master if name.startswith("head")}
    assert 0 < len(names) < len(trainer.weights.master)
    monkeypatch.setattr("heed.training.trainer.trained_names", lambda *arguments: names)
    assert gradients(trainer, batches_of(trainer, 1)).keys() == names


def test_parts_that_do_not_fit_into_memory_are_halved(tmp_path: Path) -> None:
    enough = trainer_of(prepared(tmp_path, "enough"))
    batches = batches_of(enough, 3)
    expected = gradients(enough, batches)
    little = trainer_of(prepared(tmp_path, "little"), threads=2)
    most = max(batch.num_positions for batch in batches) // 3
    tried = scarce(little, most)
    for name, gradient in gradients(little, batches).items():
        torch.testing.assert_close(gradient, expected[name], rtol=1e-4, atol=1e-7, msg=name)
    assert max(tried) > most


@pytest.mark.parametrize("where", ["MainThread", "heed-replica_0"])
def test_an_error_in_any_thread_ends_the_training(tmp_path: Path, where: str) -> None:
    trainer = trainer_of(prepared(tmp_path), threads=2)
    loss = trainer.task.loss

    def wrong(*arguments: Any) -> Loss:
        if threading.current_thread().name == where:
            raise RuntimeError("The size of tensor a (3) must match the size of tensor b (4)")
        return loss(*arguments)

    trainer.task.loss = wrong  # type: ignore[method-assign]
    with pytest.raises(RuntimeError, match="size of tensor"):
        trainer.train_step(batches_of(trainer, 1))
    assert torch.get_num_threads() == 2


def test_a_batch_is_divided_into_parts_that_are_worth_a_thread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    [batch] = batches_of(trainer_of(prepared(tmp_path)), 1)
    rows = len(batch.rows)
    assert rows > 4
    for number in (1, 2, 3, rows, 2 * rows):
        parts = list(split(batch, 0, number))
        sizes = [len(part.rows) for part in parts]
        assert len(parts) == min(number, rows)
        assert max(sizes) - min(sizes) <= 1
        assert torch.equal(torch.cat([part.rows for part in parts]), batch.rows)
    monkeypatch.setattr(module, "LEAST_POSITIONS", batch.num_positions // 2)
    assert len(list(split(batch, 0, 8))) == 2
    monkeypatch.setattr(module, "LEAST_POSITIONS", batch.num_positions)
    assert list(split(batch, 0, 8)) == [batch]
