"""Language identification, without any model to download.

Three instruments, for three amounts of knowledge:

- `LanguageIdentifier` ranks languages of which it has sample text: naive Bayes over character n-grams.
- `evidence` measures how much of a text speaks for one language, by its frequent words or its script.
- `similarity` compares two texts by their letter trigrams, and needs to know nothing of either language.
"""

from __future__ import annotations

import math
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from heed.text.language.codes import code_of
from heed.text.language.frequent_words import FREQUENT_WORDS
from heed.text.language.scripts import EAST_ASIAN, SCRIPT_OF_LANGUAGE, main_script

ORDER = 3
MAX_CHARACTERS = 2000
"""Characters of a text to identify that are used."""
MAX_SAMPLE = 300_000
"""Characters of a language's sample text that are counted."""
_SMOOTHING = 0.3

MIN_EVIDENCE = 0.1
"""A text with less evidence than this is not in the language. Prose has 0.2 to 0.4."""
_PUNCTUATION = ".,;:!?\"'()«»„“”"

Profile = Counter[tuple[str, str, str]]
"""How often each trigram of characters occurs in a text."""


@dataclass(frozen=True)
class Detected:
    """A language, and the confidence in it from 0 to 100."""

    language: str
    confidence: float


class LanguageIdentifier:
    """Ranks the languages that it has samples of; it never answers any other.

    Counts the n-grams of one to three letters of each language's samples, with a space around every word (Cavnar &
    Trenkle 1994 rank them; Dunning 1994 uses their probabilities, as here). Because n-grams overlap, the log-likelihood
    of a text is divided by the order before it becomes a probability.
    """

    def __init__(self, samples: Mapping[str, Iterable[str]]) -> None:
        """`samples`: texts of each language, by code."""
        self._counts = {language: _counted(texts) for language, texts in samples.items()}
        self._totals = {
            language: [counts.total() for counts in by_order] for language, by_order in self._counts.items()
        }
        self._num_types = [
            len(set().union(*(by_order[n] for by_order in self._counts.values()))) + 1 for n in range(ORDER)
        ]

    def detect(self, text: str) -> list[Detected]:
        """All languages, the most likely first; equally likely for a text without letters."""
        grams = [list(_grams(text[:MAX_CHARACTERS], n + 1)) for n in range(ORDER)]
        scores = {language: self._log_likelihood(language, grams) for language in self._counts}
        best = max(scores.values(), default=0.0)
        weights = {language: math.exp(score - best) for language, score in scores.items()}
        total = sum(weights.values())
        ranked = [Detected(language, round(100 * weight / total, 1)) for language, weight in weights.items()]
        return sorted(ranked, key=lambda detected: -detected.confidence)

    def _log_likelihood(self, language: str, grams: Sequence[Sequence[str]]) -> float:
        log_likelihood = 0.0
        for n, of_order in enumerate(grams):
            counts, size = self._counts[language][n], self._totals[language][n] + _SMOOTHING * self._num_types[n]
            log_likelihood += sum(math.log((counts[gram] + _SMOOTHING) / size) for gram in of_order)
        return log_likelihood / ORDER


def _counted(texts: Iterable[str]) -> list[Counter[str]]:
    counts: list[Counter[str]] = [Counter() for _ in range(ORDER)]
    num_left = MAX_SAMPLE
    for text in texts:
        if num_left <= 0:
            break
        num_left -= len(text)
        for n in range(ORDER):
            counts[n].update(_grams(text, n + 1))
    return counts


def _grams(text: str, n: int) -> Iterator[str]:
    """The runs of n letters of each word in lower case; for n > 1 a space at each end of a word counts as one."""
    letters = "".join(char if unicodedata.category(char)[0] in "LM" else " " for char in text.lower())
    for word in letters.split():
        padded = word if n == 1 else f" {word} "
        for begin in range(len(padded) - n + 1):
            yield padded[begin : begin + n]


def evidence(language: str, lines: Sequence[str], against: str = "") -> float | None:
    """The evidence for a language, from 0 to 1; None for a language that nothing is known of.

    It is the share of the words that are frequent in the language and not in the language `against`. For a language
    without a list of frequent words, or without spaces, it is the share of the lines in its script.
    """
    code = code_of(language)
    script = SCRIPT_OF_LANGUAGE.get(code)
    if code in FREQUENT_WORDS and script not in (EAST_ASIAN, "Hangul"):
        frequent = FREQUENT_WORDS[code] - FREQUENT_WORDS.get(code_of(against), frozenset())
        words = [word.strip(_PUNCTUATION) for line in lines for word in line.lower().split()]
        return sum(word in frequent for word in words) / max(len(words), 1)
    if script is None:
        return None
    return sum(main_script(line) == script for line in lines) / max(len(lines), 1)


def look_exchanged(src: Sequence[str], tgt: Sequence[str], src_lang: str, tgt_lang: str) -> bool:
    """Whether source and target are in each other's language, judged by each language that either side shows."""
    if code_of(src_lang) == code_of(tgt_lang):
        return False
    verdicts = []
    for language, own, opposite, other in ((src_lang, src, tgt_lang, tgt), (tgt_lang, tgt, src_lang, src)):
        here, there = evidence(language, own, opposite), evidence(language, other, opposite)
        if here is not None and there is not None and max(here, there) >= MIN_EVIDENCE:
            verdicts.append(there >= 2 * here)
    return bool(verdicts) and all(verdicts)


def profile(lines: Iterable[str]) -> Profile:
    """The trigrams of characters of a text, in lower case."""
    counts: Profile = Counter()
    for line in lines:
        padded = f" {line.lower()} "
        counts.update(zip(padded, padded[1:], padded[2:], strict=False))
    return counts


def similarity(one: Profile, other: Profile) -> float:
    """The cosine of two profiles: above 0.9 in one language and domain, 0.6 across domains, below 0.4 for two."""
    shared = sum(count * other[gram] for gram, count in one.items() if gram in other)
    norms = math.sqrt(sum(count * count for count in one.values()) * sum(count * count for count in other.values()))
    return shared / norms if norms else 0.0


def are_crossed(src: Profile, tgt: Profile, known_src: Profile, known_tgt: Profile, margin: float = 0.0) -> bool:
    """Whether two sides are more similar to the known text of the opposite side than to that of their own."""
    straight = similarity(src, known_src) + similarity(tgt, known_tgt)
    return similarity(src, known_tgt) + similarity(tgt, known_src) > straight + margin
