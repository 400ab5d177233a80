"""Text stream: a text as one sequence of tokens, and its loaders as parallel streams or as windows.

Every token of the text is predicted once an epoch, including the ends of lines. Before a token, a model reads the token
before it; after the end of a sentence, and at the beginning of the text, it reads bos, as before an isolated sentence.
Where a batch's row begins with a line, bos replaces whatever ended the line before, so that a model learns how texts
begin.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist

import numpy as np
import torch
from numpy.random import Philox
from numpy.typing import NDArray

from heed.core.errors import DataError, UsageError
from heed.data.batch import Batch
from heed.data.schedule import START, Position, epoch_random, shuffled, turns
from heed.data.store import TokenStore
from heed.text.vocabulary import Vocabulary

Positions = NDArray[np.int64]

FULL_SHARE, DEVIATION, SHORTEST = 0.95, 5.0, 5
"""Random lengths of segments: share around the whole context, standard deviation, and minimum."""


@dataclass(frozen=True)
class TextStream:
    """The tokens of a text and the beginnings of its lines."""

    ids: NDArray[np.integer]
    """[N], in the order of the text."""
    offsets: NDArray[np.integer]
    """[lines + 1]: the beginning of each line, and N."""
    before: int = Vocabulary.bos_id
    """The token before the first one; bos at the beginning of the text."""
    store: TokenStore | None = None
    """The store from which the tokens are read, if they are not in memory."""

    @classmethod
    def of_store(cls, store: TokenStore) -> TextStream:
        """The rows of a store, which are read from disk on demand. Raises DataError for a store without tokens."""
        ids, offsets = store.all_tokens("tgt")
        if not len(ids):
            raise DataError(f"The token store {store.folder} has no tokens: there is nothing to train on.")
        return cls(ids, offsets, store=store)

    @classmethod
    def of_lines(cls, lines: Sequence[Sequence[int]]) -> TextStream:
        """The given lines, which include their ends."""
        lengths = np.array([0, *map(len, lines)], dtype=np.int64)
        ids = np.concatenate([np.zeros(0, dtype=np.int64), *(np.asarray(line, dtype=np.int64) for line in lines)])
        return cls(ids, np.cumsum(lengths))

    def __len__(self) -> int:
        return len(self.ids)

    def batch(
        self, begins: Positions, ends: Positions, from_bos: NDArray[np.bool_] | bool = False,
        segment: int | None = None, relative_length: float = 1.0,
    ) -> Batch:  # fmt: skip
        """A batch whose rows are the tokens from each begin to each end.

        `from_bos`: rows that begin with bos, whatever token precedes them.
        """
        lengths = ends - begins
        columns = np.arange(lengths.max(initial=0))
        mask = columns < lengths[:, None]
        positions = np.where(mask, begins[:, None] + columns, begins[:, None])
        tgt_out = np.where(mask, self.ids[positions].astype(np.int64), Vocabulary.pad_id)
        first = np.where(begins > 0, self.ids[np.maximum(begins - 1, 0)].astype(np.int64), self.before)
        tgt_in = _shifted(tgt_out, np.where(from_bos, Vocabulary.bos_id, first))
        tgt_in[~mask] = Vocabulary.pad_id
        if self.store is not None:
            self.store.release_pages()
        return Batch(
            source=None,
            tgt_in=torch.from_numpy(tgt_in),
            tgt_out=torch.from_numpy(tgt_out),
            tgt_mask=torch.from_numpy(mask),
            rows=torch.from_numpy(begins.copy()),
            num_tokens=int(lengths.sum()),
            num_src_tokens=0,
            segment=segment,
            relative_length=relative_length,
        )

    def begins_line(self, positions: Positions) -> NDArray[np.bool_]:
        """Whether a line begins at each position."""
        positions = positions.astype(self.offsets.dtype)  # otherwise all offsets would be converted
        return np.asarray(self.offsets[np.searchsorted(self.offsets, positions)] == positions)


def _shifted(ids: NDArray[np.int64], first: NDArray[np.int64]) -> NDArray[np.int64]:
    """The input before each of `ids` `[B, T]`; `first` `[B]` are the tokens before the first column."""
    before = np.concatenate((first[:, None], ids[:, :-1]), axis=1)
    before[before == Vocabulary.eos_id] = Vocabulary.bos_id
    return before


def streams_of(rank: int, world_size: int, num_streams: int) -> range:
    """The streams that a rank reads; the numbers of two ranks differ by one at most."""
    return range(rank * num_streams // world_size, (rank + 1) * num_streams // world_size)


class StreamLoader:
    """A text as parallel streams of nearly equal length, in which each batch continues the previous one.

    A batch is the next segment of every stream, and the model's state is carried from batch to batch without gradients
    (truncated back-propagation through time). An epoch begins with fresh states. Each rank has its part of the streams.

    Segments have the length `context`; with `random_context`, as in AWD-LSTM (Merity et al. 2018, section 5), lengths
    are drawn from a normal distribution around it or around half of it, so that segments differ from epoch to epoch.
    """

    def __init__(
        self, text: TextStream, *, num_streams: int, context: int, random_context: bool = False, seed: int,
        rank: int = 0, world_size: int = 1,
    ) -> None:  # fmt: skip
        if num_streams < world_size:
            raise UsageError(
                f"training.num_streams = {num_streams} is too small for {world_size} processes: each needs a stream of "
                "its own. Raise it, or start fewer processes."
            )
        if len(text) < num_streams:
            raise DataError(
                f"the text has {len(text):,} tokens, too few for {num_streams} streams. Lower --training.num_streams."
            )
        self.text, self.context, self.random_context, self.seed = text, context, random_context, seed
        bounds = np.arange(num_streams + 1, dtype=np.int64) * len(text) // num_streams
        own = streams_of(rank, world_size, num_streams)
        self._begins, self._ends = bounds[own.start : own.stop], bounds[own.start + 1 : own.stop + 1]
        self._length = -(-len(text) // num_streams)
        self._cuts = lru_cache(maxsize=1)(self._cut)

    def num_batches(self, epoch: int) -> int:
        """Number of segments in an epoch."""
        return len(self._cuts(epoch)) - 1

    def batches_from(self, position: Position = START) -> Generator[tuple[Position, Batch], None, None]:
        """This rank's segments from `position`, without end, each with the position after it.

        Raises DataError if the text has no such position.
        """
        for turn in turns(lambda epoch: range(self.num_batches(epoch)), position):
            yield turn.after, self._segment(self._cuts(turn.epoch), turn.item)

    def _segment(self, cuts: Positions, index: int) -> Batch:
        begin, end = int(cuts[index]), int(cuts[index + 1])
        ends = np.minimum(self._begins + end, self._ends)
        relative = (end - begin) / self.context if self.random_context else 1.0
        begins = self._begins + begin
        return self.text.batch(begins, ends, self.text.begins_line(begins), index, relative)

    def _cut(self, epoch: int) -> Positions:
        """The bounds of an epoch's segments, relative to the beginning of each stream."""
        lengths = self._random_lengths(epoch) if self.random_context else np.full(self._length, self.context)
        cuts = np.concatenate(([0], np.cumsum(lengths)))
        # Streams can differ in length by one token, so a last segment of one token would be empty in some rows.
        inner = cuts[cuts < max(self._length - 1, 1)]
        return np.append(inner, self._length).astype(np.int64)

    def _random_lengths(self, epoch: int) -> Positions:
        """At least as many lengths as an epoch needs."""
        number = self._length // SHORTEST + 1
        random = epoch_random(self.seed, epoch)
        centres = np.where(_uniform(random, number) < FULL_SHARE, self.context, self.context / 2)
        deviations = np.array([*map(NormalDist(0, DEVIATION).inv_cdf, _uniform(random, number).tolist())])
        lengths: Positions = np.maximum(SHORTEST, (centres + deviations).astype(np.int64))
        return lengths


