"""Whether a text is more like some texts or like others: a naive Bayes classifier over its tokens.

Each side has a unigram model with Dirichlet smoothing (Zhai & Lafferty 2004, section 3.2) by the frequencies in both.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence

MU = 200
"""Tokens of each side that the frequencies in both count for."""


class Domain:
    """The unigram models of two sides, numbered 0 and 1. Texts are token ids."""

    def __init__(self) -> None:
        self._tokens: tuple[Counter[int], Counter[int]] = (Counter(), Counter())
        self._texts: tuple[Counter[tuple[int, ...]], Counter[tuple[int, ...]]] = (Counter(), Counter())
        self._sizes = [0, 0]

    def add(self, side: int, texts: Iterable[Sequence[int]]) -> None:
        """Add texts of a side."""
        for text in texts:
            self._tokens[side].update(text)
            self._texts[side][tuple(text)] += 1
            self._sizes[side] += len(text)

    def log_ratio(self, text: Sequence[int], is_known: bool = False) -> float:
        """log p_0 - log p_1 of a text, for each of its tokens; 0 if a side is empty.

        `is_known`: as if neither side had this text.
        """
        copies = [texts[tuple(text)] if is_known else 0 for texts in self._texts]
        sizes = [size - number * len(text) for size, number in zip(self._sizes, copies, strict=True)]
        if not text or not all(sizes):
            return 0.0
        total = 0.0
        for token, times in Counter(text).items():
            counts = [of[token] - n * times for of, n in zip(self._tokens, copies, strict=True)]
            both = (sum(counts) + 0.5) / (sum(sizes) + 1)
            ours, theirs = ((c + MU * both) / (size + MU) for c, size in zip(counts, sizes, strict=True))
            total += times * math.log(ours / theirs)
        return total / len(text)
