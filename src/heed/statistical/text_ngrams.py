"""N-grams of words and characters of texts, as hashes, for linear models.

A text is in lower case, with single blanks. Its words are runs of letters and digits with their marks and joiners (as
in `heed.text.words`), and each other character that is no blank is a word too; n-grams of words may include the
beginning or the end of the text. An n-gram of characters lies between blanks, and may include the blank at either end.
Both are computed for many texts at once with NumPy: an n-gram is the polynomial hash of its characters modulo 2^64,
with mixed bits, so that no table of strings is needed, and two different n-grams of a corpus practically never share a
hash.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from heed.text.words import JOINERS, is_mark

Hashes = NDArray[np.uint64]
Ints = NDArray[np.int64]

_BASE = 0x9E3779B97F4A7C15
_INVERSE = pow(_BASE, -1, 1 << 64)
_END = 10  # a line feed ends each text
KINDS = ("words", "characters")
"""The kinds of n-grams; each kind is a block of features with its own norm."""


@dataclass(frozen=True)
class NgramOrders:
    """The n-grams that are features: of `words` 1 to this many words, and of `characters`."""

    words: int = 2
    min_characters: int = 2
    characters: int = 5
    """0: no n-grams of characters."""
    cut_at_marks: bool = False
    """Whether marks and joiners are words of their own, as in models of earlier versions."""


@dataclass(frozen=True)
class Occurrences:
    """The n-grams of one kind in some texts, in no particular order."""

    text: NDArray[np.int32]
    """Number of the text that each is in [N]."""
    hashes: Hashes
    begin: NDArray[np.int32]
    """Where each begins in the joined texts [N]."""
    end: NDArray[np.int32]


@dataclass(frozen=True)
class Ngrams:
    """The occurrences of each kind, and the characters that their places refer to."""

    kinds: tuple[Occurrences, ...]
    joined: str
    beginnings: Ints
    """Where each text begins in `joined`."""


def normal_form(text: str) -> str:
    """The text in lower case with single blanks, and one at each end."""
    return f" {' '.join(text.lower().split())} "


def ngrams_of(texts: Sequence[str], orders: NgramOrders, salt: int = 0) -> Ngrams:
    """The n-grams of texts; another `salt` gives other hashes, as for the second texts of pairs."""
    joined = "\n".join(["", *map(normal_form, texts), ""])
    codes = np.frombuffer(joined.encode("utf-32-le", "surrogatepass"), dtype="<u4")
    classes = _classes(codes, orders.cut_at_marks)
    is_end = codes == _END
    number = (np.cumsum(is_end) - is_end - 1).astype(np.int32)
    mixed = _mix(codes.astype(np.uint64) + np.uint64(salt * 1_000_003 + 77))
    kinds = [_of_words(mixed, classes, number, orders.words)]
    if orders.characters:
        kinds.append(_of_characters(mixed, classes, number, orders.min_characters, orders.characters))
    return Ngrams(tuple(kinds), joined, np.flatnonzero(is_end)[: len(texts)] + 1)


_BETWEEN, _BLANK, _LETTER, _SIGN, _MARK, _JOINER = range(6)


def _classes(codes: NDArray[np.uint32], cut_at_marks: bool) -> NDArray[np.uint8]:
    """The class of each character: end of a text, blank, inside a word, other sign."""
    table = np.zeros(int(codes.max(initial=0)) + 1, dtype=np.uint8)
    for code in np.flatnonzero(np.bincount(codes, minlength=1)):
        table[code] = _class(chr(code))
    table[_END : _END + 1] = _BETWEEN
    classes = table[codes]
    if not cut_at_marks and (classes >= _MARK).any():
        _join(classes, codes)
    classes[classes >= _MARK] = _SIGN
    return classes


def _class(char: str) -> int:
    if char.isalnum() or char == "_":
        return _LETTER
    return _BLANK if char.isspace() else _JOINER if char in JOINERS else _MARK if is_mark(char) else _SIGN


def _join(classes: NDArray[np.uint8], codes: NDArray[np.uint32]) -> None:
    """Make letters of the marks and joiners that belong to a word, by the rules of `split_words`."""
    places = np.arange(len(classes))
    joins = classes >= _MARK
    before = np.maximum.accumulate(np.where(joins, 0, places))  # the ends of texts are at both ends
    of_word = joins & (classes[before] == _LETTER)
    joiner = of_word & (classes == _JOINER)
    following = np.minimum.accumulate(np.where(joiner, len(classes) - 1, places)[::-1])[::-1]
    goes_on = (classes == _LETTER) | (of_word & ~joiner)
    ends_word = np.concatenate([[False], classes[:-1] == _MARK]) & (codes == ord("\u200d"))
    classes[of_word & (~joiner | goes_on[following] | ends_word)] = _LETTER


def _mix(x: Hashes) -> Hashes:
    """SplitMix64's finaliser, in place: every input bit reaches every output bit."""
    x ^= x >> np.uint64(30)
    x *= np.uint64(0xBF58476D1CE4E5B9)
    x ^= x >> np.uint64(27)
    x *= np.uint64(0x94D049BB133111EB)
    x ^= x >> np.uint64(31)
    return x


