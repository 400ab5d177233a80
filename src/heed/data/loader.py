"""Batch loader: the batches of a token store in a resumable order, prepared ahead.

The order follows from (seed, epoch, index) alone, so a position is two numbers in addition to the seed, and resuming at
one costs the plan of its epoch: nothing is replayed.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import cycle
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from heed.core.errors import DataError
from heed.data.batch import Ids, TrainingBatch, plan_epoch
from heed.data.schedule import START, Position, Turn, turns
from heed.data.store import TokenStore
from heed.data.subword_dropout import SubwordDropout
from heed.data.workers import ids_of, running

MAX_SEGMENTED_AHEAD = 50_000
"""Rows that subword dropout segments before an epoch, which takes some seconds; otherwise padding would cost more."""

Item = TypeVar("Item")
B = TypeVar("B", bound=TrainingBatch)
Collate = Callable[[Mapping[str, Sequence[Ids]], NDArray[np.int64]], B]
"""Makes a batch of the ids of each column and the rows' indices in the corpus."""
_Turn = Turn[NDArray[np.int64]]
"""The rows of a batch."""


class BatchLoader(Generic[B]):
    """Batches of a token store, made of its columns by `collate`.

    `tokens_per_batch` bounds rows × the longest sequence of either side, including eos (see `plan_epoch`). With
    `subword_dropout`, up to `MAX_SEGMENTED_AHEAD` rows are segmented at the beginning of an epoch, and the batches are
    planned with their new lengths; more rows are planned with the lengths in the store, which new ones can exceed.
    `workers` processes prepare the ids of the batches in turn, and a thread prepares `prefetch` batches ahead; with 0
    of both, each batch is prepared on demand. The batches are the same.
    """

    def __init__(
        self,
        store: TokenStore,
        collate: Collate[B],
        *,
        tokens_per_batch: int,
        seed: int,
        subword_dropout: SubwordDropout | None = None,
        rank: int = 0,
        world_size: int = 1,
        prefetch: int = 2,
        workers: int = 0,
    ) -> None:
        if len(store) == 0:
            raise DataError(f"The token store {store.folder} has no rows: there is nothing to train on.")
        self.store = store
        self.tokens_per_batch, self.seed = tokens_per_batch, seed
        self.collate = collate
        self.subword_dropout = subword_dropout
        self.rank, self.world_size = rank, world_size
        self.prefetch, self.workers = prefetch, workers
        self._lengths = [store.lengths(side) + 1 for side in store.sides]
        self._planned: tuple[int, list[NDArray[np.int64]]] = (-1, [])
        self._segmented: tuple[int, dict[str, list[NDArray[np.int32]]]] = (-1, {})

    def num_batches(self, epoch: int) -> int:
        """Number of batches in an epoch, over all ranks."""
        return len(self._plan(epoch))

    def batches_from(self, position: Position = START) -> Generator[tuple[Position, B], None, None]:
        """This rank's batches from `position`, without end, each with the position *after* it on all ranks.

        Close the iterator to stop its thread and its workers. Raises DataError if the corpus has no such position, and
        HeedError if a worker fails.
        """
        schedule = turns(self._plan, position, self.rank, self.world_size)
        batches = self._made_by_workers(schedule) if self.workers else map(self._made_here, schedule)
        return prepared_ahead(batches, self.prefetch)

    def _made_here(self, turn: _Turn) -> tuple[Position, B]:
        epoch, segmented = self._segmented
        if epoch == turn.epoch:
            return self._batch(turn, {side: [rows[row] for row in turn.item] for side, rows in segmented.items()})
        return self._batch(turn, ids_of(self.store, self.subword_dropout, turn.epoch, turn.item))

    def _made_by_workers(self, schedule: Iterator[_Turn]) -> Generator[tuple[Position, B], None, None]:
        """Each of n workers makes every n-th batch, so that they return in the order of the schedule."""
        with running(self.workers, self.store, self.subword_dropout) as workers:
            begun: deque[_Turn] = deque()
            for worker, turn in zip(cycle(workers), schedule, strict=False):
                ids = worker.finish() if len(begun) == len(workers) else None
                worker.begin(turn.epoch, turn.item)
                begun.append(turn)
                if ids is not None:
                    yield self._batch(begun.popleft(), ids)

    def _batch(self, turn: _Turn, ids: Mapping[str, Sequence[Ids]]) -> tuple[Position, B]:
        return turn.after, self.made(ids, turn.item, turn.epoch)

    def made(self, ids: Mapping[str, Sequence[Ids]], rows: NDArray[np.int64], epoch: int) -> B:
        """A batch of these rows; a subclass may make another one in each epoch."""
        return self.collate(ids, rows)

    def _plan(self, epoch: int) -> list[NDArray[np.int64]]:
        """The plan of one epoch; the latest is kept."""
        planned, plan = self._planned
        if planned != epoch:
            # The plan of a large corpus is large, so the old one is freed first. Another thread may be here too.
            self._planned = (-1, plan := [])
            plan = plan_epoch(self._lengths_in(epoch), self.tokens_per_batch, self.seed, epoch)
            self._planned = (epoch, plan)
        return plan

    def _lengths_in(self, epoch: int) -> Sequence[NDArray[np.integer]]:
        """The lengths of each side in an epoch, including eos; newly segmented rows are kept."""
        if self.subword_dropout is None or len(self.store) > MAX_SEGMENTED_AHEAD:
            return self._lengths
        ids = ids_of(self.store, self.subword_dropout, epoch, np.arange(len(self.store)))
        segmented = {side: [np.asarray(row, dtype=np.int32) for row in rows] for side, rows in ids.items()}
        self._segmented = (epoch, segmented)
        return [np.array([len(row) + 1 for row in segmented[side]]) for side in self.store.sides]


def prepared_ahead(items: Iterator[Item], num_ahead: int) -> Generator[Item, None, None]:
    """The items of an endless iterator, of which one thread prepares the next `num_ahead`."""
    if not num_ahead:
        yield from items
    with ThreadPoolExecutor(max_workers=1, thread_name_prefix="heed-batches") as thread:
        pending = deque(thread.submit(next, items) for _ in range(num_ahead))
        try:
            while True:
                item = pending.popleft().result()
                pending.append(thread.submit(next, items))
                yield item
        finally:
            thread.shutdown(cancel_futures=True)
            if isinstance(items, Generator):
                items.close()
