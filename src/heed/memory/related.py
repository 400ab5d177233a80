"""Retrieval of related sentences by BM25 (Robertson & Zaragoza 2009), then by the tokens in common.

Sentences are token ids, so that retrieval works for every language and tokenizer. The index is in memory: an inverted
index with the number of times that each token is in each sentence. It is kept in parts, of which the later ones are
smaller, so that a sentence can be added without making all of it again (the logarithmic method of Bentley & Saxe 1980).
What is found does not depend on the parts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from difflib import SequenceMatcher
from itertools import chain

import numpy as np
from numpy.typing import NDArray

NUM_CANDIDATES = 64
"""Best sentences by BM25, which are then ordered by their tokens in common with the query."""
MOST_ASKED, MOST_ASKED_IN_ALL = 4096, 1 << 16
"""Sentences of which it is asked whether they can be used: at a time, and for one query."""
MAX_EQUAL = 1 << 20
"""Pairs of equal tokens, one of the query and one of a candidate, of all candidates: a comparison takes as long as it
has of these, and 64 long texts that repeat one word would take a minute."""
K1 = 1.2
"""Saturation of repeated tokens."""
B = 0.75
"""Normalisation by length."""
Usable = Callable[[Sequence[int]], Sequence[int]]
"""Those of some sentences, given by their numbers, that may be used, in their order."""


class _Part:
    """The inverted index of some sentences."""

    def __init__(self, sentences: Sequence[Sequence[int]], first: int) -> None:
        self.first = first
        """The number of its first sentence."""
        self.size = len(sentences)
        self.lengths = np.fromiter(map(len, sentences), np.int64, self.size)
        tokens = np.fromiter(chain.from_iterable(sentences), np.int64, int(self.lengths.sum()))
        self.num_tokens = len(tokens)
        entries, self.counts = np.unique(
            tokens * self.size + np.repeat(np.arange(self.size), self.lengths), return_counts=True
        )
        self.sentence_of = entries % max(1, self.size)
        """The sentence of each entry; entries are sorted by their tokens."""
        vocabulary = np.arange(int(tokens.max(initial=-1)) + 2)
        self._begin = np.searchsorted(entries, vocabulary * self.size)
        """The first entry of each token."""

    def entries(self, token: int) -> NDArray[np.int64]:
        """The entries of a token."""
        if token >= len(self._begin) - 1:
            return np.empty(0, np.int64)
        return np.arange(self._begin[token], self._begin[token + 1])


class RelatedSentences:
    """An index of sentences, given as token ids, to which more can be added."""

    def __init__(self, sentences: Sequence[Sequence[int]] = ()) -> None:
        self.sentences: list[Sequence[int]] = []
        self._parts: tuple[_Part, ...] = ()
        self.add(sentences)

    def add(self, sentences: Sequence[Sequence[int]]) -> None:
        """Add sentences, whose numbers follow. One thread at a time may add, while others find."""
        first = len(self.sentences)
        self.sentences.extend(sentences)
        parts = list(self._parts)
        while parts and parts[-1].size <= len(self.sentences) - first:
            first = parts.pop().first
        self._parts = (*parts, _Part(self.sentences[first:], first))

    def find(self, query: Sequence[int], number: int = NUM_CANDIDATES, usable: Usable = list) -> dict[int, float]:
        """The usable sentences most related to a query, the most similar first, with their similarity from 0 to 1.

        That is twice the tokens in common, in order, divided by those of both. There are fewer sentences if fewer share
        a token with the query.
        """
        scores = _bm25(query, self._parts)
        similarity = {
            i: SequenceMatcher(None, query, self.sentences[i], autojunk=False).ratio()
            for i in self._comparable(query, _candidates(scores, usable))
        }
        nearest = sorted(similarity, key=lambda i: (-similarity[i], -scores[i], i))[:number]
        return {i: similarity[i] for i in nearest}

    def _comparable(self, query: Sequence[int], candidates: Sequence[int]) -> Iterator[int]:
        """The first candidates, as many as can be compared with a query in a short time, but at least one."""
        times, num_equal = Counter(query), 0
        for number, i in enumerate(candidates):
            num_equal += sum(times[token] for token in self.sentences[i])
            if number and num_equal > MAX_EQUAL:
                return
            yield i


def _candidates(scores: NDArray[np.float64], usable: Usable) -> list[int]:
    """The usable sentences with the best scores, the best first."""
    left, found, size, num_asked = scores.copy(), list[int](), NUM_CANDIDATES, 0
    while len(found) < NUM_CANDIDATES and num_asked < MOST_ASKED_IN_ALL and (most := min(size, int((left > 0).sum()))):
        best = np.argpartition(-left, most - 1)[:most]
        found += usable(sorted(best.tolist(), key=lambda i: (-scores[i], i)))
        left[best] = 0
        num_asked += most
        size = min(2 * size, MOST_ASKED)
    return found[:NUM_CANDIDATES]


def _bm25(query: Sequence[int], parts: Sequence[_Part]) -> NDArray[np.float64]:
    """The score of each sentence of all parts."""
    number = sum(part.size for part in parts)
    mean = max(1.0, sum(part.num_tokens for part in parts) / max(1, number))
    entries = [[part.entries(token) for token in set(query)] for part in parts]
    frequency = np.array([[len(each) for each in of_part] for of_part in entries], np.int64).reshape(len(parts), -1)
    of_token = frequency.sum(axis=0)
    inverse = np.log1p((number - of_token + 0.5) / (of_token + 0.5))
    scores = []
    for part, of_part, counted in zip(parts, entries, frequency, strict=True):
        found = np.concatenate([np.empty(0, np.int64), *of_part])
        sentence, count = part.sentence_of[found], part.counts[found]
        saturated = count * (K1 + 1) / (count + K1 * (1 - B + B * (part.lengths[sentence] / mean)))
        weights = (np.repeat(inverse, counted) * saturated).astype(np.float32)
        scores.append(np.bincount(sentence, weights, part.size))
    return np.concatenate([np.empty(0), *scores])
