"""Trainings on a GPU: the losses of a CPU, resumed from a checkpoint, and batches that do not fit into its memory."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import pytest
import torch
from gpu import GPU, assert_all_close, needs_gpu
from toy import events, prepared, trainer_of, unchecked_shapes
from trainings import batches_of, gradients, interrupt_after

from heed.data.batch import Batch
from heed.run import Run
from heed.training.checkpoints import newest_checkpoint
from heed.training.trainer import Trainer

pytestmark = needs_gpu


def gpu_trainer(run: Run) -> Trainer:
    """A trainer for a prepared run, on the GPU."""
    return trainer_of(Run(run.folder, GPU))


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_an_update_has_the_gradient_of_a_cpu(tmp_path: Path, precision: str) -> None:
    """The first is computed as usual, the second is recorded, and the others are replayed."""
    keys: dict[str, Any] = {"training__precision": precision, "training__accumulate": 2, "model__dropout": 0.3}
    run = prepared(tmp_path, **keys)
    cpu, gpu = trainer_of(run), gpu_trainer(run)
    batches = batches_of(cpu, 2)
    replayer = gpu.gradients._replayer
    assert replayer is not None
    for number in range(4):
        found = gradients(gpu, [batch.to(GPU) for batch in batches])
        assert_all_close(found, gradients(cpu, batches), 1e-3 if precision == "float32" else 0.1)
        assert len(replayer._recorded) == (2 if number else 0)


@pytest.mark.parametrize("model", ["transformer", "rnn_attention", "encoder_decoder"])
def test_a_training_has_the_losses_of_a_cpu(tmp_path: Path, model: str) -> None:
    keys: dict[str, Any] = {"model__kind": model, "training__log_every": 1, "training__max_steps": 12}
    with unchecked_shapes():
        for name, trainer in (("cpu", trainer_of), ("gpu", gpu_trainer)):
            trainer(prepared(tmp_path, name, **keys)).run()
    cpu, gpu = (
        [event["loss"] for event in events(tmp_path / name) if event["event"] == "train"] for name in ("cpu", "gpu")
    )
    assert gpu == pytest.approx(cpu, rel=2e-3)


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
@pytest.mark.parametrize("optimizer", ["adam", "muon"])
def test_a_stopped_training_is_resumed(tmp_path: Path, precision: str, optimizer: str) -> None:
    """A resumed training has the losses of one that was not stopped, up to the order of sums."""
    keys: dict[str, Any] = {
        "training__max_steps": 12, "training__save_every": 4, "training__precision": precision,
        "training__optimizer": optimizer, "training__log_every": 1, "training__average": "ema",
    }  # fmt: skip
    with unchecked_shapes():
        gpu_trainer(prepared(tmp_path, "straight", **keys)).run()
        stopped = prepared(tmp_path, "stopped", **keys)
        trainer = gpu_trainer(stopped)
        interrupt_after(trainer, 7, signal.SIGTERM)
        trainer.run()
        trainer = gpu_trainer(stopped)
        trainer.restore(newest_checkpoint(tmp_path / "stopped" / "checkpoints"))
        assert trainer.progress.step == 7
        trainer.run()
    losses = [
        {event["step"]: event["loss"] for event in events(tmp_path / name) if event["event"] == "train"}
        for name in ("straight", "stopped")
    ]
    assert losses[1] == pytest.approx(losses[0], rel=1e-3 if precision == "float32" else 2e-2)


def test_a_training_may_move_from_a_cpu_to_a_gpu_and_back(tmp_path: Path) -> None:
    keys: dict[str, Any] = {"training__max_steps": 12, "training__log_every": 1}
    with unchecked_shapes():
        trainer_of(prepared(tmp_path, "straight", **keys)).run()
        moved = prepared(tmp_path, "moved", **keys)
        for number, make in enumerate((trainer_of, gpu_trainer, trainer_of)):
            trainer = make(moved)
            if number:
                trainer.restore(newest_checkpoint(tmp_path / "moved" / "checkpoints"))
            if number < 2:
                interrupt_after(trainer, 4 * number + 4, signal.SIGTERM)
            trainer.run()
    losses = [
        [event["loss"] for event in events(tmp_path / name) if event["event"] == "train"]
        for name in ("straight", "moved")
    ]
    assert losses[1] == pytest.approx(losses[0], rel=2e-3)


def test_a_longer_batch_does_not_change_what_is_replayed(tmp_path: Path) -> None:
    """It needs a larger table of positions, and the old one must remain for the graphs that read it."""
    run = prepared(tmp_path, model__dropout=0.3, data__max_tokens=600)
    cpu, gpu = trainer_of(run), gpu_trainer(run)
    [batch] = batches_of(cpu, 1)
    for number in range(4):
        found, expected = gradients(gpu, [batch.to(GPU)]), gradients(cpu, [batch])
        assert_all_close(found, expected, 1e-3)
        if number == 1:
            for trainer in (cpu, gpu):
                trainer.model.embedding._encodings(0, 500, None)
                trainer.model.encoder.embedding._encodings(0, 500, None)
            torch.full((1 << 22,), float("nan"), device=GPU)


def test_a_batch_that_does_not_fit_is_computed_in_parts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = prepared(tmp_path, model__dropout=0.3)
    whole, scarce = gpu_trainer(run), gpu_trainer(run)
    [batch] = batches_of(whole, 1)
    expected = gradients(whole, [batch.to(GPU)])
    scarce.gradients.quiet = False
    memory = torch.cuda.mem_get_info(GPU)[1]
    loss = scarce.task.loss

    def greedy(model: Any, part: Batch, *others: Any) -> Any:
        if part.num_positions > batch.num_positions // 3:
            torch.empty(2 * memory, dtype=torch.uint8, device=GPU)
        return loss(model, part, *others)

    scarce.task.loss = greedy  # type: ignore[method-assign]
    found = gradients(scarce, [batch.to(GPU)])
    for name, gradient in expected.items():
        torch.testing.assert_close(found[name], gradient, rtol=1e-3, atol=1e-5)
    assert "out of memory for a batch of" in capsys.readouterr().err
