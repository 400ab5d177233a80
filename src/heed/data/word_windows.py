"""Word windows: the training examples of word vectors, drawn from a text, and their loader.

As in word2vec (Mikolov et al. 2013): unknown words are left out; an occurrence of a word with the relative frequency f
is kept with the probability √(t / f) (subsampling, equation 5); the window of each word reaches a random number of
words to both sides, up to `window`; negatives are drawn from the frequencies to the power of 0.75, and those that equal
the predicted word are left out. A skip-gram example predicts the words of the window from the one in the middle, a
continuous bag of words (CBOW) the one in the middle from the mean of the others.

All of it follows from (seed, epoch, batch), so a training resumes exactly.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
import torch
from jaxtyping import Int
from numpy.random import Philox
from numpy.typing import NDArray
from torch import Tensor

from heed.core.errors import DataError
from heed.data.loader import prepared_ahead
from heed.data.schedule import START, Position, Turn, epoch_random, shuffled, turns
from heed.nn.negative_sampling import Ints, SparseMatrix
from heed.statistical.alias import AliasTable

NOISE_POWER = 0.75
"""Exponent of the frequencies from which negatives are drawn."""
MAX_PIECE = 1000
"""Words of a line that are read together; longer lines are cut, as in word2vec."""


@dataclass(frozen=True)
class WindowOptions:
    """How examples are drawn."""

    window: int
    negatives: int
    subsample: float
    """Threshold t of the relative frequency; 0: all words are kept."""
    from_context: bool
    """Predict the word in the middle from its window (CBOW), instead of the window from it (skip-gram)."""


@dataclass(frozen=True)
class InputRows:
    """The rows of the input table that a word's vector is the sum of, divided by √n: itself, and those of its n-grams.

    Without n-grams, a word has one row, its id.
    """

    starts: Ints
    """The first row of each word, and the number of all."""
    rows: Ints
    num_rows: int
    """Rows of the table (R)."""

    @classmethod
    def of_words(cls, num_words: int) -> InputRows:
        """Words without n-grams."""
        return cls(np.arange(num_words + 1), np.arange(num_words), num_words)

    def bags(self, starts: Ints, words: Ints, weights: NDArray[np.float32]) -> SparseMatrix:
        """The matrix [E, R] of examples that are weighted sums of the vectors of words."""
        lengths = self.starts[words + 1] - self.starts[words]
        ends = np.concatenate([[0], np.cumsum(lengths)])
        entries = np.arange(ends[-1]) + np.repeat(self.starts[words] - ends[:-1], lengths)
        values = np.repeat((weights / np.sqrt(lengths)).astype(np.float32), lengths)
        return SparseMatrix.of(ends[starts], self.rows[entries], values, self.num_rows)


@dataclass(frozen=True)
class WindowBatch:
    """Examples with the words that they predict and negatives."""

    bags: SparseMatrix
    """[E, R]: the input rows of each example."""
    targets: SparseMatrix
    """[E, V]: +1 for each predicted word, -1 for each negative."""
    rows: Int[Tensor, " E"]
    """The line of each example."""
    num_targets: int
    """Number of predicted words."""
    segment: None = None
    relative_length: float = 1.0

    @property
    def num_positions(self) -> int:
        return len(self.targets.values)

    @property
    def num_real(self) -> int:
        return self.num_positions

    def part(self, rows: slice) -> WindowBatch:
        targets = self.targets.part(rows)
        return replace(
            self, bags=self.bags.part(rows), targets=targets, rows=self.rows[rows],
            num_targets=int((targets.values > 0).sum()),
        )  # fmt: skip

    def to(self, device: torch.device) -> WindowBatch:
        return replace(self, bags=self.bags.to(device), targets=self.targets.to(device), rows=self.rows.to(device))


class WindowSampler:
    """Draws examples from texts, whose words have the frequencies `counts` [V] (0: not a word)."""

    def __init__(self, options: WindowOptions, counts: Ints, inputs: InputRows) -> None:
        self.options = options
        self.num_words = len(counts)
        self.inputs = inputs
        self.is_word = counts > 0
        if self.is_word.sum() < 2:
            raise DataError("word vectors need a text with at least two different words that are frequent enough.")
        self.noise = AliasTable(np.where(self.is_word, counts, 0).astype(np.float64) ** NOISE_POWER)
        self.kept_share = np.ones(len(counts))
        if options.subsample:
            frequency = np.maximum(counts, 1) / counts.sum()
            self.kept_share = np.asarray(np.sqrt(options.subsample / frequency).clip(max=1.0), dtype=np.float64)

    def batch(
        self, ids: Ints, lines: Ints, random: Philox, subsample: bool = True, pieces: Ints | None = None
    ) -> WindowBatch:
        """The examples of the words `ids` of the `lines`, in which each word that has another in its window is one.

        `pieces`: for each word, that of the line within which its window ends (default: the line).
        """
        pieces = lines if pieces is None else pieces
        kept = self.is_word[ids]
        if subsample:
            kept &= _uniform(random, len(ids)) < self.kept_share[ids]
        ids, lines = ids[kept], lines[kept]
        contexts, in_window = self._windows(pieces[kept], random)
        has_context = in_window.any(axis=1)
        ids_around, sizes = ids[contexts[in_window]], in_window.sum(axis=1)[has_context]
        ends = np.concatenate([[0], np.cumsum(sizes)])
        centres, each = ids[has_context], np.arange(len(sizes) + 1)
        if self.options.from_context:
            weights = np.repeat((1 / sizes).astype(np.float32), sizes)
            bags, targets = self.inputs.bags(ends, ids_around, weights), self._targets(each, centres, random)
        else:
            bags = self.inputs.bags(each, centres, np.ones(len(centres), dtype=np.float32))
            targets = self._targets(ends, ids_around, random)
        num_targets = len(centres) if self.options.from_context else len(ids_around)
        return WindowBatch(bags, targets, torch.from_numpy(lines[has_context]), num_targets)

    def _windows(self, lines: Ints, random: Philox) -> tuple[Ints, NDArray[np.bool_]]:
        """The places around each word [n, 2 window], and whether each is in its window, and in the same of `lines`."""
        window, n = self.options.window, len(lines)
        reach = 1 + ((random.random_raw(n) >> np.uint64(32)) * np.uint64(window) >> np.uint64(32)).astype(np.int64)
        offsets = np.array([*range(-window, 0), *range(1, window + 1)])
        places = np.arange(n)[:, None] + offsets
        inside = (places >= 0) & (places < n) & (np.abs(offsets) <= reach[:, None])
        places = places.clip(0, max(0, n - 1))
        return places, inside & (lines[places] == lines[:, None])

    def _targets(self, starts: Ints, words: Ints, random: Philox) -> SparseMatrix:
        """Each example's predicted words, each followed by its negatives."""
        number = self.options.negatives
        drawn = self.noise.draw(random.random_raw(len(words) * number).reshape(len(words), number))
        entries = np.concatenate([words[:, None], drawn], axis=1)
        kept = entries != words[:, None]
        kept[:, 0] = True
        signs = np.full(entries.shape, -1, dtype=np.float32)
        signs[:, 0] = 1
        ends = np.concatenate([[0], np.cumsum(kept.sum(axis=1))])
        return SparseMatrix.of(ends[starts], entries[kept], signs[kept], self.num_words)


