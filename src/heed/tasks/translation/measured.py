"""Corpora on which heed was measured: the quality to expect from similar ones, and the kind of model that suits them.

Each was trained without a recipe for 45 minutes on one CPU core (fewer where training ended early), by phrases, or
both. Sources: docs/results/low-resource.md ("By phrases") and docs/results/translation.md ("Multi30k: other directions,
without a recipe"; the lengths of these were counted in the data).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class MeasuredCorpus:
    """A corpus, and the BLEU on its validation data."""

    text: str
    num_pairs: int
    characters: float
    """Mean number of characters of the longer side of a pair."""
    transformer: float | None
    """None if it was not tried."""
    phrases: float | None = None
    """None if they were not tried."""

    @property
    def genre(self) -> str:
        """The kind of its text, such as `news`."""
        return self.text.partition(",")[0]

    def distance(self, num_pairs: int, characters: float) -> float:
        """How different a corpus is: the doublings between the numbers of pairs, and those between the lengths."""
        pairs = abs(math.log2(max(1, num_pairs) / self.num_pairs))
        return pairs + abs(math.log2(max(1.0, characters) / self.characters))

    def render(self) -> str:
        """`30,782 pairs of news, English to Swahili: 12.4 with a Transformer, 20.3 by phrases`."""
        scores = (self.transformer, "with a Transformer"), (self.phrases, "by phrases")
        tried = ", ".join(f"{score} {how}" for score, how in scores if score is not None)
        return f"{self.num_pairs:,} pairs of {self.text}: {tried}"


MEASURED = (
    MeasuredCorpus("captions, English to German", 2_000, 71, 18.4, 23.7),
    MeasuredCorpus("news, English to Hausa", 5_865, 163, 4.4, 9.2),
    MeasuredCorpus("short sentences, English to Vietnamese", 7_239, 35, 30.0, 31.3),
    MeasuredCorpus("captions, English to German", 7_000, 71, 29.3, 31.0),
    MeasuredCorpus("news, English to Swahili", 8_000, 123, None, 17.0),
    MeasuredCorpus("talks, German to English", 8_627, 110, 12.4, 19.2),
    MeasuredCorpus("short sentences, English to French", 10_000, 36, 26.2, 29.8),
    MeasuredCorpus("captions, English to German", 29_000, 71, 40.7, 36.8),
    MeasuredCorpus("captions, English to French", 29_000, 71, 57.3),
    MeasuredCorpus("captions, English to Czech", 29_000, 61, 31.7),
    MeasuredCorpus("captions, German to English", 29_000, 71, 42.5),
    MeasuredCorpus("news, English to Swahili", 30_782, 124, 12.4, 20.3),
    MeasuredCorpus("short sentences, English to French", 40_000, 36, None, 38.3),
    MeasuredCorpus("short sentences, English to Japanese", 50_000, 33, 38.9, 32.5),
    MeasuredCorpus("short sentences, English to French", 163_723, 36, 46.6, 46.9),
    MeasuredCorpus("short sentences, English to German", 164_748, 38, 42.1, 39.8),
)
FARTHEST = 2.0
"""Corpora that differ by more doublings tell nothing about each other."""
CLEAR = 2.0
"""BLEU by which one kind of model must be better on a similar corpus to be preferred to the usual one."""


def similar(num_pairs: int, characters: float, among: Sequence[MeasuredCorpus] = MEASURED) -> Sequence[MeasuredCorpus]:
    """The two measured corpora most like one of this size; fewer if others are too different."""
    ranked = sorted(among, key=lambda corpus: corpus.distance(num_pairs, characters))
    return [corpus for corpus in ranked[:2] if corpus.distance(num_pairs, characters) <= FARTHEST]


def suits_phrases(num_pairs: int, characters: float) -> bool:
    """Whether phrases were clearly better on the most similar corpus of those on which both kinds were measured."""
    both = [corpus for corpus in MEASURED if None not in (corpus.transformer, corpus.phrases)]
    return any(
        (corpus.phrases or 0) > (corpus.transformer or 0) + CLEAR for corpus in similar(num_pairs, characters, both)[:1]
    )
