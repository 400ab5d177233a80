"""Scores by sentence length.

The score of a whole corpus hides that a model fails on long sentences, if these are few. Buckets are by the length of
the source, which is the same for every system.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np

from heed.metrics.metric import Score, SentenceStatistics
from heed.metrics.translation import has_blanks

LONGEST_WORDS = (5, 10, 15, 20, 30, 50)
"""The maximum length of each bucket but the last, in words."""

CHARACTERS_PER_WORD = 2
"""In text without spaces between words, lengths are in characters: this many for each word above."""

Unit = Literal["words", "characters"]


@dataclass(frozen=True)
class LengthBucket:
    """The scores of the sentences whose source has from `shortest` to `longest` units."""

    shortest: int
    longest: int | None
    """None: no limit."""
    unit: Unit
    num_sentences: int
    scores: Mapping[str, Score]
    """By metric, with 95 % intervals."""

    @property
    def label(self) -> str:
        """`up to 5`, `6–10`, `over 50`."""
        if self.longest is None:
            return f"over {self.shortest - 1}"
        return f"{self.shortest}–{self.longest}" if self.shortest else f"up to {self.longest}"

    def to_json(self) -> dict[str, Any]:
        scores = {name: score.to_json() for name, score in self.scores.items()}
        return {**asdict(self), "label": self.label, "scores": scores}


def by_length(
    sources: Sequence[str], statistics: Mapping[str, SentenceStatistics], intervals: int = 1000
) -> list[LengthBucket]:
    """The scores of each non-empty bucket, the shortest sentences first, from one system's statistics by metric."""
    unit = length_unit(sources)
    lengths = np.array([_length(line, unit) for line in sources])
    ends = [end * (CHARACTERS_PER_WORD if unit == "characters" else 1) for end in LONGEST_WORDS]
    buckets = []
    for shortest, longest in zip([0, *(end + 1 for end in ends)], [*ends, None], strict=True):
        chosen = (lengths >= shortest) & (lengths <= (longest or np.inf))
        if chosen.any():
            scores = {name: each.select(chosen).score(intervals) for name, each in statistics.items()}
            buckets.append(LengthBucket(shortest, longest, unit, int(chosen.sum()), scores))
    return buckets


def length_unit(lines: Sequence[str]) -> Unit:
    """The unit of lengths: words, or characters where spaces are rare."""
    return "words" if has_blanks(lines) else "characters"


def _length(line: str, unit: Unit) -> int:
    return len(line.split()) if unit == "words" else len(line.strip())