def _uniform(random: Philox, n: int) -> NDArray[np.float64]:
    return np.asarray((random.random_raw(n) >> np.uint64(11)) * 2.0**-53, dtype=np.float64)


def batch_random(seed: int, epoch: int, batch: int) -> Philox:
    """The random numbers of a batch, which no other batch uses, nor the order of an epoch (`epoch_random`)."""
    return Philox(key=np.array([seed, epoch], dtype=np.uint64), counter=np.array([0, 0, 0, batch + 1], dtype=np.uint64))


_Item = tuple[int, Ints]
"""The number of a batch, and its pieces."""


class WordWindowLoader:
    """Batches of examples of about `words_per_batch` words of a text, in a new order in each epoch.

    `ids` has all words of the text, and `offsets` the beginning of each line and the end of the last.
    """

    def __init__(
        self, ids: NDArray[np.integer], offsets: NDArray[np.integer], sampler: WindowSampler, *, words_per_batch: int,
        seed: int, rank: int = 0, world_size: int = 1,
    ) -> None:  # fmt: skip
        self.ids, self.sampler = ids, sampler
        self.words_per_batch, self.seed = words_per_batch, seed
        self.rank, self.world_size = rank, world_size
        self.begins, self.ends, self.lines = _pieces(np.asarray(offsets, dtype=np.int64))
        if len(self.begins) == 0:
            raise DataError("the text has no words: there is nothing to train on.")
        self._plan = lru_cache(maxsize=1)(self._planned)

    def num_batches(self, epoch: int) -> int:
        """Number of batches in an epoch, over all ranks."""
        return len(self._plan(epoch))

    def batches_from(self, position: Position = START) -> Generator[tuple[Position, WindowBatch], None, None]:
        """This rank's batches from `position`, without end, each with the position after it on all ranks.

        Raises DataError if the text has no such position.
        """
        made = map(self._made, turns(self._plan, position, self.rank, self.world_size))
        return prepared_ahead((each for each in made), 4)

    def _planned(self, epoch: int) -> list[_Item]:
        order = shuffled(len(self.begins), epoch_random(self.seed, epoch))
        ends = np.cumsum((self.ends - self.begins)[order])
        cuts = np.flatnonzero(np.diff((ends - 1) // self.words_per_batch)) + 1
        return list(enumerate(np.split(order, cuts)))

    def _made(self, turn: Turn[_Item]) -> tuple[Position, WindowBatch]:
        number, pieces = turn.item
        begins, lengths = self.begins[pieces], (self.ends - self.begins)[pieces]
        before = np.concatenate([[0], np.cumsum(lengths)[:-1]])
        places = np.arange(lengths.sum()) + np.repeat(begins - before, lengths)
        ids, lines = self.ids[places].astype(np.int64), np.repeat(self.lines[pieces], lengths)
        random, within = batch_random(self.seed, turn.epoch, number), np.repeat(pieces, lengths)
        return turn.after, self.sampler.batch(ids, lines, random, pieces=within)


def _pieces(offsets: Ints) -> tuple[Ints, Ints, Ints]:
    """Begin, end and line of each piece of at most `MAX_PIECE` words of a line."""
    lengths = np.diff(offsets)
    numbers = -(-lengths // MAX_PIECE)
    lines = np.repeat(np.arange(len(lengths)), numbers)
    within = np.arange(len(lines)) - np.repeat(np.cumsum(numbers) - numbers, numbers)
    begins = offsets[lines] + within * MAX_PIECE
    return begins, np.minimum(begins + MAX_PIECE, offsets[lines + 1]), lines
