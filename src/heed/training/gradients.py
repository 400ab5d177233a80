"""Gradient accumulation for one update.

Gradients are summed over the batches of all ranks. A batch that does not fit into memory is computed in parts. Where
rows are streams, each segment starts from the final state of the previous one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import torch

from heed.core.errors import HeedError
from heed.core.progress import warn
from heed.data.batch import TrainingBatch
from heed.nn.contract import State
from heed.nn.device import is_out_of_memory
from heed.nn.dropout_keys import DropoutKeys
from heed.tasks.task import Task
from heed.training.config import TrainingConfig
from heed.training.progress import Progress
from heed.training.ranks import Ranks
from heed.training.weights import Weights


@dataclass
class Sums:
    """Sums over the batches of one update on this rank."""

    loss: float = 0.0
    nll: float = 0.0
    carried: State | None = None
    """Final state of the rows, where they are streams."""


class GradientAccumulator:
    """Computes the gradients of an update from its batches."""

    def __init__(
        self, config: TrainingConfig, task: Task, weights: Weights, seed: int, device: torch.device, quiet: bool,
        ranks: Ranks,
    ) -> None:  # fmt: skip
        self.config = config
        self.task = task
        self.weights = weights
        self.model: Any = weights.model
        self.seed = seed
        self.device = device
        self.quiet = quiet
        self.ranks = ranks
        self.sharded = ranks.world_size > 1 and config.parallel == "sharded"

    def accumulate(
        self, step: int, batches: Sequence[TrainingBatch], divisor: float, progress: Progress, carried: State | None
    ) -> Sums:
        """Accumulate the gradients of the summed loss of all ranks, divided by `divisor`.

        If a batch does not fit into memory, all batches are computed again in smaller parts, and batches of its size
        are split in advance from then on.
        """
        while True:
            result = self._attempt(step, batches, divisor, progress.max_positions, carried)
            if isinstance(result, Sums):
                if not self.sharded:
                    self.ranks.add_up(self.weights.gradients(dense=self.ranks.world_size > 1))
                return result
            self._lower_max_positions(result, progress)

    def _attempt(
        self, step: int, batches: Sequence[TrainingBatch], divisor: float, max_positions: int, carried: State | None
    ) -> Sums | TrainingBatch:
        """Return the sums, or the part that did not fit into memory."""
        sums = Sums(carried=carried)
        for batch in batches:
            before = sums.carried if batch.segment else None
            after: list[State | None] = []
            done = 0
            for part in split(batch, max_positions):
                rows = slice(done, done + len(part.rows))
                done = rows.stop
                try:
                    loss, nll, state = self._backward(step, part, divisor, _select(before, rows, batch))
                except (RuntimeError, MemoryError) as error:
                    if not is_out_of_memory(error):
                        raise
                    return part
                sums.loss += loss
                sums.nll += nll
                after.append(state)
            sums.carried = reduce(_join, after)
        return sums

    def _backward(
        self, step: int, batch: TrainingBatch, divisor: float, before: State | None
    ) -> tuple[float, float, State | None]:
        dropout_keys = DropoutKeys.for_step(self.seed, step, batch.rows)
        loss = self.task.loss(self.model, batch, self.config.smoothing, dropout_keys, before)
        (loss.loss_sum / divisor).backward()  # type: ignore[no-untyped-call]
        self.weights.collect_gradients()
        return float(loss.loss_sum.detach()), float(loss.nll_sum), loss.state

    def _lower_max_positions(self, batch: TrainingBatch, progress: Progress) -> None:
        """After running out of memory: clear the gradients, and split batches of this size from now on."""
        self.weights.clear_gradients()
        if self.device.type == "cuda":
            torch.cuda.empty_cache()
        first = not progress.max_positions
        progress.max_positions = batch.num_positions - 1
        if len(batch.rows) == 1:
            row = f"row of {batch.num_targets} targets"
            unit, key = (row, "data.max_tokens") if batch.segment is None else ("segment", "training.context")
            raise HeedError(f"out of memory for one {unit}. Lower --{key}, or choose a smaller model.")
        if self.sharded:
            raise HeedError("out of memory. Lower --training.tokens_per_batch, or start more processes.")
        if first:
            warn(
                f"out of memory for a batch of {batch.num_positions:,} positions: batches of this size are computed in "
                "parts from now on, with the same result. A lower --training.tokens_per_batch is faster.",
                self.quiet,
            )


def split(batch: TrainingBatch, max_positions: int) -> Iterator[TrainingBatch]:
    """Halve a batch repeatedly until each part has at most `max_positions` (0: no limit) or one row."""
    if max_positions and batch.num_positions > max_positions and len(batch.rows) > 1:
        for half in batch.halves():
            yield from split(half, max_positions)
    else:
        yield batch


def _select(state: State | None, rows: slice, batch: TrainingBatch) -> State | None:
    if state is None or rows == slice(0, len(batch.rows)):
        return state
    return state.select(torch.arange(rows.start, rows.stop, device=batch.rows.device))


def _join(left: State | None, right: State | None) -> State | None:
    return left.join(right) if left is not None and right is not None else None
