"""The scores of each kind of answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

from heed.metrics import METRICS
from heed.metrics.metric import OutputMetric, Score, SentenceStatistics

METRICS_OF = {
    "label": ("accuracy", "macro_f1"),
    "labels": ("micro_f1", "macro_f1", "exact_match"),
    "number": ("pearson", "spearman", "mean_absolute_error"),
}
"""The scores of each kind of answer; the first is the usual stop metric."""


def statistics_of(kind: str, answers: Sequence[str], references: Sequence[str]) -> dict[str, SentenceStatistics]:
    """The counts of each score of a kind of answer, by metric."""
    metrics = {name: cast(OutputMetric, METRICS[name]()) for name in METRICS_OF[kind]}
    return {name: metric.statistics(answers, references) for name, metric in metrics.items()}


def scores_of(kind: str, answers: Sequence[str], references: Sequence[str], intervals: int = 0) -> Mapping[str, Score]:
    """The scores of a kind of answer, by metric."""
    return {name: each.score(intervals) for name, each in statistics_of(kind, answers, references).items()}
