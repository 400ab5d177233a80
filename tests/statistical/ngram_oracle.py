"""Counts and probabilities of n-grams from their definitions, with dictionaries.

Nothing here is shared with `heed.statistical`: no sorting, no trees. Ids: 0 padding, 1 begin, 2 end, 3 unknown.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

PAD, BOS, EOS, UNK = range(4)
Words = tuple[int, ...]


def ngrams(sentences: Sequence[Sequence[int]], n: int) -> Counter[Words]:
    """Every n-gram that ends at a word or an end of sentence; of length 1 also begin of sentence."""
    actual: Counter[Words] = Counter()
    for sentence in sentences:
        framed = (BOS, *sentence, EOS)
        actual.update(framed[i - n + 1 : i + 1] for i in range(n - 1, len(framed)))
    return actual


class KneserNey:
    """Modified Kneser-Ney (Chen & Goodman 1998) with the sentence beginnings of lmplz, without its quirk."""

    fallback = (0.5, 1.0, 1.5)

    def __init__(self, sentences: Sequence[Sequence[int]], order: int, vocab_size: int) -> None:
        self.order, self.predictable = order, vocab_size - 2
        raw = [ngrams(sentences, n) for n in range(1, order + 1)]
        raw[0].pop((BOS,), None)
        self.counts: list[dict[Words, int]] = []
        for n in range(1, order + 1):
            if n == order:
                self.counts.append(dict(raw[n - 1]))
                continue
            longer = ngrams(sentences, n + 1)
            left = Counter(ngram[1:] for ngram in longer)
            self.counts.append({ng: c if ng[0] == BOS and n > 1 else left[ng] for ng, c in raw[n - 1].items()})
        self.discounts = [self._discounts(counts) for counts in self.counts]

    def _discounts(self, counts: dict[Words, int]) -> tuple[float, ...]:
        n = Counter(counts.values())
        if not all(n[k] for k in (1, 2, 3)):
            return self.fallback
        y = n[1] / (n[1] + 2 * n[2])
        actual = tuple(k - (k + 1) * y * n[k + 1] / n[k] for k in (1, 2, 3))
        return actual if all(0 <= d <= k for k, d in enumerate(actual, start=1)) else self.fallback

    def probability(self, word: int, context: Words) -> float:
        """p(word | context), the context being cut to the order."""
        if word in (PAD, BOS):
            return 0.0
        context = context[max(0, len(context) - self.order + 1) :]
        n = len(context) + 1
        below = self.probability(word, context[1:]) if context else 1 / self.predictable
        followers = {ng[-1]: c for ng, c in self.counts[n - 1].items() if ng[:-1] == context}
        total = sum(followers.values())
        if not total:
            return below
        discount = self.discounts[n - 1]
        given = sum(discount[min(c, 3) - 1] for c in followers.values())
        seen = followers[word] - discount[min(followers[word], 3) - 1] if word in followers else 0.0
        return (seen + given * below) / total


def witten_bell(sentences: Sequence[Sequence[int]], order: int, predictable: int, word: int, context: Words) -> float:
    """p(word | context) = (c(h w) + T(h) p(w | h')) / (c(h) + T(h))."""
    if word in (PAD, BOS):
        return 0.0
    context = context[max(0, len(context) - order + 1) :]
    below = witten_bell(sentences, order, predictable, word, context[1:]) if context else 1 / predictable
    counts = ngrams(sentences, len(context) + 1)
    followers = {ng[-1]: c for ng, c in counts.items() if ng[:-1] == context and ng[-1] != BOS}
    total, different = sum(followers.values()), len(followers)
    return (followers.get(word, 0) + different * below) / (total + different) if total else below


def additive(
    sentences: Sequence[Sequence[int]], order: int, predictable: int, delta: float, word: int, context: Words
) -> float:
    """(c(h w) + δ) / (c(h) + δ V), where the context has n - 1 words, or all there are in a sentence."""
    if word in (PAD, BOS):
        return 0.0
    context = context[max(0, len(context) - order + 1) :]
    if len(context) < order - 1 and context[:1] != (BOS,):
        return 1 / predictable
    counts = ngrams(sentences, len(context) + 1)
    followers = {ng[-1]: c for ng, c in counts.items() if ng[:-1] == context and ng[-1] != BOS}
    return (followers.get(word, 0) + delta) / (sum(followers.values()) + delta * predictable)


def perplexity(log_probs: Sequence[float]) -> float:
    """exp of the mean of -log p."""
    return math.exp(-math.fsum(log_probs) / len(log_probs))
