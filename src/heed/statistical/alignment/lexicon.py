"""Lexical table t(f | e) of the target words f that occur in a pair with a source word e.

The table is sparse: it has an entry for each pair of words that share a sentence pair, sorted by e and then f, so its
memory is linear in the number of such pairs. A cell (target word, source word) of a sentence pair is the number of its
entry. The cells of the training text are computed once and read again in each iteration, from memory or, if they are
many, from a temporary file.
"""

from __future__ import annotations

import tempfile
import weakref
from collections.abc import Iterable, Iterator
from typing import IO

import numpy as np
from numpy.typing import NDArray

from heed.statistical.alignment.digamma import digamma
from heed.statistical.alignment.pairs import NULL, Block, SentencePairs
from heed.statistical.predictor import Bools, Floats, Ints

FLOOR = 1e-7
"""t of a pair of words that never shared a sentence pair; GIZA++'s."""
_IN_MEMORY = 1 << 28
"""Bytes of cells that are kept in memory."""
_AT_ONCE = 1 << 19
"""Cells that are sorted at once; about as many fit into a processor's cache."""

Cells = NDArray[np.int32]
"""[B, J, I + 1]: the entry of each target word with the empty word and each source word; N where it has none."""


class Lexicon:
    """The N entries of a table, and how they are found."""

    def __init__(self, keys: Ints, src_size: int, tgt_size: int) -> None:
        self.keys = keys
        """[N], ascending: e * tgt_size + f."""
        self.src_size, self.tgt_size = src_size, tgt_size
        self.offsets = np.searchsorted(keys, np.arange(src_size + 1) * tgt_size)
        """[src_size + 1]: the first entry of each source word."""
        self.probs = np.append(1.0 / np.maximum(self.row_lengths, 1).repeat(self.row_lengths), FLOOR)
        """[N + 1]: t of each entry, at first uniform over the targets of a word; the last one is `FLOOR`."""

    @classmethod
    def of(cls, pairs: SentencePairs) -> Lexicon:
        """The entries of all pairs of words that share a sentence pair."""
        return cls(_distinct(_keys(block, pairs.tgt_size) for block in pairs.blocks()), pairs.src_size, pairs.tgt_size)

    @property
    def row_lengths(self) -> Ints:
        """[src_size]: the number of entries of each source word."""
        return np.diff(self.offsets)

    @property
    def targets(self) -> Ints:
        """[N]: f of each entry."""
        return self.keys % self.tgt_size

    def find(self, keys: Ints) -> Cells:
        """The entry of each key; N for those without one."""
        places = np.searchsorted(self.keys, keys)
        if not len(self.keys):
            return places.astype(np.int32)
        missing = self.keys[np.minimum(places, len(self.keys) - 1)] != keys
        return np.where(missing, len(self.keys), places).astype(np.int32)

    def counts(self) -> Floats:
        """Counts of zero for each entry, and one for what has none."""
        return np.zeros(len(self.keys) + 1)

    def maximise(self, counts: Floats, alpha: float) -> None:
        """Set the probabilities from expected counts.

        With `alpha` above 0, each row has a symmetric Dirichlet prior, and t is the exponential of the expected log
        under its posterior, which sums to less than one (Variational Bayes; Riley & Gildea 2012, equation 6).
        """
        lengths = self.row_lengths
        values = counts[:-1]
        totals = np.add.reduceat(np.append(values, 0.0), self.offsets[:-1]) * (lengths > 0)
        if alpha:
            values += alpha
            values = digamma(values, out=values)
            values -= digamma(np.maximum(totals + alpha * lengths, alpha)).repeat(lengths)
            np.exp(values, out=values)
        else:
            values /= np.maximum(totals, np.finfo(np.float64).tiny).repeat(lengths)
        self.probs[:-1] = values

    def best(self, source: int, most: int) -> list[tuple[int, float]]:
        """The likeliest target words of a source word, with t."""
        row = slice(self.offsets[source], self.offsets[source + 1])
        order = np.argsort(-self.probs[row], kind="stable")[:most]
        return list(zip(self.targets[row][order].tolist(), self.probs[row][order].tolist(), strict=True))


class IndexedPairs:
    """Sentence pairs with their cells in a lexicon, which are found once."""

    def __init__(self, pairs: SentencePairs, lexicon: Lexicon) -> None:
        self.pairs = pairs
        self.keys = lexicon.keys
        self._file: IO[bytes] = tempfile.SpooledTemporaryFile(_IN_MEMORY)  # noqa: SIM115 (closed with this)
        weakref.finalize(self, self._file.close)
        for blocks in _batched(pairs.blocks()):
            keys = np.concatenate([_keys(block, lexicon.tgt_size).ravel() for block in blocks])
            distinct, inverse = np.unique(keys, return_inverse=True)  # neighbouring keys have neighbouring entries
            self._file.write(lexicon.find(distinct)[inverse].tobytes())

    def __iter__(self) -> Iterator[tuple[Block, Cells]]:
        self._file.seek(0)
        for block in self.pairs.blocks():
            num_src, num_tgt = block.shape
            cells = np.frombuffer(self._file.read(4 * block.num_cells), np.int32)
            yield block, cells.reshape(-1, num_tgt, num_src + 1)


def _keys(block: Block, tgt_size: int) -> Ints:
    src = np.concatenate([np.full((len(block.src), 1), NULL), block.src], axis=1)
    return src[:, None, :] * tgt_size + block.tgt[:, :, None]


def _batched(blocks: Iterable[Block]) -> Iterator[list[Block]]:
    """Blocks in groups of about `_AT_ONCE` cells."""
    group: list[Block] = []
    for block in blocks:
        group.append(block)
        if sum(each.num_cells for each in group) >= _AT_ONCE:
            yield group
            group = []
    if group:
        yield group


def _distinct(parts: Iterable[Ints]) -> Ints:
    """The distinct numbers of all parts, ascending. Sorted runs are merged when they have similar sizes."""
    runs: list[Ints] = []
    waiting: list[Ints] = []
    for part in parts:
        waiting.append(part.ravel())
        if sum(map(len, waiting)) >= _AT_ONCE:
            runs.append(_sorted(np.concatenate(waiting)))
            waiting = []
            while len(runs) > 1 and len(runs[-2]) < 2 * len(runs[-1]):
                runs[-2:] = [_sorted(np.concatenate(runs[-2:]))]
    return _sorted(np.concatenate([np.empty(0, dtype=np.int64), *runs, *waiting]))


def _sorted(numbers: Ints) -> Ints:
    numbers.sort()
    different: Bools = np.ones(len(numbers), dtype=np.bool_)
    np.not_equal(numbers[1:], numbers[:-1], out=different[1:])
    return numbers[different]
