"""n-gram counts of a text, as sorted arrays.

All n-grams up to the order are counted that end at a word or at the end of a sentence; each sentence is preceded by one
begin of sentence. The n-grams of one length are one sorted array. The position of the n-gram that ends at a token is
derived from that of the (n - 1)-gram that ends at the token before, with one sort of numbers for each length.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, islice

import numpy as np

from heed.core.errors import DataError
from heed.statistical.predictor import Bools, Ints

_CHUNK = 200_000
"""Sentences counted at once: memory grows with the number of different n-grams, not with the text."""
NEVER = np.iinfo(np.int64).max
_BITS = 63
"""Bits of a positive number."""


@dataclass(frozen=True, eq=False)
class Level:
    """The M n-grams of length n, sorted by the position of their first n - 1 words, then by their last word."""

    parents: Ints
    """[M]: the position of the first n - 1 words in the level below."""
    words: Ints
    """[M]: the last word."""
    suffixes: Ints
    """[M]: the position of the last n - 1 words in the level below."""
    counts: Ints
    """[M]: the number of occurrences."""

    def __len__(self) -> int:
        return len(self.words)


@dataclass(frozen=True, eq=False)
class NgramCounts:
    """The n-grams of a text. The first level has all tokens of the vocabulary, seen or not."""

    levels: tuple[Level, ...]
    first_seen: Ints
    """[V]: the index in the text of the first occurrence of each word; NEVER for unseen words."""
    num_tokens: int
    """Number of tokens of the text, including begins and ends of sentences."""
    bos_id: int
    eos_id: int

    @classmethod
    def of(
        cls, sequences: Iterable[Sequence[int]], order: int, vocab_size: int, bos_id: int, eos_id: int, pad_id: int
    ) -> NgramCounts:
        """Count sentences, to each of which begin and end of sentence are added.

        Raises DataError for an id that is not in the vocabulary, and for padding or begin of sentence.
        """
        counts = cls.of_stream(np.empty(0, dtype=np.int64), order, vocab_size, bos_id, eos_id)
        for stream in _streams(sequences, vocab_size, bos_id, eos_id, pad_id):
            more = cls.of_stream(stream, order, vocab_size, bos_id, eos_id)
            counts = counts.merged(more) if counts.num_tokens else more
        return counts

    @classmethod
    def of_stream(cls, stream: Ints, order: int, vocab_size: int, bos_id: int, eos_id: int) -> NgramCounts:
        """Count sentences in one array, each with its begin and end of sentence."""
        levels = [_words(stream, vocab_size)]
        here = stream  # the n-gram of the current length that ends at each token; -1 if there is none
        inside = np.flatnonzero(stream != bos_id)
        for _ in range(1, order):
            inside = inside[here[inside - 1] >= 0]
            level, places = _longer(here[inside - 1], stream[inside], here[inside], vocab_size)
            levels.append(level)
            here = np.full(len(stream), -1, dtype=np.int64)
            here[inside] = places
        first_seen = np.full(vocab_size, NEVER, dtype=np.int64)
        first_seen[stream[::-1]] = np.arange(len(stream))[::-1]  # of several values the last is kept
        return cls(tuple(levels), first_seen, len(stream), bos_id, eos_id)

    def merged(self, other: NgramCounts) -> NgramCounts:
        """The counts of this text followed by the other."""
        levels: list[Level] = []
        places = other_places = np.zeros(1, dtype=np.int64)
        for level, other_level in zip(self.levels, other.levels, strict=True):
            merged, places, other_places = _merged(level, places, other_level, other_places, self.vocab_size)
            levels.append(merged)
        later = np.where(other.first_seen == NEVER, NEVER, other.first_seen + self.num_tokens)
        first_seen = np.minimum(self.first_seen, later)
        return NgramCounts(tuple(levels), first_seen, self.num_tokens + other.num_tokens, self.bos_id, self.eos_id)

    @property
    def order(self) -> int:
        """The length of the longest n-grams."""
        return len(self.levels)

    @property
    def vocab_size(self) -> int:
        """V, including the tokens that are never predicted."""
        return len(self.first_seen)

    @cached_property
    def first_words(self) -> tuple[Ints, ...]:
        """The first word of each n-gram, by level."""
        first_words = [self.levels[0].words]
        for level in self.levels[1:]:
            first_words.append(first_words[-1][level.parents])
        return tuple(first_words)

    def begins(self, n: int) -> Bools:
        """Mask of the n-grams of length n that start with begin of sentence."""
        return np.asarray(self.first_words[n - 1] == self.bos_id)


def _streams(
    sequences: Iterable[Sequence[int]], vocab_size: int, bos_id: int, eos_id: int, pad_id: int
) -> Iterator[Ints]:
    """Chunks of sentences, each chunk one array with begins and ends of sentences."""
    sequences = iter(sequences)
    while chunk := list(islice(sequences, _CHUNK)):
        framed = chain.from_iterable(chain((bos_id,), ids, (eos_id,)) for ids in chunk)
        stream = np.fromiter(framed, dtype=np.int64, count=sum(map(len, chunk)) + 2 * len(chunk))
        wrong = stream[(stream < 0) | (stream >= vocab_size)]
        if len(wrong):
            raise DataError(f"token id {wrong[0]} is not in the vocabulary: ids are from 0 to {vocab_size - 1}.")
        for id, allowed in ((bos_id, len(chunk)), (pad_id, 0)):
            if np.count_nonzero(stream == id) > allowed:
                raise DataError(f"token id {id} is begin of sentence or padding and cannot be inside a sequence.")
        yield stream


def _words(stream: Ints, vocab_size: int) -> Level:
    zeros = np.zeros(vocab_size, dtype=np.int64)
    return Level(zeros, np.arange(vocab_size), zeros, np.bincount(stream, minlength=vocab_size))


def _longer(parents: Ints, words: Ints, suffixes: Ints, vocab_size: int) -> tuple[Level, Ints]:
    """The level of the n-grams that end at these tokens, and the position of each token's n-gram in it."""
    keys, places, counts = _distinct(parents * vocab_size + words)
    suffixes_of = np.empty(len(keys), dtype=np.int64)
    suffixes_of[places] = suffixes
    return Level(keys // vocab_size, keys % vocab_size, suffixes_of, counts), places


def _distinct(keys: Ints) -> tuple[Ints, Ints, Ints]:
    """The different keys in ascending order, the position of each key among them, and how often each occurs.

    The array given is used as working memory.
    """
    ordered, order = _sorted(keys)
    new = np.ones(len(keys), dtype=np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=new[1:])
    firsts = np.flatnonzero(new)
    different, counts = ordered[firsts], np.diff(np.append(firsts, len(keys)))
    places = ordered
    del firsts
    places[order] = np.cumsum(new)
    places -= 1
    return different, places, counts


def _sorted(keys: Ints) -> tuple[Ints, Ints]:
    """The keys in ascending order, and the position of each before; the order of equal keys is not defined."""
    bits = len(keys).bit_length()
    if int(keys.max(initial=0)).bit_length() + bits > _BITS:
        order = np.argsort(keys)
        return keys[order], order
    keys <<= bits  # sorting numbers takes a fraction of the time of sorting their positions
    keys |= np.arange(len(keys))
    keys.sort()
    ordered = keys >> bits
    keys &= (1 << bits) - 1
    return ordered, keys


def _merged(a: Level, a_below: Ints, b: Level, b_below: Ints, vocab_size: int) -> tuple[Level, Ints, Ints]:
    """The n-grams of both levels, and the positions of those of each; `a_below`, `b_below`: of the levels below."""
    a_keys, b_keys = a_below[a.parents] * vocab_size + a.words, b_below[b.parents] * vocab_size + b.words
    keys, a_places, b_places = _united(a_keys, b_keys)
    suffixes, counts = np.empty(len(keys), dtype=np.int64), np.zeros(len(keys), dtype=np.int64)
    for places, level, below in ((a_places, a, a_below), (b_places, b, b_below)):
        suffixes[places] = below[level.suffixes]
        counts[places] += level.counts
    return Level(keys // vocab_size, keys % vocab_size, suffixes, counts), a_places, b_places


def _united(a: Ints, b: Ints) -> tuple[Ints, Ints, Ints]:
    """All keys of two ascending arrays in ascending order, and the positions of those of each."""
    places = np.searchsorted(a, b)
    new = np.ones(len(b), dtype=np.bool_)
    inside = np.flatnonzero(places < len(a))
    new[inside] = a[places[inside]] != b[inside]
    keys = np.insert(a, places[new], b[new])
    before = np.cumsum(np.bincount(places[new], minlength=len(a)))[: len(a)]
    return keys, np.arange(len(a)) + before, places + np.cumsum(new) - new