def _of_words(mixed: Hashes, classes: NDArray[np.uint8], number: NDArray[np.int32], order: int) -> Occurrences:
    """N-grams of 1 to `order` words; longer ones than a word may include the ends of the text."""
    is_letter = classes == _LETTER
    single = (classes == _SIGN) | (classes == _BETWEEN)  # the end of a text separates it from the next one
    before = np.concatenate([[False], is_letter[:-1]])
    after = np.concatenate([is_letter[1:], [False]])
    begin = np.flatnonzero((is_letter & ~before) | single).astype(np.int32)
    end = np.flatnonzero((is_letter & ~after) | single).astype(np.int32) + 1
    words = _substrings(mixed, begin, end)
    ends = classes[begin] == _BETWEEN
    text = number[begin]
    parts = []
    rolling = words
    for length in range(1, order + 1):
        last = np.arange(length - 1, len(words))
        first = last - length + 1
        rolling = words if length == 1 else rolling[: len(last)] * np.uint64(_BASE) + words[last]
        crosses = ends[first] & ends[last]
        for between in range(1, length - 1):
            crosses |= ends[first + between]
        kept = np.flatnonzero(~crosses)
        of_text = np.where(ends[first[kept]], text[last[kept]], text[first[kept]])
        hashes = _mix(rolling[kept] + np.uint64(length))
        parts.append((of_text, hashes, begin[first[kept]], end[last[kept]]))
    return _joined(parts)


def _substrings(mixed: Hashes, begin: NDArray[np.int32], end: NDArray[np.int32]) -> Hashes:
    """Hashes of [begin, end): Σ c_i b^(i - begin), from prefix sums."""
    powers = np.cumprod(np.full(len(mixed) + 1, _BASE, dtype=np.uint64))
    inverse = np.cumprod(np.full(len(mixed) + 1, _INVERSE, dtype=np.uint64))
    sums = np.concatenate([np.zeros(1, dtype=np.uint64), np.cumsum(mixed * powers[: len(mixed)])])
    return _mix((sums[end] - sums[begin]) * inverse[begin])


def _of_characters(
    mixed: Hashes, classes: NDArray[np.uint8], number: NDArray[np.int32], shortest: int, longest: int
) -> Occurrences:
    """N-grams of `shortest` to `longest` characters with blanks at most at their ends."""
    is_blank = classes <= _BLANK
    is_between = classes == _BETWEEN
    parts = []
    rolling = mixed
    broken = np.zeros(len(mixed), dtype=bool)
    for length in range(2, longest + 1):
        size = max(0, len(mixed) - length + 1)
        rolling = rolling[:size] * np.uint64(_BASE) + mixed[length - 1 :]
        broken = broken[:size] | (is_blank[length - 2 : length - 2 + size] if length > 2 else False)
        if length < shortest:
            continue
        kept = np.flatnonzero(~(broken | is_between[:size] | is_between[length - 1 :])).astype(np.int32)
        hashes = _mix(rolling[kept] + np.uint64(100 + length))
        parts.append((number[kept], hashes, kept, kept + np.int32(length)))
    return _joined(parts)


def _joined(parts: Sequence[tuple[NDArray[np.int32], Hashes, NDArray[np.int32], NDArray[np.int32]]]) -> Occurrences:
    columns = [np.concatenate(column) for column in zip(*parts, strict=True)]
    return Occurrences(columns[0].astype(np.int32), columns[1], columns[2], columns[3])


class Counted:
    """Counts of hashes over many texts, in bounded memory: rare ones are forgotten when there are too many."""

    def __init__(self, most: int = 6_000_000) -> None:
        self.most = most
        self.hashes: Hashes = np.empty(0, dtype=np.uint64)
        self.counts: Ints = np.empty(0, dtype=np.int64)
        self._floor = 1

    def add(self, hashes: Hashes) -> None:
        """Count occurrences."""
        new, numbers = np.unique(hashes, return_counts=True)
        at = np.searchsorted(self.hashes, new)
        known = self.hashes[np.minimum(at, max(0, len(self.hashes) - 1))] == new if len(self.hashes) else at < 0
        self.counts[at[known]] += numbers[known]
        fresh = ~known
        self.hashes = np.insert(self.hashes, at[fresh], new[fresh])
        self.counts = np.insert(self.counts, at[fresh], numbers[fresh])
        while len(self.hashes) > self.most:
            self._floor += 1
            self._keep(self.counts >= self._floor)

    def frequent(self, least: int, most: int) -> Hashes:
        """The sorted hashes that occur at least `least` times, at most `most` of them, the most frequent ones.

        Of equally frequent ones, all or none are kept, except where none would remain at all.
        """
        counts = self.counts[self.counts >= least]
        if len(counts) > most:
            least = int(np.partition(counts, -most)[-most])
            if least == counts.max():
                return self.hashes[np.flatnonzero(self.counts == least)[:most]]
            least += int((counts >= least).sum() > most)
        return self.hashes[self.counts >= least]

    def _keep(self, which: NDArray[np.bool_]) -> None:
        self.hashes, self.counts = self.hashes[which], self.counts[which]


def columns_of(hashes: Hashes, vocabulary: Hashes) -> Ints:
    """The place of each hash in a sorted vocabulary; -1 for one that is not in it."""
    if not len(vocabulary):
        return np.full(len(hashes), -1, dtype=np.int64)
    at = np.searchsorted(vocabulary, hashes)
    at[at == len(vocabulary)] = 0
    return np.where(vocabulary[at] == hashes, at, -1)


MAX_COUNT = 255
"""Larger counts of an n-gram in a text are stored as this one."""


def incidence(
    found: Occurrences, vocabulary: Hashes, num_texts: int
) -> tuple[NDArray[np.int32], Ints, NDArray[np.uint8]]:
    """The distinct n-grams of each text that are in the vocabulary: columns, where each text begins, and counts."""
    at = columns_of(found.hashes, vocabulary)
    known = at >= 0
    keys, counts = np.unique((found.text[known].astype(np.int64) << 32) | at[known], return_counts=True)
    rows = np.bincount(keys >> 32, minlength=num_texts)
    offsets = np.concatenate([[0], np.cumsum(rows)]).astype(np.int64)
    return (keys & 0xFFFFFFFF).astype(np.int32), offsets, np.minimum(counts, MAX_COUNT).astype(np.uint8)
