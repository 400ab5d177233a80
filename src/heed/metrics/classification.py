"""Scores of labels and numbers: accuracy, F1 by label, exact match, correlations, and errors.

An answer is text: a label; several labels, as a JSON list; or a number. Scores are computed from counts of each answer
and its reference, so that intervals and tests follow as for all metrics of outputs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from heed.core.json_text import parse_json
from heed.metrics.metric import Metric, OutputMetric, Rows
from heed.metrics.similarity import ranks

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Accuracy(OutputMetric):
    """Percentage of answers that are right; of several labels, all of them (exact match)."""

    name = "accuracy"
    title = "accuracy"

    def counts(self, outputs: Sequence[str], references: Sequence[str]) -> Rows:
        return [[float(a == b), 1.0] for a, b in zip(outputs, references, strict=True)]

    def value(self, totals: Floats) -> float:
        return float(100 * totals[0] / totals[1])

    def signature(self, intervals: int) -> str:
        return super().signature(intervals).removeprefix("nrefs:1|") or "exact"


@dataclass(frozen=True)
class ExactMatch(Accuracy):
    """Percentage of texts all of whose labels are right."""

    name = "exact_match"
    title = "exact match"

    def counts(self, outputs: Sequence[str], references: Sequence[str]) -> Rows:
        pairs = zip(outputs, references, strict=True)
        return [[float(set(labels_of(a)) == set(labels_of(b))), 1.0] for a, b in pairs]


@dataclass(frozen=True)
class MacroF1(OutputMetric):
    """Mean over the labels of the references of F1, 2 right / (given + true), in per cent."""

    name = "macro_f1"
    title = "macro F1"

    def counts(self, outputs: Sequence[str], references: Sequence[str]) -> Rows:
        """For each text and label, whether it is right, given, and in the reference."""
        given, true = [labels_of(text) for text in outputs], [labels_of(text) for text in references]
        names = sorted({label for labels in true for label in labels})
        place = {label: at for at, label in enumerate(names)}
        other = len(names)  # labels that no reference has
        rows = np.zeros((len(outputs), 3, other + 1))
        for row, answer, reference in zip(rows, given, true, strict=True):
            row[0, [place[label] for label in {*answer} & {*reference}]] = 1
            np.add.at(row[1], [place.get(label, other) for label in {*answer}], 1)
            row[2, [place[label] for label in {*reference}]] = 1
        return rows.reshape(len(outputs), -1)

    def value(self, totals: Floats) -> float:
        right, given, true = totals.reshape(3, -1)
        seen = true > 0
        f1 = 2 * right[seen] / (given[seen] + true[seen])
        return float(100 * f1.mean()) if seen.any() else 0.0

    def signature(self, intervals: int) -> str:
        return "average:macro|" + super().signature(intervals).removeprefix("nrefs:1|")


@dataclass(frozen=True)
class MicroF1(OutputMetric):
    """F1 of all labels of all texts together, in per cent."""

    name = "micro_f1"
    title = "micro F1"

    def counts(self, outputs: Sequence[str], references: Sequence[str]) -> Rows:
        """For each text, how many of its labels are right, given, and in the reference."""
        pairs = [({*labels_of(a)}, {*labels_of(b)}) for a, b in zip(outputs, references, strict=True)]
        return [[len(given & true), len(given), len(true)] for given, true in pairs]

    def value(self, totals: Floats) -> float:
        right, given, true = totals
        return float(100 * 2 * right / max(1.0, given + true))

    def signature(self, intervals: int) -> str:
        return "average:micro|" + super().signature(intervals).removeprefix("nrefs:1|")


@dataclass(frozen=True)
class Pearson(OutputMetric):
    """Pearson's correlation of numbers with their references, in per cent."""

    name = "pearson"
    title = "Pearson"

    def counts(self, outputs: Sequence[str], references: Sequence[str]) -> Rows:
        return self._products(_numbers(outputs), _numbers(references))

    @staticmethod
    def _products(x: Floats, y: Floats) -> Floats:
        x, y = x - y.mean(), y - y.mean()  # for precision; the correlation does not change
        return np.column_stack([np.ones(len(x)), x, y, x * x, y * y, x * y])

    def value(self, totals: Floats) -> float:
        n, x, y, xx, yy, xy = totals
        variances = xx - x * x / n, yy - y * y / n
        if variances[0] <= 1e-12 * xx or variances[1] <= 1e-12 * yy:  # all numbers are equal, up to rounding
            return 0.0
        return float(100 * (xy - x * y / n) / (np.sqrt(variances[0]) * np.sqrt(variances[1])))

    def sentence_value(self, counts: Floats) -> float:
        return float("nan")


