"""Scores of extractive answers: exact match and F1 over tokens (Rajpurkar et al. 2016, section 6.1).

Answers are compared in lower case, without punctuation, the articles a, an and the, and surplus blanks, and with that
reference to which they are closest. A question without an answer has the empty answer, and F1 is then 1 for it alone
(Rajpurkar et al. 2018). References are a JSON list of texts; an empty list is no answer.

Choices among candidates are scored as links from a pronoun to the names that it means (Webster et al. 2018, section 4):
F1 over all links, and its ratio between questions about women and about men, the bias.
"""

from __future__ import annotations

import re
import string
from abc import abstractmethod
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from heed.core.json_text import parse_json
from heed.metrics.metric import OutputMetric, Rows

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_PUNCTUATION = str.maketrans("", "", string.punctuation)


def tokens_of(answer: str) -> list[str]:
    """The words of an answer as it is compared."""
    return _ARTICLES.sub(" ", answer.lower().translate(_PUNCTUATION)).split()


def references_of(text: str) -> list[str]:
    """The answers of a JSON list; the empty one for an empty list."""
    answers: list[str] = parse_json(text)
    return answers or [""]


def agreement(output: str, reference: str) -> float:
    """The share of the answers of a JSON list to which an answer is equal: of annotators who gave it."""
    tokens = tokens_of(output)
    answers = references_of(reference)
    return sum(tokens == tokens_of(answer) for answer in answers) / len(answers)


@dataclass(frozen=True)
class AnswerMetric(OutputMetric):
    """Base: a value from 0 to 1 for each question, that of the closest reference; the score is the mean in per cent."""

    def counts(self, outputs: Sequence[str], references: Sequence[str]) -> Rows:
        return [[self._closest(a, references_of(b)), 1.0] for a, b in zip(outputs, references, strict=True)]

    def _closest(self, output: str, references: Sequence[str]) -> float:
        tokens = tokens_of(output)
        return max(self.compare(tokens, tokens_of(reference)) for reference in references)

    @abstractmethod
    def compare(self, output: Sequence[str], reference: Sequence[str]) -> float:
        """The value of an answer against one reference."""

    def value(self, totals: NDArray[np.float64]) -> float:
        return float(100 * totals[0] / totals[1])

    def signature(self, intervals: int) -> str:
        return super().signature(intervals).replace("nrefs:1", "nrefs:all|norm:squad")


@dataclass(frozen=True)
class AnswerMatch(AnswerMetric):
    """Percentage of answers that are equal to a reference."""

    name = "answer_match"
    title = "exact match"

    def compare(self, output: Sequence[str], reference: Sequence[str]) -> float:
        return float(output == reference)


@dataclass(frozen=True)
class AnswerF1(AnswerMetric):
    """Mean F1 over the tokens that an answer shares with a reference."""

    name = "answer_f1"
    title = "F1"

    def compare(self, output: Sequence[str], reference: Sequence[str]) -> float:
        if not output or not reference:
            return float(output == reference)
        common = (Counter(output) & Counter(reference)).total()
        return 2 * common / (len(output) + len(reference))


@dataclass(frozen=True)
class ChoiceF1(OutputMetric):
    """F1 over the chosen candidates, none of which is chosen for the empty answer."""

    name = "choice_f1"
    title = "F1 of choices"

    def counts(self, outputs: Sequence[str], references: Sequence[str]) -> Rows:
        """The choices that are right, those that are wrong, and the references that were not chosen."""
        pairs = zip(outputs, (set(parse_json(text)) for text in references), strict=True)
        return [
            [float(output in true), float(output != "" and output not in true), float(len(true - {output}))]
            for output, true in pairs
        ]

    def value(self, totals: NDArray[np.float64]) -> float:
        return rates(totals)["f1"]

    def signature(self, intervals: int) -> str:
        return super().signature(intervals).replace("nrefs:1", "links")


def rates(totals: NDArray[np.float64]) -> dict[str, float]:
    """Precision, recall and F1 in per cent, of right, wrong and missing choices; 0 without any."""
    right, wrong, missing = totals
    sums = {"precision": right + wrong, "recall": right + missing, "f1": right + (wrong + missing) / 2}
    return {name: float(100 * right / total) if total else 0.0 for name, total in sums.items()}


@dataclass(frozen=True)
class ChoiceBias(ChoiceF1):
    """F1 of the choices in the first group of questions, divided by that in the second; 1 is best."""

    groups: tuple[bool, ...] = ()
    """Whether each question is in the first group."""

    name = "choice_bias"
    title = "bias"

    def counts(self, outputs: Sequence[str], references: Sequence[str]) -> Rows:
        links = np.asarray(super().counts(outputs, references), dtype=np.float64)
        first = np.asarray(self.groups)[:, None]
        return np.hstack((links * first, links * ~first))

    def value(self, totals: NDArray[np.float64]) -> float:
        first, second = rates(totals[:3])["f1"], rates(totals[3:])["f1"]
        return first / second if second else float(not first) or np.inf
