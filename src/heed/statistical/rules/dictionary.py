"""Dictionary of words from word alignments, and what the words before a noun say about it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from heed.statistical.predictor import Floats, Ints, starts

MOST = 20
"""Translations of a word, the likeliest."""


@dataclass(frozen=True, eq=False)
class Dictionary:
    """The translations of V source words, those of each from the likeliest on."""

    offsets: Ints
    """[V + 1]: the entries of each word."""
    targets: Ints
    """[N]"""
    log_probs: Floats
    """[N]: log of the share of the word's links that lead to the target."""

    def entries(self, word: int) -> list[tuple[int, float]]:
        """The translations of a word with their log-probabilities."""
        part = slice(int(self.offsets[word]), int(self.offsets[word + 1]))
        return list(zip(self.targets[part].tolist(), self.log_probs[part].tolist(), strict=True))


def count_dictionary(
    pairs: Iterable[tuple[Sequence[int], Sequence[int]]], links: Iterable[Iterable[tuple[int, int]]], num_words: int
) -> Dictionary:
    """The dictionary of linked sentence pairs."""
    linked = [
        (source[i], target[j])
        for (source, target), of_pair in zip(pairs, links, strict=True)
        for i, j in sorted(of_pair)
    ]
    flat = np.array(linked, dtype=np.int64).reshape(-1, 2)
    keys, counts = np.unique(flat[:, 0] * num_words + flat[:, 1], return_counts=True)
    src, tgt = np.divmod(keys, num_words)
    totals = np.bincount(src, counts, num_words)
    order = np.lexsort([tgt, -counts, src])
    src, tgt, counts = src[order], tgt[order], counts[order]
    ranks = np.arange(len(src)) - starts(np.bincount(src, minlength=num_words))[src]
    kept = ranks < MOST
    src, tgt, counts = src[kept], tgt[kept], counts[kept]
    return Dictionary(starts(np.bincount(src, minlength=num_words)), tgt, np.log(counts / totals[src]))


def count_evidence(
    sentences: Iterable[Sequence[int]], weights: Mapping[str, Mapping[str, float]], texts: Sequence[str]
) -> Ints:
    """The likeliest value of a feature of each word [V], by the words right before it; -1 without evidence.

    `weights`: for each value, how much a word before says for it.
    """
    id_of = {text.strip(): id for id, text in enumerate(texts) if text.startswith(" ")}
    says = np.zeros((len(weights), len(texts)))
    for row, words in enumerate(weights.values()):
        for word, weight in words.items():
            if word in id_of:
                says[row, id_of[word]] = weight
    scores = np.zeros_like(says)
    for ids in sentences:
        before, after = np.asarray(ids[:-1], dtype=np.int64), np.asarray(ids[1:], dtype=np.int64)
        for of_value, evidence in zip(says, scores, strict=True):
            np.add.at(evidence, after, of_value[before])
    return np.where(scores.max(0, initial=0.0) > 0, scores.argmax(0) if len(weights) else 0, -1)
