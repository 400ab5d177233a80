"""Scores of tagging: F1, precision and recall of spans by the rules of the CoNLL shared tasks, and accuracy.

A span is correct if its type and both its ends are right (Tjong Kim Sang & Buchholz 2000). Spans are read from tags of
any scheme by the rules of that script (`heed.text.tag_schemes.spans`). Outputs and references are the tags of a
sentence, separated by blanks.
"""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heed.core.errors import DataError
from heed.metrics.metric import OutputMetric, Rows
from heed.metrics.significance import SEED
from heed.text.tag_schemes import spans


@dataclass(frozen=True)
class SpanMetric(OutputMetric):
    """Counts of correct, predicted and true spans."""

    def counts(self, outputs: Sequence[str], references: Sequence[str]) -> Rows:
        return [_counts(*_tags(output, reference)) for output, reference in zip(outputs, references, strict=True)]

    def value(self, totals: NDArray[np.float64]) -> float:
        return self.percentage(*totals.tolist())

    @abstractmethod
    def percentage(self, correct: float, predicted: float, true: float) -> float:
        """The score of counts; 0 where there is nothing to divide by."""

    def signature(self, intervals: int) -> str:
        return "spans:conlleval" + (f"|bs:{intervals}|seed:{SEED}" if intervals else "")


class EntityF1(SpanMetric):
    """Harmonic mean of precision and recall."""

    title = "F1"

    def percentage(self, correct: float, predicted: float, true: float) -> float:
        return 200 * correct / (predicted + true) if predicted + true else 0.0


class EntityPrecision(SpanMetric):
    """Percentage of the predicted spans that are correct."""

    title = "precision"

    def percentage(self, correct: float, predicted: float, true: float) -> float:
        return 100 * correct / predicted if predicted else 0.0


class EntityRecall(SpanMetric):
    """Percentage of the true spans that are predicted."""

    title = "recall"

    def percentage(self, correct: float, predicted: float, true: float) -> float:
        return 100 * correct / true if true else 0.0


@dataclass(frozen=True)
class TagAccuracy(OutputMetric):
    """Percentage of tokens with the right tag."""

    title = "accuracy"

    def counts(self, outputs: Sequence[str], references: Sequence[str]) -> Rows:
        rows = []
        for output, reference in zip(outputs, references, strict=True):
            tags, true = _tags(output, reference)
            rows.append([float(sum(map(str.__eq__, tags, true))), float(len(true))])
        return rows

    def value(self, totals: NDArray[np.float64]) -> float:
        return float(100 * totals[0] / totals[1]) if totals[1] else 0.0

    def signature(self, intervals: int) -> str:
        return "of:tokens" + (f"|bs:{intervals}|seed:{SEED}" if intervals else "")


@dataclass(frozen=True)
class TypeScores:
    """The scores of one type of spans, or of one plain tag."""

    type: str
    correct: int
    predicted: int
    true: int

    @property
    def precision(self) -> float:
        return EntityPrecision().percentage(self.correct, self.predicted, self.true)

    @property
    def recall(self) -> float:
        return EntityRecall().percentage(self.correct, self.predicted, self.true)

    @property
    def f1(self) -> float:
        return EntityF1().percentage(self.correct, self.predicted, self.true)

    def to_json(self) -> dict[str, Any]:
        """The counts and the scores."""
        counts = {"label": self.type, "number": self.true, "predicted": self.predicted, "correct": self.correct}
        return {**counts, "precision": self.precision, "recall": self.recall, "f1": self.f1}


def scores_by_type(outputs: Sequence[str], references: Sequence[str], plain: bool) -> list[TypeScores]:
    """The scores of each type in alphabetical order; with plain tags, of each tag."""
    correct, predicted, true = Counter[str](), Counter[str](), Counter[str]()
    for output, reference in zip(outputs, references, strict=True):
        tags, true_tags = _tags(output, reference)
        ours, theirs = ({*enumerate(each)} if plain else {*spans(each)} for each in (tags, true_tags))
        for counter, items in ((correct, ours & theirs), (predicted, ours), (true, theirs)):
            counter.update(str(item[-1]) for item in items)
    return [TypeScores(type, correct[type], predicted[type], true[type]) for type in sorted({*predicted, *true})]


def _tags(output: str, reference: str) -> tuple[list[str], list[str]]:
    tags, true = output.split(), reference.split()
    if len(tags) != len(true):
        raise DataError(f"{len(tags)} tags for {len(true)} tokens ({output!r:.50}).")
    return tags, true


def _counts(tags: Sequence[str], true: Sequence[str]) -> list[float]:
    ours, theirs = {*spans(tags)}, {*spans(true)}
    return [float(len(ours & theirs)), float(len(ours)), float(len(theirs))]
