"""Lexical table t(f | e) of the target words f that occur in a pair with a source word e.

The table is sparse: it has an entry for each pair of words that share a sentence pair, sorted by e and then f, so its
memory is linear in the number of such pairs. A cell (target word, source word) of a sentence pair is the number of its
entry. The cells of the training text are computed once and read again in each iteration, from memory or, if they are
many, from a temporary file; so is what each cell added to the counts.
"""

from __future__ import annotations

import tempfile
import weakref
from collections.abc import Callable, Iterable, Iterator
from typing import IO, Protocol

import numpy as np
from numpy.typing import NDArray

from heed.statistical.alignment.pairs import NULL, Block, SentencePairs
from heed.statistical.alignment.smoothing import NONE, Smoothing
from heed.statistical.predictor import Bools, Floats, Ints

_IN_MEMORY = 1 << 26
"""Bytes of cells that are kept in memory."""
_AT_ONCE = 1 << 19
"""Cells that are sorted at once; about as many fit into a processor's cache."""

Cells = NDArray[np.int32]
"""[B, J, I + 1]: the entry of each target word with the empty word and each source word e; N + e where it has none."""


class Means(Protocol):
    """The mean m(f | e) of the prior, from what is known of the words (`heed.statistical.alignment.related`)."""

    alike: Ints
    """Entries that have counts before any are seen."""
    pseudo_counts: Floats

    def maximise(self, counts: Floats, smoothing: Smoothing) -> None:
        """Set m from expected counts, [N + src_size]."""

    def means(self, part: slice, targets: Ints) -> Floats:
        """m of a part of the entries, whose target words are given."""

    def floors(self) -> Floats:
        """m of a target word that has no entry with a source word, [src_size]."""

    def without(self, src: Ints, tgt: Ints, cells: Cells, own: Floats) -> Floats:
        """m of cells without their own counts, as `Lexicon.without`."""


