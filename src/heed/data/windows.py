"""Window loader: a text in independent windows of tokens.

An epoch cuts the text at every `context` tokens from a random place on, so the windows of no two epochs are alike; the
first and the last are what is left over. Every token is predicted once, and the windows come in random order. A window
that begins with a line is read as the beginning of a text.
"""

from __future__ import annotations

from collections.abc import Generator

import numpy as np

from heed.data.batch import Batch
from heed.data.schedule import BEGIN, Position, turns
from heed.data.text_stream import Positions, TextStream, random_stream, shuffled


class WindowLoader:
    """Batches of `tokens_per_batch // context` windows, of which rank r of n takes every n-th."""

    def __init__(
        self, text: TextStream, *, context: int, tokens_per_batch: int, seed: int, rank: int = 0, world_size: int = 1
    ) -> None:
        self.text, self.context, self.seed = text, context, seed
        self.rows_per_batch = max(1, tokens_per_batch // context)
        self.rank, self.world_size = rank, world_size
        self._planned: tuple[int, Positions] = (-1, np.zeros(0, dtype=np.int64))

    def num_batches(self, epoch: int) -> int:
        """Batches of an epoch, over all ranks."""
        return -(-len(self._begins(epoch)) // self.rows_per_batch)

    def batches_from(self, position: Position = BEGIN) -> Generator[tuple[Position, Batch], None, None]:
        """This rank's batches from `position` on, without end, each with the position after it on all ranks.

        Raises DataError for a position that the text does not have.
        """
        for turn in turns(lambda epoch: range(self.num_batches(epoch)), position, self.rank, self.world_size):
            yield turn.after, self._batch(turn.epoch, turn.item)

    def _batch(self, epoch: int, index: int) -> Batch:
        begins = self._begins(epoch)[index * self.rows_per_batch : (index + 1) * self.rows_per_batch]
        first = self._first_cut(epoch)
        ends = np.where(begins < first, first, begins + self.context)
        return self.text.batch(begins, np.minimum(ends, len(self.text)), self.text.begins_line(begins))

    def _first_cut(self, epoch: int) -> int:
        """Where the first whole window begins; 0 in a text of one window."""
        return int(random_stream(self.seed, epoch).random_raw() % np.uint64(min(self.context, len(self.text))))

    def _begins(self, epoch: int) -> Positions:
        """Where the windows of an epoch begin, in the order in which they come; the latest are kept."""
        planned, begins = self._planned
        if planned != epoch:
            first = self._first_cut(epoch)
            cuts = np.arange(first, len(self.text), self.context, dtype=np.int64)
            begins = np.concatenate((np.zeros(int(first > 0), dtype=np.int64), cuts))
            random = random_stream(self.seed, epoch)
            random.random_raw(1)  # which was the first cut
            begins = begins[shuffled(len(begins), random)]
            self._planned = (epoch, begins)
        return begins
