"""Base of all aligners: a lexical table, expectation maximisation over blocks of pairs, and links from posteriors.

An aligner models P(f | e) of a target sentence f with J words given a source sentence e with I words. Each target word
comes from one source word or from the empty word. `posteriors` [B, J, I + 1] are the probabilities of that source given
both sentences, with the empty word in column 0.

Laws, tested for every member of `ALIGNERS` in tests/contracts: (1) without smoothing, an iteration of `estimate` never
lowers the likelihood; (2) links are positions of the pair; (3) the posteriors of a target word sum to one; (4) a model
that another one contains has its likelihood at those parameters.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, ClassVar, Self

import numpy as np

from heed.core.errors import DataError
from heed.core.run_files import RESTORE
from heed.statistical.alignment.lexicon import IndexedPairs, Lexicon
from heed.statistical.alignment.pairs import Block, Links, SentencePairs
from heed.statistical.alignment.related import Related
from heed.statistical.alignment.smoothing import NONE, Smoothing
from heed.statistical.predictor import Floats, Ints

Arrays = Mapping[str, np.ndarray[Any, Any]]


class Aligner(ABC):
    """A model of P(target | source), estimated by expectation maximisation."""

    name: ClassVar[str]
    """The key in `ALIGNERS`."""
    title: ClassVar[str]
    """Its name and source, for people."""
    before: ClassVar[tuple[tuple[str, int], ...]] = ()
    """The aligners that are estimated first, each from the one before it, and their iterations."""
    iterations: ClassVar[int] = 5
    """Iterations of expectation maximisation, unless others are asked for."""

    def __init__(self, lexicon: Lexicon, smoothing: Smoothing = NONE) -> None:
        self.lexicon = lexicon
        self.smoothing = smoothing
        self._indexed: IndexedPairs | None = None
        self.last_log_likelihood = -np.inf
        """Of the pairs of the last iteration, before it."""

    @classmethod
    def new(cls, pairs: SentencePairs, smoothing: Smoothing = NONE) -> Self:
        """An aligner before its first iteration."""
        lexicon = Lexicon.of(pairs)
        if smoothing.kind == "collapsed":
            lexicon.related = Related.of(lexicon, pairs)
        return cls(lexicon, smoothing)

    @classmethod
    def after(cls, other: Aligner) -> Self:
        """An aligner that begins with the lexical table of another one."""
        new = cls(other.lexicon, other.smoothing)
        new._indexed = other._indexed
        return new

    # --- the model -------------------------------------------------------------------------------------

    @abstractmethod
    def expect(self, block: Block, probs: Floats) -> tuple[Floats, Floats]:
        """Posteriors [B, J, I + 1] and log P(f | e) [B] of a block, from t of its cells [B, J, I + 1]."""

    @abstractmethod
    def begin(self) -> None:
        """Forget the counts of the last iteration."""

    @abstractmethod
    def count(self, block: Block, posteriors: Floats) -> None:
        """Add the counts of a block, other than lexical ones, after `expect`."""

    @abstractmethod
    def finish(self) -> None:
        """Set the parameters, other than the lexical table, from the counts."""

    @abstractmethod
    def parameters(self) -> dict[str, np.ndarray[Any, Any]]:
        """The arrays to save, other than the lexical table."""

    @abstractmethod
    def restore(self, arrays: Arrays) -> None:
        """Take what `parameters` returned. Raises DataError for arrays that do not fit."""

    # --- estimation and use ----------------------------------------------------------------------------

    def estimate(self, pairs: SentencePairs) -> None:
        """Run one iteration of expectation maximisation."""
        indexed = self._of(pairs)
        counts = self.lexicon.new_counts()
        self.begin()
        total = 0.0
        for block, cells, own, keep in indexed.updated():
            posteriors, log_probs = self.expect(block, self.lexicon.cell_probs(block, cells, own))
            self.count(block, posteriors)
            total += float(log_probs.sum())
            np.add.at(counts, cells.ravel(), posteriors.ravel())
            if self.smoothing.kind == "collapsed":
                keep(posteriors)
        self.last_log_likelihood = total
        self.lexicon.maximise(counts, self.smoothing)
        self.finish()

    def prepare(self, pairs: SentencePairs) -> None:
        """Make ready for pairs whose lengths may be new."""
        return

    def _of(self, pairs: SentencePairs) -> IndexedPairs:
        """The pairs with their cells, which are kept for the next iteration."""
        self.prepare(pairs)
        if self._indexed is None or self._indexed.pairs is not pairs or self._indexed.keys is not self.lexicon.keys:
            self._indexed = IndexedPairs(pairs, self.lexicon)
        return self._indexed

    def expected(self, pairs: SentencePairs) -> Iterator[tuple[Block, Floats, Floats]]:
        """Each block with its posteriors and log-probabilities."""
        for block, cells, own in self._of(pairs):
            yield block, *self.expect(block, self.lexicon.cell_probs(block, cells, own))

    def log_likelihood(self, pairs: SentencePairs) -> float:
        """log P(targets | sources) of all pairs, in nats."""
        return sum(float(log_probs.sum()) for _, _, log_probs in self.expected(pairs))

    def posteriors(self, pairs: SentencePairs) -> list[Floats]:
        """The posteriors [J, I + 1] of each pair, with the empty word in column 0."""
        found = [np.zeros((len(target), len(source) + 1)) for source, target in pairs]
        for block, posteriors, _ in self.expected(pairs):
            for row, of_row in zip(block.rows.tolist(), posteriors, strict=True):
                found[row] = of_row
        return found

    def links(self, pairs: SentencePairs) -> list[Links]:
        """The likeliest source word of each target word, if that is not the empty word."""
        return in_order(len(pairs), self.each_links(pairs))

    def each_links(self, pairs: SentencePairs) -> Iterator[tuple[int, Links]]:
        """As `links`, each with the number of its pair, block by block."""
        for block, cells, own in self._of(pairs):
            best = self.best(block, self.lexicon.cell_probs(block, cells, own))
            for row, sources in zip(block.rows.tolist(), best.tolist(), strict=True):
                yield row, frozenset((i - 1, j) for j, i in enumerate(sources) if i)

    def best(self, block: Block, probs: Floats) -> Ints:
        """The likeliest source [B, J] of each target word: 0 for the empty word, else its position plus 1."""
        posteriors, _ = self.expect(block, probs)
        return np.asarray(posteriors.argmax(-1))


def in_order(num_pairs: int, numbered: Iterable[tuple[int, Links]]) -> list[Links]:
    """Links by pair, from the number of each pair and its links; none for the others."""
    links: list[Links] = [frozenset()] * num_pairs
    for row, of_row in numbered:
        links[row] = of_row
    return links


def checked_lengths(arrays: Arrays, size: int, has_empty: bool) -> list[tuple[int, int]]:
    """The lengths (I, J) of tables of positions that have `size` entries in all: I J each, or (I + 1) J.

    Raises DataError for lengths that do not, before anything of their size is made.
    """
    lengths = arrays.get("lengths")
    if lengths is None or lengths.dtype != np.int64 or lengths.ndim != 2 or lengths.shape[1] != 2:
        raise DataError(f"'lengths' are not those of an aligner of this kind. {RESTORE}")
    listed = [(int(num_src), int(num_tgt)) for num_src, num_tgt in lengths]
    fits = all(num_src > 0 and num_tgt > 0 for num_src, num_tgt in listed)
    if not fits or sum((num_src + has_empty) * num_tgt for num_src, num_tgt in listed) != size:
        raise DataError(f"'lengths' do not fit the tables of positions. {RESTORE}")
    return listed


def checked(arrays: Arrays, name: str, shape: tuple[int | None, ...]) -> np.ndarray[Any, Any]:
    """An array of floats, at least 0, of the given shape (None: any size). Raises DataError for any other."""
    array = arrays.get(name)
    fits = array is not None and array.dtype == np.float64 and array.ndim == len(shape)
    fits = fits and all(size in (None, given) for size, given in zip(shape, array.shape, strict=True))  # type: ignore[union-attr]
    if array is None or not fits or not (array >= 0).all() or not np.isfinite(array).all():
        raise DataError(f"{name!r} is not an array of an aligner of this kind. {RESTORE}")
    return array
