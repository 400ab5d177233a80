"""Replayed losses: padding to recorded shapes changes no gradient. Here the recorded work is simply done again."""

from __future__ import annotations

import functools
import gc
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from toy import events, prepared, trainer_of, unchecked_shapes
from toy_language import language_run
from trainings import batches_of, gradients, scarce

from heed.data.batch import Shape
from heed.training.gradients import _add_gradients
from heed.training.replay import MOST_GRAPHS, Replayer, padded_shape
from heed.training.trainer import Trainer


class AgainRecorder:
    """Takes the place of a GPU's recorder; counts."""

    def __init__(self, error: Exception | None = None) -> None:
        self.error = error
        self.num_recorded = self.num_replayed = 0

    def record(self, work: Callable[[], None]) -> Callable[[], None]:
        work()
        if self.error:
            raise self.error
        self.num_recorded += 1

        def replay() -> None:
            self.num_replayed += 1
            work()

        return replay


def replaying(trainer: Trainer, error: Exception | None = None) -> AgainRecorder:
    """Let a trainer replay, as on a GPU."""
    recorder: Any = AgainRecorder(error)
    trainer.weights.fixed = True
    add = functools.partial(_add_gradients, trainer.task, trainer.model)
    trainer.gradients._replayer = Replayer(add, recorder, trainer.model)
    return recorder  # type: ignore[no-any-return]


sizes = st.integers(1, 5000)


def test_targets_are_not_padded_beyond_the_positions_of_a_model() -> None:
    assert padded_shape(Shape(9, 0, 100), 128).tgt == 112
    assert padded_shape(Shape(9, 0, 100), 100).tgt == 100


@given(sizes, st.integers(0, 300), sizes)
def test_padded_shapes_are_little_larger(rows: int, src: int, tgt: int) -> None:
    shape = Shape(rows, src, tgt)
    padded = padded_shape(shape)
    assert padded_shape(padded) == padded
    for size, rounded in zip(shape, padded, strict=True):
        assert size <= rounded <= size * 5 / 4
    assert padded.rows <= rows * 9 / 8


def test_there_are_few_padded_shapes() -> None:
    assert len({padded_shape(Shape(1, 0, length)).tgt for length in range(1, 257)}) == 28


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_the_gradients_are_those_of_the_batch(tmp_path: Path, precision: str) -> None:
    """The first time the batch itself is computed, then a padded one, then that is replayed."""
    keys: dict[str, Any] = {"training__precision": precision, "model__dropout": 0.3, "training__accumulate": 2}
    plain, trainer = (trainer_of(prepared(tmp_path, name, **keys)) for name in ("plain", "replayed"))
    recorder = replaying(trainer)
    batches = batches_of(plain, 2)
    for counts in [(0, 0), (2, 0), (2, 2)]:
        found, expected = gradients(trainer, batches), gradients(plain, batches)
        assert (recorder.num_recorded, recorder.num_replayed) == counts
        assert found.keys() == expected.keys()
        for name, gradient in expected.items():
            difference = (found[name] - gradient).norm() / gradient.norm().clamp(min=1e-6)
            assert difference < (1e-4 if precision == "float32" else 0.03), name


def test_the_gradients_of_a_language_model(tmp_path: Path) -> None:
    plain, trainer = (trainer_of(language_run(tmp_path, name, "gpt", train=False)) for name in ("plain", "replayed"))
    recorder = replaying(trainer)
    batches = batches_of(plain, 1)
    for _ in range(3):
        found, expected = gradients(trainer, batches), gradients(plain, batches)
        for name, gradient in expected.items():
            torch.testing.assert_close(found[name], gradient, rtol=1e-4, atol=1e-6)
    assert recorder.num_replayed == 1


@pytest.mark.parametrize(
    "error", [None, RuntimeError("not permitted when capturing"), torch.cuda.OutOfMemoryError("out of memory")]
)
def test_a_training_has_the_losses_of_one_without_replays(tmp_path: Path, error: Exception | None) -> None:
    keys: dict[str, Any] = {"training__max_steps": 30, "training__log_every": 1, "model__dropout": 0.3}
    with unchecked_shapes():
        trainer_of(prepared(tmp_path, "plain", **keys)).run()
        trainer = trainer_of(prepared(tmp_path, "replayed", **keys))
        recorder = replaying(trainer, error)
        trainer.run()
    assert (recorder.num_replayed > 10) == (error is None)
    is_given_up = trainer.gradients._replayer is None
    assert is_given_up == (type(error) is RuntimeError)  # without memory, only for the shapes that do not fit
    plain, replayed = (
        [event["loss"] for event in events(tmp_path / name) if event["event"] == "train"]
        for name in ("plain", "replayed")
    )
    assert replayed == pytest.approx(plain, rel=1e-3)


def test_replays_end_before_batches_are_split_where_memory_is_scarce(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plain, trainer = (trainer_of(prepared(tmp_path, name, model__dropout=0.3)) for name in ("plain", "scarce"))
    replaying(trainer)
    trainer.gradients.quiet = False
    [batch] = batches_of(plain, 1)
    tried = scarce(trainer, batch.num_positions - 1)
    found, expected = gradients(trainer, [batch]), gradients(plain, [batch])
    assert tried[:2] == [batch.num_positions] * 2 and max(tried[2:]) < batch.num_positions
    for name, gradient in expected.items():
        torch.testing.assert_close(found[name], gradient, rtol=1e-4, atol=1e-6)
    first, second = capsys.readouterr().err.strip().splitlines()
    assert "CUDA graphs can no longer be used for the updates, which take longer from now on: out of memory." in first
    assert "out of memory for a batch of" in second


def test_what_a_graph_reads_is_kept(tmp_path: Path) -> None:
    """A table of positions that has grown is another tensor, but a graph reads the old one."""
    trainer = trainer_of(prepared(tmp_path))
    replaying(trainer)
    [batch] = batches_of(trainer, 1)
    for _ in range(2):
        gradients(trainer, [batch])
    table = weakref.ref(trainer.model.embedding.positions)
    trainer.model.embedding._encodings(0, 300, None)
    gc.collect()
    assert table() is not None and trainer.model.embedding.positions is not table()


def test_the_number_of_graphs_is_limited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert MOST_GRAPHS > 100
    monkeypatch.setattr("heed.training.replay.MOST_GRAPHS", 1)
    trainer = trainer_of(prepared(tmp_path))
    recorder = replaying(trainer)
    short, *_, long = sorted(batches_of(trainer, 8), key=lambda batch: batch.tgt_in.shape[1])
    for batch in (short, long) * 3:
        gradients(trainer, [batch])
    assert (recorder.num_recorded, recorder.num_replayed) == (1, 1)
