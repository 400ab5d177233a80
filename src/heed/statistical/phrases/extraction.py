"""Phrase pairs that are consistent with the word links of a sentence pair, and their orientations.

A pair of a source span and a target span is consistent if it contains a link, and no link leads from inside to outside
(Och & Ney 2004, section 3.1; Koehn, Och & Marcu 2003, section 4). Words without links may be at the ends of both spans.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from heed.statistical.alignment.pairs import Links
from heed.statistical.predictor import Ints

Span = tuple[int, int, int, int]
"""Begin and end of the source, begin and end of the target; ends are exclusive."""
MONOTONE, SWAP, DISCONTINUOUS = range(3)
"""Orientations of a phrase: right after the phrase before it, right before it, or neither."""


def consistent_spans(num_src: int, num_tgt: int, links: Links, longest: int) -> Iterator[Span]:
    """All consistent pairs of spans of at most `longest` words on either side."""
    of_src: list[list[int]] = [[] for _ in range(num_src)]
    first, last = [num_src] * num_tgt, [-1] * num_tgt  # source words that each target word is linked to
    for i, j in links:
        of_src[i].append(j)
        first[j], last[j] = min(first[j], i), max(last[j], i)
    for begin in range(num_src):
        low, high = num_tgt, -1
        for end in range(begin + 1, min(num_src, begin + longest) + 1):
            for j in of_src[end - 1]:
                low, high = min(low, j), max(high, j)
            if high < 0:
                continue
            if high - low >= longest:
                break
            if min(first[low : high + 1]) >= begin and max(last[low : high + 1]) < end:
                for span in _with_unlinked(low, high + 1, last, longest):
                    yield begin, end, *span


def _with_unlinked(low: int, high: int, last: Sequence[int], longest: int) -> Iterator[tuple[int, int]]:
    """A target span, and those that words without links at its ends make of it."""
    begin = low
    while True:
        end = high
        while end - begin <= longest:
            yield begin, end
            if end == len(last) or last[end] >= 0:
                break
            end += 1
        if begin == 0 or last[begin - 1] >= 0 or high - begin >= longest:
            return
        begin -= 1


def orientations(span: Span, num_src: int, num_tgt: int, links: Links) -> tuple[int, int]:
    """The orientation of a phrase pair to the phrase before it in the target, and of the one after it to it.

    They are those of the linked words at its corners (Koehn et al. 2005, section 2.2); both sentences begin and end
    with a linked pair of words.
    """
    begin, end, low, high = span
    before = _orientation(_linked(begin - 1, low - 1, num_src, num_tgt, links), (end, low - 1) in links)
    after = _orientation(_linked(end, high, num_src, num_tgt, links), (begin - 1, high) in links)
    return before, after


def _linked(i: int, j: int, num_src: int, num_tgt: int, links: Links) -> bool:
    return (i, j) in links or (i, j) == (-1, -1) or (i, j) == (num_src, num_tgt)


def _orientation(continues: bool, turns: bool) -> int:
    return MONOTONE if continues and not turns else SWAP if turns and not continues else DISCONTINUOUS


@dataclass(frozen=True, eq=False)
class LinkedText:
    """Sentence pairs with their links, as flat arrays."""

    src: Ints
    """[S]: the source words of all sentences, one after another."""
    tgt: Ints
    """[T]: the target words."""
    links: Ints
    """[L, 2], sorted by target, then by source: positions in `src` and `tgt`."""
    spans: Ints
    """[P, 4]: the consistent phrase pairs, as positions in `src` and `tgt`."""
    orientations: Ints
    """[P, 2]: see `orientations`."""

    @classmethod
    def of(
        cls, pairs: Iterable[tuple[Sequence[int], Sequence[int]]], links: Iterable[Links], longest: int
    ) -> LinkedText:
        """Extract all phrases of at most `longest` words from sentence pairs."""
        src: list[int] = []
        tgt: list[int] = []
        flat_links: list[tuple[int, int]] = []
        spans: list[Ints] = []
        turns: list[Ints] = []
        for (source, target), linked in zip(pairs, links, strict=True):
            here = list(consistent_spans(len(source), len(target), linked, longest))
            at = np.array([len(src), len(src), len(tgt), len(tgt)])
            spans.append(np.array(here, dtype=np.int64).reshape(-1, 4) + at)
            both = [orientations(span, len(source), len(target), linked) for span in here]
            turns.append(np.array(both, dtype=np.int64).reshape(-1, 2))
            flat_links += [(i + len(src), j + len(tgt)) for j, i in sorted((j, i) for i, j in linked)]
            src += source
            tgt += target
        return cls(
            np.array(src, dtype=np.int64), np.array(tgt, dtype=np.int64),
            np.array(flat_links, dtype=np.int64).reshape(-1, 2),
            np.concatenate([np.empty((0, 4), dtype=np.int64), *spans]),
            np.concatenate([np.empty((0, 2), dtype=np.int64), *turns]),
        )  # fmt: skip
