"""In which of a few languages is a text? Character n-grams and naive Bayes.

For each language the n-grams of one to three characters of sample texts are counted, words set apart by a space (Cavnar
& Trenkle 1994 rank them; here they have probabilities, as in Dunning 1994). A text's languages are ranked by its
probability under each; since n-grams overlap, its logarithm is divided by their length before probabilities of
languages are made from it. Nothing is said of languages that were not sampled.
"""

from __future__ import annotations

import math
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

ORDER = 3
MAX_CHARACTERS = 2000
"""Of a text that are looked at."""
MAX_SAMPLE = 300_000
"""Characters of a language's samples that are counted."""
_SMOOTHING = 0.3


@dataclass(frozen=True)
class Detected:
    """A language and how sure it is, from 0 to 100."""

    language: str
    confidence: float


class LanguageDetector:
    """Tells languages apart of which it has seen samples."""

    def __init__(self, samples: Mapping[str, Iterable[str]]) -> None:
        """`samples`: texts of each language, by code. A language without a text is never found for sure."""
        self._counts = {language: _counted(texts) for language, texts in samples.items()}
        self._totals = {
            language: [sum(of_order.values()) for of_order in counts] for language, counts in self._counts.items()
        }
        self._kinds = [len(set().union(*(counts[n] for counts in self._counts.values()))) + 1 for n in range(ORDER)]

    def detect(self, text: str) -> list[Detected]:
        """All languages, the likeliest first; equally likely where the text has no letter."""
        grams = [list(_grams(text[:MAX_CHARACTERS], n + 1)) for n in range(ORDER)]
        scores = {language: self._log_likelihood(language, grams) for language in self._counts}
        best = max(scores.values(), default=0.0)
        weights = {language: math.exp(score - best) for language, score in scores.items()}
        total = sum(weights.values())
        found = [Detected(language, round(100 * weight / total, 1)) for language, weight in weights.items()]
        return sorted(found, key=lambda detected: -detected.confidence)

    def _log_likelihood(self, language: str, grams: list[list[str]]) -> float:
        total = 0.0
        for n, of_order in enumerate(grams):
            counts, size = self._counts[language][n], self._totals[language][n] + _SMOOTHING * self._kinds[n]
            total += sum(math.log((counts[gram] + _SMOOTHING) / size) for gram in of_order)
        return total / ORDER


def _counted(texts: Iterable[str]) -> list[Counter[str]]:
    counts: list[Counter[str]] = [Counter() for _ in range(ORDER)]
    left = MAX_SAMPLE
    for text in texts:
        if left <= 0:
            break
        left -= len(text)
        for n in range(ORDER):
            counts[n].update(_grams(text, n + 1))
    return counts


def _grams(text: str, n: int) -> Iterator[str]:
    """The runs of n characters of the words, in lower case, with a space around each word; signs are none."""
    letters = "".join(char if unicodedata.category(char)[0] in "LM" else " " for char in text.lower())
    for word in letters.split():
        padded = word if n == 1 else f" {word} "
        for begin in range(len(padded) - n + 1):
            yield padded[begin : begin + n]
