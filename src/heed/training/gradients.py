"""Gradient accumulation for one update.

Gradients are summed over the batches of all ranks. On a CPU, the rows of a batch are divided among the threads: each
computes its part with a replica of the model, and all wait for each other once per batch. If they divided each matrix
product instead, they would wait thousands of times. A batch that does not fit into memory is computed in more parts.
On a GPU, the kernels of most losses are recorded and replayed (`heed.training.replay`). Where rows are streams, each
segment starts from the final state of the previous one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass
from functools import partial, reduce
from itertools import islice
from typing import Any, TypeGuard

import torch
from torch import Tensor

from heed.core.errors import HeedError
from heed.core.progress import warn
from heed.data.batch import Batch, TrainingBatch, divided
from heed.nn.contract import State, TokenSource
from heed.nn.device import is_out_of_memory, products_by
from heed.nn.dropout_keys import DropoutKeys
from heed.tasks.task import Task
from heed.training.config import TrainingConfig
from heed.training.progress import Progress
from heed.training.ranks import Ranks
from heed.training.replay import Recorder, Replayer
from heed.training.weights import Weights

LEAST_POSITIONS = 128
"""Positions of a part that are worth a thread of their own."""
MOST_PARTS = 4
"""Parts of a batch at the same time. Each needs memory for its gradients, and time to add them up. Further threads
divide the products of the parts."""


@dataclass
class Sums:
    """Sums over the batches of one update on this rank."""

    loss: float | Tensor = 0.0
    nll: float | Tensor = 0.0
    """On a GPU, tensors that may not have been computed yet."""
    carried: State | None = None
    """Final state of the rows, where they are streams."""


class GradientAccumulator:
    """Computes the gradients of an update from its batches."""

    def __init__(
        self, config: TrainingConfig, task: Task, weights: Weights, seed: int, device: torch.device, quiet: bool,
        ranks: Ranks, num_processes: int = 0,
    ) -> None:  # fmt: skip
        """`num_processes` of the training, if an estimate for it is made with fewer `ranks`."""
        self.config = config
        self.task = task
        self.weights = weights
        self.seed = seed
        self.device = device
        self.quiet = quiet
        self.ranks = ranks
        self.sharded = ranks.world_size > 1 and config.parallel == "sharded"
        self._threads = torch.get_num_threads()
        is_divided = device.type == "cpu" and not self.sharded and not weights.sparse
        self.num_replicas = min(self._threads, MOST_PARTS) - 1 if is_divided else 0
        self._models: list[Any] = [weights.model, *(weights.replica() for _ in range(self.num_replicas))]
        self._replayer: Replayer | None = None
        if self._replays(num_processes or ranks.world_size):
            weights.fixed = True
            add = partial(_add_gradients, task, weights.model)  # without `self`, which holds its result
            self._replayer = Replayer(add, Recorder(device), weights.model)
        self._pool = ThreadPoolExecutor(self.num_replicas, "heed-replica") if self.num_replicas else None

    def accumulate(
        self, step: int, batches: Sequence[TrainingBatch], divisor: float, progress: Progress, carried: State | None
    ) -> Sums:
        """Accumulate the gradients of the summed loss of all ranks, divided by `divisor`.

        If a batch does not fit into memory, all batches are computed again, first without recorded kernels, then in
        smaller parts; batches of its size are split in advance from then on.
        """
        while True:
            result = self._attempt(step, batches, divisor, progress.max_positions, carried)
            if isinstance(result, Sums):
                if not self.sharded:
                    self.ranks.add_up(self.weights.gradients(dense=self.ranks.world_size > 1))
                return result
            if self._replayer is not None:  # recorded kernels keep the memory of the largest batch
                self._stop_replaying("out of memory")
            else:
                self._lower_max_positions(result, progress)
            self._clear_memory()

    def _attempt(
        self, step: int, batches: Sequence[TrainingBatch], divisor: float, max_positions: int, carried: State | None
    ) -> Sums | TrainingBatch:
        """Return the sums, or a part that did not fit into memory."""
        sums = Sums(carried=carried)
        for batch in batches:
            before = sums.carried if batch.segment else None
            after: list[State | None] = []
            done = 0
            parts = split(batch, max_positions, len(self._models))
            while group := list(islice(parts, len(self._models))):
                jobs = []
                for part in group:
                    rows = slice(done, done + len(part.rows))
                    jobs.append((part, _select(before, rows, batch)))
                    done = rows.stop
                for part, result in zip(group, self._side_by_side(step, divisor, jobs), strict=True):
                    if result is None:
                        return part
                    sums.loss += result.loss
                    sums.nll += result.nll
                    after.append(result.carried)
                self.weights.collect_gradients()
            sums.carried = reduce(_join, after)
        return sums

    def _side_by_side(
        self, step: int, divisor: float, jobs: Sequence[tuple[TrainingBatch, State | None]]
    ) -> list[Sums | None]:
        """The sums of each part of a batch, which is computed in a thread of its own; None if it does not fit."""
        if len(jobs) == 1 or self._pool is None:
            return [self._backward(self._models[0], step, part, divisor, before) for part, before in jobs]
        num_inner = max(1, self._threads // len(jobs))

        def work(model: Any, part: TrainingBatch, before: State | None) -> Sums | None:
            torch.set_num_threads(num_inner)  # of this thread
            return self._backward(model, step, part, divisor, before)

        mine, *others = zip(self._models, jobs, strict=False)
        with products_by(num_inner):  # until all have finished: MKL has one number for all threads
            running = [self._pool.submit(work, model, *job) for model, job in others]
            try:
                first = work(mine[0], *mine[1])
            finally:
                wait(running)
        return [first, *(each.result() for each in running)]

    def _backward(
        self, model: Any, step: int, batch: TrainingBatch, divisor: float, carried: State | None
    ) -> Sums | None:
        """Add the gradients of a part to those of `model`; None if it does not fit into memory."""
        dropout_keys = DropoutKeys.for_step(self.seed, step, batch.rows)
        try:
            if self._replayer is not None and _is_replayable(batch):
                sums = self._replayer.add_gradients(batch, dropout_keys, divisor)
                if problem := self._replayer.problem:
                    self._stop_replaying(problem)
                if sums is not None:
                    return Sums(sums[0], sums[1])
            loss = self.task.loss(model, batch, dropout_keys, carried)
            (loss.loss_sum / divisor).backward()  # type: ignore[no-untyped-call]
        except (RuntimeError, MemoryError) as error:
            if not is_out_of_memory(error):
                raise
            return None
        if self.device.type == "cuda":
            return Sums(loss.loss_sum.detach().double(), loss.nll_sum.double(), loss.state)
        return Sums(float(loss.loss_sum.detach()), float(loss.nll_sum), loss.state)

    def _replays(self, num_processes: int) -> bool:
        """Whether losses are recorded: on a GPU in a single process, of a task and a model that allow it."""
        config, model = self.config, self.weights.model
        is_fixed = self.device.type == "cuda" and config.freeze == "none" and not config.unfreeze_every
        is_replayable = self.task.replayable and getattr(model, "replayable", False)
        return is_fixed and is_replayable and num_processes == 1

    def _stop_replaying(self, reason: str) -> None:
        """Compute all further batches as usual."""
        self._replayer = None
        text = "CUDA graphs can no longer be used for the updates, which take longer from now on"
        warn(f"{text}: {reason}.", self.quiet)

    def _clear_memory(self) -> None:
        """After running out of memory: clear the gradients, and release what is cached."""
        self.weights.clear_gradients()
        if self.device.type == "cuda":
            torch.cuda.empty_cache()

    def _lower_max_positions(self, batch: TrainingBatch, progress: Progress) -> None:
        """After running out of memory: split batches of this size from now on."""
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


def _add_gradients(task: Task, model: Any, batch: Batch, dropout_keys: DropoutKeys, divisor: Tensor) -> Tensor:
    """What is recorded: (loss, -log p) of a batch, whose gradients are added to those of the model."""
    loss = task.loss(model, batch, dropout_keys)
    (loss.loss_sum / divisor).backward()  # type: ignore[no-untyped-call]
    return torch.stack((loss.loss_sum.detach(), loss.nll_sum)).double()


def _is_replayable(batch: TrainingBatch) -> TypeGuard[Batch]:
    """Whether it consists of independent rows of tokens."""
    return isinstance(batch, Batch) and batch.segment is None and isinstance(batch.source, TokenSource | None)


def split(batch: TrainingBatch, max_positions: int, number: int = 1) -> Iterator[TrainingBatch]:
    """Divide a batch into up to `number` parts, and halve each until it has at most `max_positions` (0: no limit).

    A part has at least one row.
    """
    number = max(1, min(number, len(batch.rows), batch.num_positions // LEAST_POSITIONS))
    if number == 1 and max_positions and batch.num_positions > max_positions and len(batch.rows) > 1:
        number = 2
    if number == 1:
        yield batch
    else:
        for part in divided(batch, number):
            yield from split(part, max_positions)


def _select(state: State | None, rows: slice, batch: TrainingBatch) -> State | None:
    if state is None or rows == slice(0, len(batch.rows)):
        return state
    return state.select(torch.arange(rows.start, rows.stop, device=batch.rows.device))


def _join(left: State | None, right: State | None) -> State | None:
    return left.join(right) if left is not None and right is not None else None