@dataclass(frozen=True)
class Spearman(Pearson):
    """Spearman's rank correlation, in per cent: Pearson's of the ranks, with mean ranks of ties.

    Draws of intervals and tests keep the ranks of the whole test set.
    """

    name = "spearman"
    title = "Spearman"

    def counts(self, outputs: Sequence[str], references: Sequence[str]) -> Rows:
        return self._products(ranks(_numbers(outputs)), ranks(_numbers(references)))

    def of_part(self, rows: Floats) -> Floats:
        """The ranks among these texts."""
        return self._products(ranks(rows[:, 1]), ranks(rows[:, 2])) if len(rows) else rows


@dataclass(frozen=True)
class MeanAbsoluteError(OutputMetric):
    """Mean distance of numbers from their references, in their unit."""

    name = "mean_absolute_error"
    title = "mean absolute error"
    higher_is_better = False

    def counts(self, outputs: Sequence[str], references: Sequence[str]) -> Rows:
        errors = np.abs(_numbers(outputs) - _numbers(references))
        return np.column_stack([errors, np.ones(len(errors))])

    def value(self, totals: Floats) -> float:
        return float(totals[0] / totals[1])


class LogLoss(Metric):
    """-log p of the true answer (nats), the mean over the texts; for a number, half its squared error in deviations."""

    name = "log_loss"
    title = "-log p per text"
    higher_is_better = False
    needs = "likelihoods"


def labels_of(text: str) -> tuple[str, ...]:
    """The labels of an answer: those of a JSON list, or the text itself."""
    if text.startswith("["):
        try:
            labels = parse_json(text)
            return tuple(map(str, labels)) if isinstance(labels, list) else (text,)
        except ValueError:
            return (text,)
    return (text,)


def _numbers(texts: Sequence[str]) -> Floats:
    return np.array([float(text) for text in texts])


@dataclass(frozen=True)
class Confusion:
    """How often each label was answered for each reference."""

    labels: tuple[str, ...]
    counts: NDArray[np.int64] = field(repr=False)
    """[K references, K answers]."""

    @staticmethod
    def of(outputs: Sequence[str], references: Sequence[str]) -> Confusion:
        """From single labels."""
        labels = tuple(sorted({*outputs, *references}))
        place = {label: at for at, label in enumerate(labels)}
        counts = np.zeros((len(labels), len(labels)), dtype=np.int64)
        np.add.at(counts, ([place[label] for label in references], [place[label] for label in outputs]), 1)
        return Confusion(labels, counts)

    @cached_property
    def rows(self) -> list[dict[str, str | int | float]]:
        """For each label: its number in the references, precision, recall and F1 in per cent."""
        right, given, true = np.diag(self.counts), self.counts.sum(0), self.counts.sum(1)
        return [
            {
                "label": label, "number": int(true[at]), "precision": 100 * float(right[at]) / max(1, int(given[at])),
                "recall": 100 * float(right[at]) / max(1, int(true[at])),
                "f1": 200 * float(right[at]) / max(1, int(given[at] + true[at])),
            }
            for at, label in enumerate(self.labels)
        ]  # fmt: skip

    def largest(self) -> list[tuple[str, str, int]]:
        """The ten most frequent errors: reference, answer, and their number."""
        errors = self.counts - np.diag(np.diag(self.counts))
        order = np.argsort(-errors, axis=None, kind="stable")[:10]
        places = [divmod(int(at), len(self.labels)) for at in order]
        return [(self.labels[i], self.labels[j], int(errors[i, j])) for i, j in places if errors[i, j]]
