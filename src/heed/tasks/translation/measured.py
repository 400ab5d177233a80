"""Corpora on which heed was measured: the quality to expect from similar ones, and the kind of model that suits them.

Each was trained without a recipe for 45 minutes on one CPU core (fewer where training ended early), by phrases, or by
phrases and a Transformer that scores what they propose (of 15 minutes for Swahili). The phrases had no model of word
classes. Sources: docs/results/low-resource.md ("By phrases", "Both in one run") and docs/results/translation.md
("Multi30k: other directions, without a recipe"; the lengths of these were counted in the data).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal


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
    both: float | None = None
    """Of phrases that a Transformer scores; None if they were not tried."""

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
        scores = (self.transformer, "with a Transformer"), (self.phrases, "by phrases"), (self.both, "with both")
        tried = ", ".join(f"{score} {how}" for score, how in scores if score is not None)
        return f"{self.num_pairs:,} pairs of {self.text}: {tried}"


MEASURED = (
    MeasuredCorpus("captions, English to German", 2_000, 71, 18.4, 24.5, 25.1),
    MeasuredCorpus("news, English to Hausa", 5_865, 163, 4.4, 10.8),
    MeasuredCorpus("short sentences, English to Vietnamese", 7_239, 35, 30.3, 33.6, 34.6),
    MeasuredCorpus("captions, English to German", 7_000, 71, 29.7, 32.2, 33.9),
    MeasuredCorpus("news, English to Swahili", 8_000, 123, None, 17.0),
    MeasuredCorpus("talks, German to English", 8_627, 110, 12.6, 19.4, 20.4),
    MeasuredCorpus("short sentences, English to French", 10_000, 36, 26.4, 29.5, 31.7),
    MeasuredCorpus("captions, English to German", 29_000, 71, 40.7, 36.8),
    MeasuredCorpus("captions, English to French", 29_000, 71, 57.3),
    MeasuredCorpus("captions, English to Czech", 29_000, 61, 31.7),
    MeasuredCorpus("captions, German to English", 29_000, 71, 42.5),
    MeasuredCorpus("news, English to Swahili", 30_782, 124, 12.4, 20.3, 21.3),
    MeasuredCorpus("short sentences, English to French", 40_000, 36, None, 38.3),
    MeasuredCorpus("short sentences, English to Japanese", 50_000, 33, 38.9, 32.5),
    MeasuredCorpus("short sentences, English to French", 163_723, 36, 46.6, 46.9),
    MeasuredCorpus("short sentences, English to German", 164_748, 38, 42.1, 39.8),
)
FARTHEST = 2.0
"""Corpora that differ by more doublings tell nothing about each other."""
CLEAR, WORTHWHILE = 2.0, 0.5
"""BLEU by which one kind of model must be better on a similar corpus to be preferred to the usual one, and by which a
scorer must raise that of phrases."""
Suited = Literal["transformer", "phrases", "both"]


def similar(num_pairs: int, characters: float, among: Sequence[MeasuredCorpus] = MEASURED) -> Sequence[MeasuredCorpus]:
    """The two measured corpora most like one of this size; fewer if others are too different."""
    ranked = sorted(among, key=lambda corpus: corpus.distance(num_pairs, characters))
    return [corpus for corpus in ranked[:2] if corpus.distance(num_pairs, characters) <= FARTHEST]


def suited(num_pairs: int, characters: float) -> Suited:
    """What was clearly better than a Transformer on the most similar corpus of those on which phrases were tried too.

    Phrases with a scorer, which take as long as a Transformer, only where they are better than phrases alone. With
    fewer pairs than any similar corpus has, phrases alone, if they would suit the fewest pairs of a measured corpus.
    """
    compared = [corpus for corpus in MEASURED if None not in (corpus.transformer, corpus.phrases)]
    fewest = min(corpus.num_pairs for corpus in compared)
    nearest = similar(num_pairs, characters, compared)[:1]
    if not nearest and num_pairs < fewest and suited(fewest, characters) != "transformer":
        return "phrases"
    for corpus in nearest:
        transformer, phrases = corpus.transformer or 0.0, corpus.phrases or 0.0
        both = phrases if corpus.both is None else corpus.both
        best: Suited = "both" if both > phrases + WORTHWHILE else "phrases"
        if {"both": both, "phrases": phrases}[best] > transformer + CLEAR:
            return best
    return "transformer"
