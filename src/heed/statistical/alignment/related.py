"""Spelling as evidence about the lexical table, without any text but the one that is aligned.

**Stems.** A stem is the first `STEM` characters of a word. The table of stems, t(s' | s), has the same expected counts
and is smoothed in the same way. It gives the prior of t(f | e) the mean

    m(f | e) = t(stem of f | stem of e) · occurrences of f / occurrences of its stem

with the strength of γ counts, so that a rare form of a word is linked as its other forms are (a hierarchical Dirichlet
prior; MacKay & Peto 1995). A word that shares its stem with no other is aligned as without this prior.

**Spelling.** Names, numbers and cognates begin alike in both languages. A pair of words whose common beginning is the
share r of the longer one has r² `SPELLING` counts before any are seen, if the beginning has at least three characters
or is all of both words. Marks over and under letters do not count.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from typing import Self

import numpy as np

from heed.statistical.alignment.lexicon import Cells, Lexicon, distinct
from heed.statistical.alignment.pairs import FIRST, SentencePairs, Words
from heed.statistical.alignment.smoothing import Smoothing
from heed.statistical.predictor import Floats, Ints

STEM = 4
"""Characters of a stem."""
SPELLING = 10.0
"""Counts of a pair of equal words. Like `STEM` and γ, it was chosen on development data."""
_ALIKE = 3
"""Characters that words spelled alike have in common, if one has more."""
_AT_ONCE = 1 << 20
"""Entries that are compared at once."""


class Related:
    """The stems of the words of a table, and its entries of words that are spelled alike."""

    def __init__(self, lexicon: Lexicon, src_words: Words, tgt_words: Words, occurrences: Ints) -> None:
        """`occurrences`: of each target word in the text, [tgt_size]."""
        (self.src, src_size), (self.tgt, tgt_size) = _stems(src_words), _stems(tgt_words)
        self.stems = Lexicon(distinct(self._keys(lexicon, tgt_size)), src_size, tgt_size)
        missing = (len(self.stems.keys) + self.src).astype(np.int32)
        self.entries = np.concatenate([*map(self.stems.find, self._keys(lexicon, tgt_size)), missing])
        """[N + src_size]: the entry of the stems of each entry, and of those that the table does not have."""
        of_stems = np.bincount(self.tgt, occurrences, tgt_size)
        self.shares = occurrences / np.maximum(of_stems[self.tgt], 1)
        """[tgt_size]: of the occurrences of a stem, those of each word."""
        self.alike, self.pseudo_counts = _alike(lexicon, src_words, tgt_words)

    @classmethod
    def of(cls, lexicon: Lexicon, pairs: SentencePairs) -> Self | None:
        """Those of the words of a text; None if it has only their numbers."""
        if pairs.words is None:
            return None
        return cls(lexicon, *pairs.words, np.bincount(pairs.tgt.ids, minlength=pairs.tgt_size))

    def _keys(self, lexicon: Lexicon, tgt_size: int) -> Iterator[Ints]:
        """The keys of the entries in the table of stems, in parts."""
        for begin in range(0, len(lexicon.keys), _AT_ONCE):
            e, f = np.divmod(lexicon.keys[begin : begin + _AT_ONCE], lexicon.tgt_size)
            yield self.src[e] * tgt_size + self.tgt[f]

    def maximise(self, counts: Floats, smoothing: Smoothing) -> None:
        """Set the table of stems from expected counts of words, [N + src_size]."""
        of_stems = self.stems.new_counts()
        np.add.at(of_stems, self.entries, counts)
        self.stems.maximise(of_stems, smoothing)

    def means(self, part: slice, targets: Ints) -> Floats:
        """m of a part of the entries, whose target words are given."""
        return np.asarray(self.stems.probs[self.entries[part]] * self.shares[targets])

    def floors(self) -> Floats:
        """m of a target word that has no entry with a source word, [src_size]: that of an average one."""
        share = self.stems.num_targets / (len(self.tgt) - 1)
        return np.asarray(self.stems.probs[self.entries[-len(self.src) :]] * share)

    def without(self, src: Ints, tgt: Ints, cells: Cells, own: Floats) -> Floats:
        """m of cells without their own counts."""
        means = self.stems.without(self.src[src], self.tgt[tgt], self.entries[cells], own)
        means *= self.shares[tgt][:, :, None]
        return means


def _stems(words: Words) -> tuple[Ints, int]:
    """The stem of each word, and the number of stems."""
    stems = Words(word[:STEM] for word in words)
    return np.array([*range(FIRST), *(stems.numbers[word[:STEM]] for word in words)]), len(stems)


def _alike(lexicon: Lexicon, src_words: Words, tgt_words: Words) -> tuple[Ints, Floats]:
    """The entries of words that are spelled alike, and their pseudo-counts."""
    src, tgt = ([_plain(word) for word in words] for words in (src_words, tgt_words))
    begins = Words(word[:_ALIKE] for word in src)
    of_src = np.array([-1] * FIRST + [begins.numbers[word[:_ALIKE]] for word in src])
    of_tgt = np.array([-2] * FIRST + [begins.numbers.get(word[:_ALIKE], -2) for word in tgt])
    alike = [np.zeros(0, dtype=np.int64)]
    for begin in range(0, len(lexicon.keys), _AT_ONCE):
        e, f = np.divmod(lexicon.keys[begin : begin + _AT_ONCE], lexicon.tgt_size)
        alike.append(begin + np.flatnonzero(of_src[e] == of_tgt[f]))
    found = np.concatenate(alike)
    sides = (side.tolist() for side in np.divmod(lexicon.keys[found], lexicon.tgt_size))
    shares = [_shared(src[e - FIRST], tgt[f - FIRST]) for e, f in zip(*sides, strict=True)]
    return found, SPELLING * np.array(shares, dtype=np.float64) ** 2


def _plain(word: str) -> str:
    """A word without marks over and under its letters."""
    return "".join(char for char in unicodedata.normalize("NFD", word) if not unicodedata.combining(char)) or word


def _shared(one: str, other: str) -> float:
    """The common beginning of two words, as a share of the longer one."""
    common = next((place for place, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), None)
    return (min(len(one), len(other)) if common is None else common) / max(len(one), len(other))