def _uniform(random: Philox, size: int) -> NDArray[np.float64]:
    """Random numbers in (0, 1) `[size]`."""
    return ((random.random_raw(size) >> np.uint64(11)).astype(np.float64) + 0.5) / 2.0**53


class WindowLoader:
    """A text in independent windows of `context` tokens, in batches of `tokens_per_batch // context` windows.

    An epoch cuts the text at every `context` tokens after a random first cut, so windows differ between epochs; the
    first and the last may be shorter. The windows come in random order. Rank r of n takes every n-th batch.
    """

    def __init__(
        self, text: TextStream, *, context: int, tokens_per_batch: int, seed: int, rank: int = 0, world_size: int = 1
    ) -> None:
        self.text, self.context, self.seed = text, context, seed
        self.rows_per_batch = max(1, tokens_per_batch // context)
        self.rank, self.world_size = rank, world_size
        self._windows = lru_cache(maxsize=1)(self._cut)

    def num_batches(self, epoch: int) -> int:
        """Number of batches in an epoch, over all ranks."""
        _, begins = self._windows(epoch)
        return -(-len(begins) // self.rows_per_batch)

    def batches_from(self, position: Position = START) -> Generator[tuple[Position, Batch], None, None]:
        """This rank's batches from `position`, without end, each with the position after it on all ranks.

        Raises DataError if the text has no such position.
        """
        for turn in turns(lambda epoch: range(self.num_batches(epoch)), position, self.rank, self.world_size):
            yield turn.after, self._batch(turn.epoch, turn.item)

    def _batch(self, epoch: int, index: int) -> Batch:
        first_cut, begins = self._windows(epoch)
        begins = begins[index * self.rows_per_batch : (index + 1) * self.rows_per_batch]
        ends = np.where(begins < first_cut, first_cut, begins + self.context)
        return self.text.batch(begins, np.minimum(ends, len(self.text)), self.text.begins_line(begins))

    def _cut(self, epoch: int) -> tuple[int, Positions]:
        """The beginning of an epoch's first whole window, and those of all its windows in random order."""
        random = epoch_random(self.seed, epoch)
        first_cut = int(random.random_raw() % np.uint64(min(self.context, len(self.text))))
        cuts = np.arange(first_cut, len(self.text), self.context, dtype=np.int64)
        begins = np.concatenate((np.zeros(int(first_cut > 0), dtype=np.int64), cuts))
        return first_cut, begins[shuffled(len(begins), random)]
