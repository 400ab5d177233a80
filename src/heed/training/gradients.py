"""Gradient accumulation for one update.

From one or more batches of each rank, added up; in parts where memory does not suffice for a batch; and, where rows
are streams, each segment from the state in which the one before it ended.
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
from heed.training.checkpoints import Progress
from heed.training.config import TrainingConfig
from heed.training.ranks import Ranks
from heed.training.weights import Weights


@dataclass
class Sums:
    """What the batches of one update come to on this rank."""

    loss: float = 0.0
    nll: float = 0.0
    carried: State | None = None
    """The state in which the rows end, where they are streams."""


class Gradients:
    """Adds the gradients of the batches of an update up."""

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

    def of(
        self, step: int, batches: Sequence[TrainingBatch], num_targets: float, progress: Progress, carried: State | None
    ) -> Sums:
        """Gradients of the mean loss of `num_targets` tokens, over all ranks.

        Where memory does not suffice for a batch, all is done again in smaller parts, and larger batches are cut
        beforehand from then on.
        """
        while True:
            found = self._attempt(step, batches, num_targets, progress.max_positions, carried)
            if isinstance(found, Sums):
                if not self.sharded:
                    self.ranks.add_up(self.weights.gradients())
                return found
            self._remember_limit(found, progress)

    def _attempt(
        self, step: int, batches: Sequence[TrainingBatch], num_targets: float, max_positions: int, carried: State | None
    ) -> Sums | TrainingBatch:
        """The sums; or the part that memory did not suffice for."""
        sums = Sums(carried=carried)
        for batch in batches:
            before = sums.carried if batch.segment else None
            after: list[State | None] = []
            done = 0
            for part in parts(batch, max_positions):
                rows = slice(done, done + len(part.rows))
                done = rows.stop
                try:
                    loss, nll, state = self._backward(step, part, num_targets, _rows_of(before, rows, batch))
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
        self, step: int, batch: TrainingBatch, num_targets: float, before: State | None
    ) -> tuple[float, float, State | None]:
        dropout_keys = DropoutKeys.for_step(self.seed, step, batch.rows)
        found = self.task.loss(self.model, batch, self.config.smoothing, dropout_keys, before)
        (found.loss_sum / num_targets).backward()  # type: ignore[no-untyped-call]
        self.weights.collect_gradients()
        return float(found.loss_sum.detach()), float(found.nll_sum), found.state

    def _remember_limit(self, batch: TrainingBatch, progress: Progress) -> None:
        """Memory did not suffice for this batch: forget its gradients, and make none of its size again."""
        self.weights.clear_gradients()
        if self.device.type == "cuda":
            torch.cuda.empty_cache()
        first = not progress.max_positions
        progress.max_positions = batch.num_positions - 1
        if len(batch.rows) == 1:
            sentence = f"row of {batch.num_targets} targets"
            what, key = (sentence, "data.max_tokens") if batch.segment is None else ("segment", "training.context")
            raise HeedError(f"memory does not suffice for one {what}. Lower --{key}, or take a smaller model.")
        if self.sharded:
            raise HeedError("memory does not suffice. Lower --training.tokens_per_batch, or start more processes.")
        if first:
            warn(
                f"memory does not suffice for a batch of {batch.num_positions:,} positions: such batches are computed "
                "in parts from now on, with the same result. A lower --training.tokens_per_batch is faster.",
                self.quiet,
            )


def parts(batch: TrainingBatch, max_positions: int) -> Iterator[TrainingBatch]:
    """The batch; or, where it has more positions, what is left of it when it is cut in two again and again."""
    if max_positions and batch.num_positions > max_positions and len(batch.rows) > 1:
        for half in batch.halves():
            yield from parts(half, max_positions)
    else:
        yield batch


def _rows_of(state: State | None, rows: slice, batch: TrainingBatch) -> State | None:
    """The state of some rows of a batch."""
    if state is None or rows == slice(0, len(batch.rows)):
        return state
    return state.select(torch.arange(rows.start, rows.stop, device=batch.rows.device))


def _join(left: State | None, right: State | None) -> State | None:
    return left.join(right) if left is not None and right is not None else None
