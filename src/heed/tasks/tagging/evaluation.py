"""Evaluation of taggers on CoNLL files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from heed.core.errors import DataError
from heed.evaluation.evaluation import INTERVALS, Evaluation
from heed.evaluation.leakage import check_leakage
from heed.evaluation.test_set import HeldOut
from heed.metrics import METRICS
from heed.tasks.tagging.prepare import row_of, words_of
from heed.text.readers.conll import read_conll


def evaluate_tagger(predictor: Any, path: Path) -> Evaluation:
    """The scores of a run on a CoNLL file, read with the run's columns."""
    from heed.tasks.tagging.task import PLAIN_METRICS, SPAN_METRICS

    run, data = predictor.run, predictor.run.recipe.data
    rows = [row_of(sentence) for sentence in read_conll(path, data.columns, data.errors)]
    if not rows:
        raise DataError(f"{path}: no sentences to score.")
    outputs = [" ".join(tags) for tags in predictor.tagger.tags([words_of(row) for row in rows])]
    names = PLAIN_METRICS if predictor.labels.written == "plain" else SPAN_METRICS
    metrics: list[Any] = [METRICS[name] for name in names]
    scores = [metric().score(outputs, [row[1] for row in rows], intervals=INTERVALS) for metric in metrics]
    return Evaluation(
        str(run.folder), HeldOut((f"{path.name} (tokens)", f"{path.name} (tags)"), [row[:2] for row in rows]), run,
        dict(zip(names, scores, strict=True)), leakage=check_leakage(run, [row[:2] for row in rows]),
        num_rows=len(rows),
    )  # fmt: skip
