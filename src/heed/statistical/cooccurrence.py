"""Co-occurrence of words, weighted by distance, and its positive pointwise mutual information.

Levy & Goldberg (2014) show that skip-gram with k negatives factorises PMI(w, c) - log k. The counts here are those that
its random windows have in expectation: words at distance d ≤ L count (L - d + 1) / L, and with subsampling each
occurrence of w counts for the share √(t / f(w)) of it that is kept (after the windows are set: "clean" subsampling;
Levy, Goldberg & Dagan 2015, section 3.1).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

_WORDS_AT_ONCE = 1 << 20


@dataclass(frozen=True)
class Cooccurrence:
    """A sparse symmetric matrix of counts, by ascending (word, context)."""

    words: Ints
    contexts: Ints
    counts: Floats
    num_words: int

    @classmethod
    def of(
        cls, sentences: Iterable[Sequence[int] | Ints], num_words: int, window: int, kept_share: Floats | None = None
    ) -> Cooccurrence:
        """Count the pairs of a text; `kept_share` [V] is the share of the occurrences of each word that count."""
        keys, counts = np.empty(0, dtype=np.int64), np.empty(0)
        for ids, lines in _blocks(sentences):
            pairs = [(keys, counts)]
            for distance in range(1, window + 1):
                together = lines[distance:] == lines[:-distance]
                left, right = ids[:-distance][together], ids[distance:][together]
                new, numbers = np.unique(left * num_words + right, return_counts=True)
                weighted = np.asarray(numbers * ((window - distance + 1) / window), dtype=np.float64)
                pairs.append((new.astype(np.int64, copy=False), weighted))
            keys, counts = _added(pairs)
        words, contexts = keys // num_words, keys % num_words
        keys, counts = _added([(keys, counts), (contexts * num_words + words, counts)])
        words, contexts = keys // num_words, keys % num_words
        if kept_share is not None:
            counts = counts * kept_share[words] * kept_share[contexts]
        return cls(words, contexts, counts, num_words)

    def positive_pmi(self, smoothing: float = 0.75, shift: float = 1.0) -> Cooccurrence:
        """max(0, log P(w, c) / (P(w) P_a(c)) - log k): contexts are smoothed by the power a, k is the `shift`."""
        if not len(self.words):
            return self
        of_words = np.bincount(self.words, self.counts, self.num_words)
        of_contexts = of_words**smoothing  # the counts are symmetric
        expected = of_words[self.words] * (of_contexts / of_contexts.sum())[self.contexts]
        pmi = np.log(self.counts / expected) - np.log(shift)
        positive = pmi > 0
        return Cooccurrence(self.words[positive], self.contexts[positive], pmi[positive], self.num_words)


def _blocks(sentences: Iterable[Sequence[int] | Ints]) -> Iterable[tuple[Ints, Ints]]:
    """The words of many sentences, and the number of the sentence of each."""
    block: list[Ints] = []
    size = 0
    for sentence in sentences:
        block.append(np.asarray(sentence, dtype=np.int64))
        size += len(block[-1])
        if size >= _WORDS_AT_ONCE:
            yield np.concatenate(block), np.repeat(np.arange(len(block)), list(map(len, block)))
            block, size = [], 0
    if block:
        yield np.concatenate(block), np.repeat(np.arange(len(block)), list(map(len, block)))


def _added(parts: Sequence[tuple[Ints, Floats]]) -> tuple[Ints, Floats]:
    """The distinct keys and the sums of their counts."""
    keys = np.concatenate([keys for keys, _ in parts])
    order = np.argsort(keys, kind="stable")
    keys, counts = keys[order], np.concatenate([counts for _, counts in parts])[order]
    begins = np.flatnonzero(np.diff(keys, prepend=-1))
    return keys[begins], np.add.reduceat(counts, begins) if len(begins) else counts
