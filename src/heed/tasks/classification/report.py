"""Sections of a classifier's report: its parts, its labels, its errors, and the n-grams that it goes by."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from heed.metrics.metric import Score
from heed.report.markdown import code, plain, table

_WHAT = {
    "linear": "The linear model over n-grams alone is used, because nothing beat it.",
    "neural": "The neural reader alone is used, because it was better than the linear model and both together.",
    "both": "The linear model and the neural reader are used together, because that was better than either.",
}
TOP_NGRAMS = 12
MOST_LABELS = 30


def report_sections(predictor: Any, analysis: Mapping[str, Any]) -> list[str]:
    """The sections as Markdown, from the analysis of the validation data."""
    parts = [_systems(analysis), _labels(analysis), _ngrams(predictor)]
    return [part for part in parts if part]


def _systems(analysis: Mapping[str, Any]) -> str:
    """The scores of each part alone and of both together."""
    systems = analysis["systems"]
    if len(systems) < 2:
        return ""
    heads = ["answers of", *(score["name"] for score in systems[0]["scores"])]
    rows = [
        [f"**{each['name']}**" if each["name"] == analysis["answer"] else each["name"],
         *(Score.from_json(score).numbers for score in each["scores"])]
        for each in systems
    ]  # fmt: skip
    note = "The choice was made on these rows, so the scores are slightly too good; a test table gives fair ones."
    shown = table([heads, *rows], right=range(1, len(heads)))
    return f"## Which part answers\n\n{_WHAT[analysis['answer']]} {note}\n\n{shown}"


def _labels(analysis: Mapping[str, Any]) -> str:
    """Precision, recall and F1 of each label, the most frequent errors, and the calibration."""
    if "by_label" not in analysis:
        return ""
    ranked = sorted(analysis["by_label"], key=lambda row: -row["number"])[:MOST_LABELS]
    rows = [
        [plain(row["label"]), f"{row['number']:,}", *(f"{row[name]:.1f}" for name in ("precision", "recall", "f1"))]
        for row in ranked
    ]
    text = "## Labels\n\n" + table([["label", "rows", "precision", "recall", "F1"], *rows], right=range(1, 5))
    errors = [f"{plain(true)} → {plain(given)} ({number:,})" for true, given, number in analysis["confusions"]]
    text += f"\n\nMost frequent errors, true → given: {', '.join(errors)}." if errors else ""
    error = 100 * analysis["calibration_error"]
    return f"{text}\n\nProbabilities are off by {error:.1f} points on average (expected calibration error, ten bins)."


def _ngrams(predictor: Any) -> str:
    """The n-grams with the largest weights for each label."""
    linear, labels = predictor.linear, predictor.labels
    if linear is None or labels.kind == "number" or "linear" not in predictor.answer.factors:
        return ""
    lines = []
    for number, label in enumerate(labels.names[:MOST_LABELS]):
        shown: Sequence[str] = [code(ngram) for ngram, _ in linear.top_ngrams(number, TOP_NGRAMS)]
        lines.append(f"- {plain(label)}: {' '.join(shown)}")
    return "## What the linear model goes by\n\nThe n-grams with the largest weights.\n\n" + "\n".join(lines)
