"""Stream loader: a text as parallel streams, in which each batch continues the previous one.

The text is cut into as many stretches of nearly equal length as there are streams. A batch is the next segment of every
stream, and the model's state is carried from batch to batch and cut off from the graph (truncated back-propagation
through time). An epoch begins with fresh states, and predicts every token once. Where a segment begins with a line,
bos stands for what ended the line before, so that a model knows how texts begin.

Segments have one length; or, in AWD-LSTM's way (Merity et al. 2018, section 5), lengths drawn from a normal
distribution around it, or around half of it, so that no token stands at the same place in every epoch.
"""

from __future__ import annotations

from collections.abc import Generator
from statistics import NormalDist

import numpy as np

from heed.core.errors import DataError, UsageError
from heed.data.batch import Batch
from heed.data.schedule import BEGIN, Position, turns
from heed.data.text_stream import Positions, TextStream, random_stream, uniform

FULL_SHARE, DEVIATION, SHORTEST = 0.95, 5.0, 5
"""Of random lengths: the share around the whole context, their standard deviation, and the least length."""


class StreamLoader:
    """The segments of a text's streams, of which each rank has an equal part of the streams."""

    def __init__(
        self, text: TextStream, *, num_streams: int, context: int, random_context: bool = False, seed: int,
        rank: int = 0, world_size: int = 1,
    ) -> None:  # fmt: skip
        if num_streams % world_size:
            raise UsageError(
                f"training.num_streams = {num_streams} cannot be shared by {world_size} processes: give a multiple."
            )
        if len(text) < num_streams:
            raise DataError(
                f"the text has {len(text):,} tokens, too few for {num_streams} streams. Lower --training.num_streams."
            )
        self.text, self.context, self.random_context, self.seed = text, context, random_context, seed
        cuts = np.arange(num_streams + 1, dtype=np.int64) * len(text) // num_streams
        each = num_streams // world_size
        mine = slice(rank * each, (rank + 1) * each)
        self._begins, self._ends = cuts[:-1][mine], cuts[1:][mine]
        self._length = -(-len(text) // num_streams)
        self._planned: tuple[int, Positions] = (-1, cuts)

    def num_batches(self, epoch: int) -> int:
        """Segments of an epoch."""
        return len(self._cuts(epoch)) - 1

    def batches_from(self, position: Position = BEGIN) -> Generator[tuple[Position, Batch], None, None]:
        """This rank's segments from `position` on, without end, each with the position after it.

        Raises DataError for a position that the text does not have.
        """
        for turn in turns(lambda epoch: range(self.num_batches(epoch)), position):
            yield turn.after, self._segment(self._cuts(turn.epoch), turn.item)

    def _segment(self, cuts: Positions, index: int) -> Batch:
        begin, end = int(cuts[index]), int(cuts[index + 1])
        ends = np.minimum(self._begins + end, self._ends)
        relative = (end - begin) / self.context if self.random_context else 1.0
        begins = self._begins + begin
        return self.text.batch(begins, ends, self.text.begins_line(begins), index, relative)

    def _cuts(self, epoch: int) -> Positions:
        """Where the segments of an epoch begin and end, counted from the begin of each stream; the latest are kept."""
        if self._planned[0] != epoch:
            self._planned = (epoch, self._cut(epoch))
        return self._planned[1]

    def _cut(self, epoch: int) -> Positions:
        lengths = self._random_lengths(epoch) if self.random_context else np.full(self._length, self.context)
        cuts = np.concatenate(([0], np.cumsum(lengths)))
        # One stream may be a token longer than another: a last segment of one token would be empty in some rows.
        inner = cuts[cuts < max(self._length - 1, 1)]
        return np.append(inner, self._length).astype(np.int64)

    def _random_lengths(self, epoch: int) -> Positions:
        """Enough of them for an epoch."""
        number = self._length // SHORTEST + 1
        random = random_stream(self.seed, epoch)
        centres = np.where(uniform(random, number) < FULL_SHARE, self.context, self.context / 2)
        deviations = np.array([*map(NormalDist(0, DEVIATION).inv_cdf, uniform(random, number).tolist())])
        lengths: Positions = np.maximum(SHORTEST, (centres + deviations).astype(np.int64))
        return lengths
