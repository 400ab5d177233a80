"""Operations on a training: interrupting it, limiting its memory, comparing its files."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from heed.data.batch import Batch
from heed.tasks.task import Loss
from heed.training.checkpoints import list_checkpoints
from heed.training.trainer import Trainer


def interrupt_after(trainer: Trainer, step: int, number: signal.Signals) -> None:
    """Send this process a signal in the middle of an update."""
    update = trainer.train_step

    def interrupted(batches: Any) -> None:
        update(batches)
        if trainer.progress.step == step:
            signal.raise_signal(number)

    trainer.train_step = interrupted  # type: ignore[method-assign]


def content(folder: Path) -> dict[str, bytes]:
    """The model, and the tensors of the newest checkpoint."""
    newest = list_checkpoints(folder / "checkpoints")[-1]
    files = [folder / "model.safetensors", *sorted(newest.glob("*.safetensors"))]
    return {f"{path.parent.name}/{path.name}".removeprefix(folder.name): path.read_bytes() for path in files}


def batches_of(trainer: Trainer, number: int) -> list[Batch]:
    """The first batches of a training."""
    loader = trainer.task.loader(trainer.config.tokens_per_batch, trainer.seed).batches_from()
    found = [next(loader)[1] for _ in range(number)]
    loader.close()
    return found


def gradients(trainer: Trainer, batches: list[Batch]) -> dict[str, Tensor]:
    """The gradient that an update from these batches would use, before clipping."""
    kept: dict[str, Tensor] = {}

    def keep(step: int, batches: Any) -> bool:
        kept.update({name: p.grad.clone() for name, p in trainer.weights.master.items() if p.grad is not None})
        trainer.weights.clear_gradients()
        return True

    trainer._update = keep  # type: ignore[method-assign]
    trainer.train_step(batches)
    return kept


def scarce(trainer: Trainer, most: int) -> list[int]:
    """Raise an out-of-memory error for losses of more than `most` positions; returns the list of tried sizes."""
    loss = trainer.task.loss
    tried: list[int] = []

    def limited(model: Any, batch: Batch, *others: Any) -> Loss:
        tried.append(batch.num_positions)
        if batch.num_positions > most:
            raise torch.cuda.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 MiB.")
        return loss(model, batch, *others)

    trainer.task.loss = limited  # type: ignore[method-assign]
    return tried
