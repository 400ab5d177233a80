"""Retrieval of related sentences by BM25 (Robertson & Zaragoza 2009), then by the tokens in common.

Sentences are token ids, so that retrieval works for every language and tokenizer. The index is in memory: an inverted
index with the weight of each token in each sentence.
"""

from __future__ import annotations

from collections.abc import Sequence
from difflib import SequenceMatcher
from itertools import chain

import numpy as np
from numpy.typing import NDArray

NUM_CANDIDATES = 64
"""Best sentences by BM25, which are then ordered by their tokens in common with the query."""
K1 = 1.2
"""Saturation of repeated tokens."""
B = 0.75
"""Normalisation by length."""


class RelatedSentences:
    """An index of sentences, given as token ids."""

    def __init__(self, sentences: Sequence[Sequence[int]]) -> None:
        self.sentences = sentences
        lengths = np.fromiter(map(len, sentences), np.int64, len(sentences))
        tokens = np.fromiter(chain.from_iterable(sentences), np.int64, int(lengths.sum()))
        of_sentence = np.repeat(np.arange(len(sentences)), lengths)
        entries, counts = np.unique(tokens * len(sentences) + of_sentence, return_counts=True)
        self._sentence_of = entries % max(1, len(sentences))
        """The sentence of each entry of the index; entries are sorted by their tokens."""
        vocabulary = np.arange(int(tokens.max(initial=-1)) + 2)
        self._begin = np.searchsorted(entries, vocabulary * len(sentences))
        """The first entry of each token."""
        frequency = np.diff(self._begin)
        inverse = np.log1p((len(sentences) - frequency + 0.5) / (frequency + 0.5))
        length = lengths[self._sentence_of] / max(1.0, lengths.mean()) if len(sentences) else lengths
        saturated = counts * (K1 + 1) / (counts + K1 * (1 - B + B * length))
        self._weights = (np.repeat(inverse, frequency) * saturated).astype(np.float32)

    def find(self, query: Sequence[int], number: int) -> list[int]:
        """The sentences most related to a query, the most similar first; fewer if fewer share a token with it."""
        known = [token for token in set(query) if token < len(self._begin) - 1]
        entries: list[NDArray[np.int64]] = [np.arange(self._begin[token], self._begin[token + 1]) for token in known]
        if not entries:
            return []
        found = np.concatenate(entries)
        scores = np.bincount(self._sentence_of[found], self._weights[found], len(self.sentences))
        most = min(NUM_CANDIDATES, int((scores > 0).sum()))
        best = np.argpartition(-scores, most - 1)[:most] if most else np.empty(0, np.int64)
        similarity = {int(i): SequenceMatcher(None, query, self.sentences[i], autojunk=False).ratio() for i in best}
        return sorted(similarity, key=lambda i: (-similarity[i], -scores[i], i))[:number]
