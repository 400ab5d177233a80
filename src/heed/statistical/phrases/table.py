"""Phrase table: phrase pairs with their features, as sorted arrays.

| feature | of a phrase pair (f̅, e̅) |
| --- | --- |
| `p(f\\|e)`, `p(e\\|f)` | its share of the occurrences of e̅, and of those of f̅ |
| `lex(f\\|e)`, `lex(e\\|f)` | the lexical weights, of the likeliest links |
| `before: ...`, `after: ...` | the share of each orientation to the phrase before it, and of the phrase after it |

All are logarithms. The order of the first four is that of a Moses phrase table. Orientations are smoothed by half a
count each (Koehn et al. 2005).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from heed.core.errors import DataError
from heed.statistical.phrases.extraction import LinkedText
from heed.statistical.phrases.lexical import span_sums, word_weights
from heed.statistical.phrases.phrase_ids import ROOT, PhraseTree, number_phrases
from heed.statistical.predictor import Floats, Ints, starts
from heed.statistical.saved_arrays import Arrays

TABLE_FEATURES = ("p(f|e)", "lex(f|e)", "p(e|f)", "lex(e|f)")
NUM_ORIENTATIONS = 3
MOST_LINKED = 7
"""Longest phrase whose links fit into 64 bits."""
MOST_OCCURRENCES = 2**31 - 1
"""Of a phrase pair: counts are saved in 32 bits."""
_HALF = 0.5
"""Added to the count of each orientation."""


@dataclass(frozen=True, eq=False)
class PhraseTable:
    """R phrase pairs, sorted by source phrase, then by target phrase."""

    sources: PhraseTree
    targets: PhraseTree
    offsets: Ints
    """[nodes of `sources` + 1]: the pairs of each source phrase."""
    tgt_nodes: Ints
    """[R]: the target phrase of each pair."""
    features: NDArray[np.float32]
    """[R, 4]: TABLE_FEATURES."""
    orientations: NDArray[np.float32]
    """[R, 6]: before and after, each monotone, swap, discontinuous."""
    links: Ints
    """[R]: bit 7 * i + j is set if word i of the source phrase is linked to word j of the target phrase."""
    counts: Ints
    """[R]: the number of occurrences."""

    def __len__(self) -> int:
        return len(self.tgt_nodes)

    @cached_property
    def src_nodes(self) -> Ints:
        """[R]: the source phrase of each pair."""
        return np.repeat(np.arange(len(self.offsets) - 1), np.diff(self.offsets))

    @cached_property
    def target_words(self) -> tuple[Ints, Ints]:
        """The words of all target phrases one after another, and where each begins; that of the root is empty."""
        return self.targets.all_words(np.arange(len(self.targets)))

    def target(self, node: int) -> tuple[int, ...]:
        """The words of a target phrase."""
        words, bounds = self.target_words
        return tuple(words[bounds[node] : bounds[node + 1]].tolist())

    def rows(self, node: int) -> range:
        """The pairs of a source phrase."""
        return range(int(self.offsets[node]), int(self.offsets[node + 1]))

    def links_of(self, row: int, num_tgt: int) -> list[tuple[int, int]]:
        """The links inside a pair, whose target has `num_tgt` words."""
        bits = int(self.links[row])
        return [(i, j) for i in range(MOST_LINKED) for j in range(num_tgt) if bits >> (MOST_LINKED * i + j) & 1]

    def arrays(self) -> dict[str, NDArray[np.generic]]:
        """The arrays to save."""
        return {
            "sources": self.sources.keys, "targets": self.targets.keys, "offsets": self.offsets,
            "tgt_nodes": self.tgt_nodes.astype(np.int32), "features": self.features,
            "orientations": self.orientations, "links": self.links, "counts": self.counts.astype(np.int32),
        }  # fmt: skip

    @classmethod
    def from_arrays(cls, arrays: Arrays, num_words: int) -> PhraseTable:
        """Read what `arrays` returned. Raises DataError for anything else."""
        names = ("sources", "targets", "offsets", "tgt_nodes", "features", "orientations", "links", "counts")
        if missing := [name for name in names if name not in arrays]:
            raise DataError(f"not a phrase table: {missing[0]!r} is missing.")
        numbers = [np.asarray(arrays[name]) for name in names]
        whole = all(np.issubdtype(numbers[i].dtype, np.integer) for i in (0, 1, 2, 3, 6, 7))
        if not whole or any(numbers[i].ndim != (2 if i in (4, 5) else 1) for i in range(len(names))):
            raise DataError("not a phrase table: its arrays have other types.")
        src, tgt, offsets, nodes, features, turns, links, counts = numbers
        table = cls(
            PhraseTree(src.astype(np.int64), num_words), PhraseTree(tgt.astype(np.int64), num_words),
            offsets.astype(np.int64), nodes.astype(np.int64), features.astype(np.float32), turns.astype(np.float32),
            links.astype(np.int64), counts.astype(np.int64),
        )  # fmt: skip
        if not table._is_consistent():
            raise DataError("not a phrase table of this vocabulary: its sizes and numbers are inconsistent.")
        return table

    def _is_consistent(self) -> bool:
        size = len(self)
        shapes = self.features.shape == (size, 4) and self.orientations.shape == (size, 2 * NUM_ORIENTATIONS)
        if not shapes or len(self.links) != size or len(self.counts) != size:
            return False
        if not (self.sources.is_consistent(MOST_LINKED) and self.targets.is_consistent(MOST_LINKED)):
            return False
        if len(self.offsets) != len(self.sources) + 1 or self.offsets[-1] != size:
            return False
        if self.offsets[:2].any() or (np.diff(self.offsets) < 0).any():  # the root is not a phrase and has no pairs
            return False
        if (self.tgt_nodes <= ROOT).any() or (self.tgt_nodes >= len(self.targets)).any():
            return False
        ascends = np.diff(self.src_nodes * len(self.targets) + self.tgt_nodes) > 0
        finite = np.isfinite(self.features).all() and np.isfinite(self.orientations).all()
        counted = (self.counts >= 1).all() and (self.counts <= MOST_OCCURRENCES).all()
        return bool(ascends.all() and finite and counted and self._links_are_inside())

    def _links_are_inside(self) -> bool:
        """Whether no link leads out of its phrases."""
        lengths = np.arange(MOST_LINKED + 1)
        of_target = (1 << lengths) - 1
        of_pair = [[sum(int(bits) << (MOST_LINKED * i) for i in range(n)) for bits in of_target] for n in lengths]
        allowed = np.array(of_pair)[self.sources.lengths[self.src_nodes], self.targets.lengths[self.tgt_nodes]]
        return bool((self.links & ~allowed == 0).all())


def score_phrases(text: LinkedText, num_words: int) -> PhraseTable:
    """The table of all phrase pairs of a text."""
    begins, ends, lows, highs = text.spans.T
    sources, src_nodes = number_phrases(text.src, begins, ends, num_words)
    targets, tgt_nodes = number_phrases(text.tgt, lows, highs, num_words)
    pairs, _first, of_pair, counts = np.unique(src_nodes * len(targets) + tgt_nodes, True, True, True)
    src, tgt = pairs // len(targets), pairs % len(targets)
    num_src, num_tgt = (np.bincount(nodes, counts)[nodes] for nodes in (src, tgt))
    backwards = text.links[:, ::-1][np.lexsort((text.links[:, 1], text.links[:, 0]))]
    lex_e = span_sums(word_weights(text.tgt, text.src, text.links), lows, highs)
    lex_f = span_sums(word_weights(text.src, text.tgt, backwards), begins, ends)
    best = np.lexsort((lex_e + lex_f, of_pair))[starts(counts)[1:] - 1]  # the occurrence with the likeliest links
    features = np.stack(
        [np.log(counts / num_tgt), _largest(lex_f, of_pair, len(pairs)), np.log(counts / num_src),
         _largest(lex_e, of_pair, len(pairs))], axis=1
    )  # fmt: skip
    turns = [_shares(of_pair * NUM_ORIENTATIONS + side, len(pairs)) for side in text.orientations.T]
    return PhraseTable(
        sources, targets, starts(np.bincount(src, minlength=len(sources))), tgt, features.astype(np.float32),
        np.concatenate(turns, axis=1).astype(np.float32), _links_inside(text, text.spans[best]), counts,
    )  # fmt: skip


def _largest(values: Floats, groups: Ints, num_groups: int) -> Floats:
    largest = np.full(num_groups, -np.inf)
    np.maximum.at(largest, groups, values)
    return largest


def _shares(keys: Ints, num_pairs: int) -> Floats:
    """The logarithm of the smoothed share of each orientation, [R, 3]."""
    counts = np.bincount(keys, minlength=num_pairs * NUM_ORIENTATIONS).reshape(-1, NUM_ORIENTATIONS) + _HALF
    return np.asarray(np.log(counts / counts.sum(1, keepdims=True)))


def _links_inside(text: LinkedText, spans: Ints) -> Ints:
    """The links inside each span as bits, if the phrases are short enough."""
    begins, ends, lows, highs = spans.T
    if (ends - begins).max(initial=0) > MOST_LINKED or (highs - lows).max(initial=0) > MOST_LINKED:
        return np.zeros(len(spans), dtype=np.int64)
    bounds = np.searchsorted(text.links[:, 1], np.arange(len(text.tgt) + 1))
    sizes = bounds[highs] - bounds[lows]
    owners = np.repeat(np.arange(len(spans)), sizes)
    inner = text.links[np.arange(len(owners)) + np.repeat(bounds[lows] - starts(sizes)[:-1], sizes)]
    bits = np.left_shift(1, MOST_LINKED * (inner[:, 0] - begins[owners]) + inner[:, 1] - lows[owners])
    linked = np.zeros(len(spans), dtype=np.int64)
    np.bitwise_or.at(linked, owners, bits)
    return linked
