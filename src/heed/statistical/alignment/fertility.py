"""Fertilities of IBM Models 3 to 5, and sums over some alignments of a pair (Brown et al. 1993, section 4.4).

A source word e produces φ target words with probability n(φ | e), and the empty word φ_0 of the J words with

    C(J - φ_0, φ_0) p_1^φ_0 (1 - p_1)^(J - 2 φ_0)          so P = 0 where it has more than half of the words

Each further factor of P(f, a | e) is an entry of a table. A model lists these entries for given alignments
(`Fertile.entries`); scores and expected counts follow.

The sum over all alignments is intractable for fertilities. It is exact here where a pair has at most `MOST_ALIGNMENTS`
alignments. Otherwise it is over the neighbourhood of the best alignment that hill climbing reaches from the links of
the hidden Markov model: all alignments which differ in the source of one word, or of two that are exchanged, with the
`MOST_SOURCES` likeliest sources of each word. The likelihood is then a lower bound, and no law of expectation
maximisation holds exactly. Pairs with more than `MOST_WORDS` target words keep the links of the hidden Markov model,
since neighbourhoods grow with the square of that number.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from itertools import combinations
from math import comb, lgamma, log
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from heed.statistical.alignment.aligner import Aligner, Arrays, checked
from heed.statistical.alignment.hmm import Hmm
from heed.statistical.alignment.lexicon import Lexicon
from heed.statistical.alignment.pairs import Block
from heed.statistical.alignment.smoothing import NONE, Smoothing
from heed.statistical.alignment.table import Table
from heed.statistical.predictor import Floats, Ints

MAX_FERTILITY = 9
"""Larger fertilities share the probability of this one."""
MOST_ALIGNMENTS = 256
"""Of a pair, for exact sums."""
MOST_SOURCES = 6
"""Likeliest sources of a word that hill climbing tries."""
MOST_WORDS = 100
"""Target words of a pair, for hill climbing."""
_MOST_STEPS = 30
_MOST_CELLS = 1 << 19
"""Target words of all alignments that are scored at once."""


class Weighted(NamedTuple):
    """K alignments of each pair of a block, as sources of its target words, and their probabilities."""

    alignments: Ints
    """[B, K, J]: 0 for the empty word, else a position from 1."""
    weights: Floats
    """[B, K], which sum to 1."""
    log_probs: Floats
    """[B]: log of the sum of P(f, a | e)."""


class Fertile(Aligner):
    """An aligner whose source words have fertilities."""

    is_guided: ClassVar[bool] = False
    """Whether hill climbing follows another model (`guides`)."""
    is_unordered: ClassVar[bool] = False
    """Whether the words of a source word are placed in any order, so that φ! orders give the same alignment."""

    def __init__(self, lexicon: Lexicon, smoothing: Smoothing = NONE, p_one: float = 0.1) -> None:
        """`p_one`: p_1, which is not estimated."""
        super().__init__(lexicon, smoothing)
        self.p_one = p_one
        self.start = Hmm(lexicon, smoothing)
        """The model from whose links hill climbing starts."""
        self.teacher: Aligner | None = None
        """The model whose alignments are counted in the first iteration."""
        self.tables = {"fertility": Table.rectangle(lexicon.src_size, MAX_FERTILITY + 1, smoothing)}
        """The factors of P(f, a | e) other than t and that of the empty word, by name."""
        self.last = Weighted(np.zeros((0, 0, 0), dtype=np.int64), np.zeros((0, 0)), np.zeros(0))
        """Of the last block of `expect`."""

    @classmethod
    def after(cls, other: Aligner) -> Self:
        """A model that counts the alignments of another one first."""
        new = super().after(other)
        new.teacher = other
        new.start = other.start if isinstance(other, Fertile) else other if isinstance(other, Hmm) else new.start
        return new

    @abstractmethod
    def entries(self, block: Block, alignments: Ints) -> dict[str, Ints]:
        """The numbers of the entries [B, K, any] of each table that are factors of P(f, a | e)."""

    def guides(self, block: Block, alignments: Ints) -> dict[str, Ints]:
        """As `entries`, of the model that hill climbing follows, by default this one."""
        return self.entries(block, alignments)

    def fertilities(self, block: Block, alignments: Ints) -> Ints:
        """φ [B, K, I + 1] of each source word, with that of the empty word in column 0."""
        num, many, _ = alignments.shape
        width = block.shape[0] + 1
        flat = alignments + (np.arange(num * many) * width).reshape(num, many, 1)
        return np.bincount(flat.ravel(), minlength=num * many * width).reshape(num, many, width)

    def fertility_entries(self, block: Block, fertilities: Ints) -> Ints:
        """The entries of the table of fertilities, [B, K, I]."""
        return np.asarray(block.src[:, None, :] * (MAX_FERTILITY + 1) + np.minimum(fertilities[..., 1:], MAX_FERTILITY))

    def score(self, block: Block, log_t: Floats, alignments: Ints, guided: bool = False) -> Floats:
        """log P(f, a | e) [B, K] of alignments, from log t [B, J, I + 1]; `guided`: by the model of hill climbing."""
        num, _, num_tgt = alignments.shape
        scores = log_t[np.arange(num)[:, None, None], np.arange(num_tgt), alignments].sum(-1)
        fertilities = self.fertilities(block, alignments)
        scores += _empty(num_tgt, self.p_one)[fertilities[..., 0]]
        if self.is_unordered:
            scores += _LOG_FACTORIALS[fertilities[..., 1:]].sum(-1)
        for name, entries in (self.guides if guided else self.entries)(block, alignments).items():
            scores += self.tables[name].logs[entries].sum(-1)
        return np.asarray(scores)

    # --- sums over alignments --------------------------------------------------------------------------

    def expect(self, block: Block, probs: Floats) -> tuple[Floats, Floats]:
        teacher = self.teacher
        self.last = self.weighted(block, probs) if teacher is None else _taught(teacher, block, probs)
        return _posteriors(self.last, block.shape[0] + 1), self.last.log_probs

    def weighted(self, block: Block, probs: Floats) -> Weighted:
        """The alignments of a block that are summed over."""
        num_src, num_tgt = block.shape
        log_t = np.log(np.maximum(probs, np.finfo(np.float64).tiny))
        if (num_src + 1) ** num_tgt <= MOST_ALIGNMENTS:
            every = np.indices((num_src + 1,) * num_tgt).reshape(num_tgt, -1).T
            alignments = np.broadcast_to(every, (len(block.rows), *every.shape))
            return _normalised(alignments, self.score(block, log_t, alignments))
        order, _ = self.start.expect(block, probs)
        sources = np.argsort(-order, axis=-1, kind="stable")[..., :MOST_SOURCES]
        if num_tgt > MOST_WORDS:
            alone = _admissible(sources)[:, None, :]
            return _normalised(alone, self.score(block, log_t, alone))
        size = max(1, _MOST_CELLS // (num_tgt * (num_tgt * MOST_SOURCES + num_tgt**2)))
        parts = [
            self._climb(_part(block, rows), log_t[rows], sources[rows])
            for rows in (slice(begin, begin + size) for begin in range(0, len(block.rows), size))
        ]
        return Weighted(*(np.concatenate(each) for each in zip(*parts, strict=True)))

    def _climb(self, block: Block, log_t: Floats, sources: Ints) -> Weighted:
        """The neighbourhood of the best alignment that steps to better neighbours reach."""
        centres = _admissible(sources)
        neighbours = _neighbours(centres, sources)
        scores = self.score(block, log_t, neighbours, guided=True)
        for _ in range(_MOST_STEPS):
            rows = np.flatnonzero(scores.max(1) > scores[:, 0] + 1e-9)
            if not len(rows):
                break
            centres[rows] = neighbours[rows, scores[rows].argmax(1)]
            part = Block(block.rows[rows], block.src[rows], block.tgt[rows])
            neighbours[rows] = _neighbours(centres[rows], sources[rows])
            scores[rows] = self.score(part, log_t[rows], neighbours[rows], guided=True)
        if self.is_guided:
            scores = self.score(block, log_t, neighbours)
        return _normalised(neighbours, np.where(_is_new(neighbours), scores, -np.inf))

    def best(self, block: Block, probs: Floats) -> Ints:
        """The best alignment."""
        weighted = self.weighted(block, probs)
        return np.asarray(weighted.alignments[np.arange(len(block.rows)), weighted.weights.argmax(1)])

    # --- estimation ------------------------------------------------------------------------------------

    def begin(self) -> None:
        self._counts = {name: np.zeros(len(table.logs)) for name, table in self.tables.items()}

    def count(self, block: Block, posteriors: Floats) -> None:
        alignments, weights = self.last.alignments, self.last.weights
        for rows in _slices(alignments):
            part = _part(block, rows)
            factors = self.entries(part, alignments[rows])
            if self.is_guided:
                factors = {**self.guides(part, alignments[rows]), **factors}
            for name, entries in factors.items():
                repeated = np.broadcast_to(weights[rows][..., None], entries.shape)
                np.add.at(self._counts[name], entries.ravel(), repeated.ravel())

    def finish(self) -> None:
        self.teacher = None
        for name, counts in self._counts.items():
            self.tables[name] = self.tables[name].maximised(counts)

    def parameters(self) -> dict[str, np.ndarray[Any, Any]]:
        tables = {f"table_{name}": table.probs for name, table in self.tables.items()}
        start = {f"start_{name}": array for name, array in self.start.parameters().items()}
        return {"p_one": np.array([self.p_one]), **tables, **start}

    def restore(self, arrays: Arrays) -> None:
        self.p_one = float(checked(arrays, "p_one", (1,))[0])
        self.start.restore({name.removeprefix("start_"): array for name, array in arrays.items()})
        for name, table in self.tables.items():
            self.tables[name] = table.restored(checked(arrays, f"table_{name}", table.probs.shape))


_LOG_FACTORIALS = np.array([lgamma(n + 1) for n in range(4096)])


def _empty(num_tgt: int, p_one: float) -> Floats:
    """log of the probability of each φ_0, [J + 1]."""
    most = num_tgt // 2
    logs = [log(comb(num_tgt - n, n)) + n * log(p_one) + (num_tgt - 2 * n) * log(1 - p_one) for n in range(most + 1)]
    return np.array([*logs, *[-np.inf] * (num_tgt - most)])


def _taught(teacher: Aligner, block: Block, probs: Floats) -> Weighted:
    """The alignments of a teacher: its neighbourhoods, or the most probable alignment."""
    if isinstance(teacher, Fertile):
        return teacher.weighted(block, probs)
    posteriors, log_probs = teacher.expect(block, probs)
    return Weighted(posteriors.argmax(-1)[:, None, :], np.ones((len(block.rows), 1)), log_probs)


def _normalised(alignments: Ints, scores: Floats) -> Weighted:
    top = scores.max(1, keepdims=True)
    weights = np.exp(scores - top)
    norms = weights.sum(1, keepdims=True)
    return Weighted(alignments, weights / norms, (top + np.log(norms))[:, 0])


def _posteriors(weighted: Weighted, width: int) -> Floats:
    """The probability [B, J, I + 1] of each source of each target word."""
    num, _, num_tgt = weighted.alignments.shape
    places = (np.arange(num)[:, None, None] * num_tgt + np.arange(num_tgt)) * width + weighted.alignments
    weights = np.broadcast_to(weighted.weights[..., None], places.shape)
    sums = np.bincount(places.ravel(), weights.ravel(), num * num_tgt * width)
    return np.asarray(sums, dtype=np.float64).reshape(num, num_tgt, width)


def _admissible(sources: Ints) -> Ints:
    """The likeliest source of each word, but of at most half the words the empty word; [B, J]."""
    centres = sources[..., 0].copy()
    second = np.where(sources[..., 0] == 0, sources[..., min(1, sources.shape[-1] - 1)], sources[..., 0])
    many = 2 * (centres == 0).sum(-1) > centres.shape[1]
    centres[many] = second[many]
    return centres


def _neighbours(centres: Ints, sources: Ints) -> Ints:
    """Each alignment [B, J], then those with another source of a word, then those with two exchanged; [B, K, J]."""
    num, num_tgt = centres.shape
    most = sources.shape[-1]
    pairs = np.array(list(combinations(range(num_tgt), 2)), dtype=np.int64).reshape(-1, 2)
    neighbours = np.repeat(centres[:, None, :], 1 + num_tgt * most + len(pairs), axis=1)
    moves = 1 + np.arange(num_tgt * most)
    neighbours[:, moves, np.arange(num_tgt).repeat(most)] = sources.reshape(num, -1)
    swaps = 1 + num_tgt * most + np.arange(len(pairs))
    neighbours[:, swaps, pairs[:, 0]] = centres[:, pairs[:, 1]]
    neighbours[:, swaps, pairs[:, 1]] = centres[:, pairs[:, 0]]
    return neighbours


def _is_new(neighbours: Ints) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Which neighbours differ from the first alignment, with that itself; [B, K]."""
    new: np.ndarray[Any, np.dtype[np.bool_]] = (neighbours != neighbours[:, :1]).any(-1)
    new[:, 0] = True
    return new


def _part(block: Block, rows: slice) -> Block:
    return Block(block.rows[rows], block.src[rows], block.tgt[rows])


def _slices(alignments: Ints) -> Iterator[slice]:
    """Rows of alignments [B, K, J] in parts of about `_MOST_CELLS` words."""
    size = max(1, _MOST_CELLS // (alignments.shape[1] * alignments.shape[2]))
    for begin in range(0, len(alignments), size):
        yield slice(begin, begin + size)