class Lexicon:
    """The N entries of a table, how they are found, and t."""

    def __init__(self, keys: Ints, src_size: int, tgt_size: int) -> None:
        self.keys = keys
        """[N], ascending: e * tgt_size + f."""
        self.src_size, self.tgt_size = src_size, tgt_size
        self.offsets = np.searchsorted(keys, np.arange(src_size + 1) * tgt_size)
        """[src_size + 1]: the first entry of each source word."""
        self.probs = np.empty(len(keys) + src_size)
        """[N + src_size]: t of each entry, then t of any target word that has no entry with a source word."""
        self.smoothing = NONE
        self.totals = np.zeros(src_size)
        """[src_size]: the count of each source word."""
        self.counts: Floats | None = None
        """[N + src_size]: expected counts of the entries, if the smoothing leaves own counts out."""
        self.related: Means | None = None
        """What related words say of the entries; None if the prior is the same for all."""
        self.maximise(np.ones(len(keys) + src_size), NONE)  # uniform over the targets of a word

    @classmethod
    def of(cls, pairs: SentencePairs) -> Lexicon:
        """The entries of all pairs of words that share a sentence pair."""
        keys = distinct(_keys(block, pairs.tgt_size) for block in pairs.blocks())
        return cls(keys, pairs.src_size, pairs.tgt_size)

    @property
    def row_lengths(self) -> Ints:
        """[src_size]: the number of entries of each source word."""
        return np.diff(self.offsets)

    @property
    def targets(self) -> Ints:
        """[N]: f of each entry."""
        return self.keys % self.tgt_size

    @property
    def num_targets(self) -> int:
        """V: target words, with the unknown one."""
        return self.tgt_size - 1

    def find(self, keys: Ints) -> Cells:
        """The entry of each key; N + e for those without one."""
        places = np.searchsorted(self.keys, keys)
        missing = np.ones(keys.shape, dtype=np.bool_)
        if len(self.keys):
            missing = self.keys[np.minimum(places, len(self.keys) - 1)] != keys
        return np.where(missing, len(self.keys) + keys // self.tgt_size, places).astype(np.int32)

    def new_counts(self) -> Floats:
        """Counts to which those of a text are added, [N + src_size]: zero, but of words that are spelled alike."""
        counts = np.zeros(len(self.keys) + self.src_size)
        if self.related is not None:
            counts[self.related.alike] = self.related.pseudo_counts
        return counts

    def maximise(self, counts: Floats, smoothing: Smoothing) -> None:
        """Set t from expected counts [N + src_size], of which the last src_size are not used."""
        lengths, num = self.row_lengths, len(self.keys)
        self.smoothing = smoothing
        self.counts = None  # frees the memory of the last iteration's
        self.totals = np.add.reduceat(np.append(counts[:num], 0.0), self.offsets[:-1]) * (lengths > 0)
        if self.related is not None:
            self.related.maximise(counts, smoothing)
        for begin in range(0, num, _AT_ONCE):
            part = slice(begin, min(begin + _AT_ONCE, num))
            src, tgt = np.divmod(self.keys[part], self.tgt_size)
            means = None if self.related is None else self.related.means(part, tgt)
            prior = smoothing.prior(self.num_targets, means)
            probs = smoothing.probs(counts[part], self.totals[src], lengths[src].astype(np.float64), prior)
            self.probs[part] = np.maximum(probs, np.finfo(np.float64).tiny)  # what underflows stays possible
        floors = None if self.related is None else self.related.floors()
        self.probs[num:] = smoothing.floors(self.totals, smoothing.prior(self.num_targets, floors))
        self.counts = counts if smoothing.kind == "collapsed" else None

    def cell_probs(self, block: Block, cells: Cells, own: Floats | None) -> Floats:
        """t of the cells of a block, without their own counts if the smoothing leaves them out."""
        if own is None or self.counts is None:
            return self.probs[cells]
        src = np.concatenate([np.full((len(block.src), 1), NULL), block.src], axis=1)
        return self.without(src, block.tgt, cells, own)

    def without(self, src: Ints, tgt: Ints, cells: Cells, own: Floats) -> Floats:
        """t of cells without their own counts, from source words with the empty word [B, I + 1], and target words."""
        assert self.counts is not None
        totals = np.broadcast_to(self.totals[src][:, None, :], cells.shape)
        means = None if self.related is None else self.related.without(src, tgt, cells, own)
        return self.smoothing.without(self.counts[cells], totals, own, self.smoothing.prior(self.num_targets, means))

    def best(self, source: int, most: int) -> list[tuple[int, float]]:
        """The likeliest target words of a source word, with t."""
        row = slice(self.offsets[source], self.offsets[source + 1])
        order = np.argsort(-self.probs[row], kind="stable")[:most]
        return list(zip(self.targets[row][order].tolist(), self.probs[row][order].tolist(), strict=True))


class IndexedPairs:
    """Sentence pairs with their cells in a lexicon, which are found once, and what each cell added to the counts."""

    def __init__(self, pairs: SentencePairs, lexicon: Lexicon) -> None:
        self.pairs = pairs
        self.keys = lexicon.keys
        self._cells, self._own = _scratch(self), _scratch(self)
        self._has_own = False
        for blocks in _batched(pairs.blocks()):
            keys = np.concatenate([_keys(block, lexicon.tgt_size).ravel() for block in blocks])
            distinct, inverse = np.unique(keys, return_inverse=True)  # neighbouring keys have neighbouring entries
            self._cells.write(lexicon.find(distinct)[inverse].tobytes())

    def __iter__(self) -> Iterator[tuple[Block, Cells, Floats | None]]:
        """Each block with its cells and, after an iteration that kept them, their own counts."""
        self._cells.seek(0)
        self._own.seek(0)
        for block in self.pairs.blocks():
            shape = len(block.rows), block.shape[1], block.shape[0] + 1
            cells = np.frombuffer(self._cells.read(4 * block.num_cells), np.int32).reshape(shape)
            own = np.frombuffer(self._own.read(4 * block.num_cells), np.float32) if self._has_own else None
            yield block, cells, None if own is None else own.reshape(shape).astype(np.float64)

    def updated(self) -> Iterator[tuple[Block, Cells, Floats | None, Callable[[Floats], None]]]:
        """As iteration, with a function that replaces the own counts of the block."""
        for block, cells, own in self:
            begin = self._own.tell() - (4 * block.num_cells if self._has_own else 0)

            def keep(counts: Floats, begin: int = begin) -> None:
                self._own.seek(begin)
                self._own.write(counts.astype(np.float32).tobytes())

            yield block, cells, own, keep
        self._has_own = self._own.tell() > 0


def _scratch(owner: object) -> IO[bytes]:
    """A temporary file that is closed with its owner."""
    file = tempfile.SpooledTemporaryFile(_IN_MEMORY)  # noqa: SIM115 (closed below)
    weakref.finalize(owner, file.close)
    return file


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


def distinct(parts: Iterable[Ints]) -> Ints:
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
