"""Evaluation of taggers on CoNLL files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from heed.core.errors import DataError
from heed.data.validation import Row, read_valid
from heed.evaluation.evaluation import INTERVALS, Evaluation
from heed.evaluation.leakage import check_leakage
from heed.evaluation.test_set import HeldOut
from heed.metrics import METRICS
from heed.metrics.metric import SentenceStatistics
from heed.metrics.tagging import scores_by_type
from heed.run import Run
from heed.tasks.tagging.prepare import row_of, words_of
from heed.tasks.tagging.tagger import Tagger
from heed.text.readers.conll import read_conll
from heed.text.readers.lines import Errors
from heed.text.tag_schemes import Scheme, SchemeCounts, converted, spans

SPAN_METRICS = ("entity_f1", "entity_precision", "entity_recall", "tag_accuracy")
PLAIN_METRICS = ("tag_accuracy",)


def evaluate_file(run: Run, tagger: Tagger, path: Path, errors: Errors) -> Evaluation:
    """The scores of a run on a CoNLL file, which is read with the run's columns."""
    data: Any = run.recipe.data
    rows = [row_of(sentence) for sentence in read_conll(path, data.columns, errors)]
    if not rows:
        raise DataError(f"{path}: no sentences to score.")
    leakage = check_leakage(run, [row[:2] for row in rows], kinds=("src",))
    return evaluate_rows(run, tagger, path.name, rows, leakage=leakage)


def evaluate_valid(run: Run, tagger: Tagger) -> Evaluation:
    """The scores of a run on its validation data."""
    return evaluate_rows(run, tagger, "validation", read_valid(run.folder))


def evaluate_rows(run: Run, tagger: Tagger, name: str, rows: Sequence[Row], **more: Any) -> Evaluation:
    """The scores of a run on rows of tokens, tags and marks."""
    outputs = [" ".join(tags) for tags in tagger.tags([words_of(row) for row in rows])]
    references = [row[1] for row in rows]
    written = tagger.labels.written
    statistics = statistics_of(outputs, references, written)
    by_label = scores_by_type(outputs, references, written == "plain")
    return Evaluation(
        str(run.folder),
        HeldOut((name,), [row[:2] for row in rows], unit="sentence"),
        run,
        {name: each.score(INTERVALS) for name, each in statistics.items()},
        how={"scheme": compared_scheme(references, written), "precision": run.precision},
        num_rows=len(rows),
        statistics=statistics,
        by_label=[scores.to_json() for scores in by_label],
        **more,
    )


def statistics_of(
    outputs: Sequence[str], references: Sequence[str], written: Scheme
) -> Mapping[str, SentenceStatistics]:
    """The counts of each sentence by metric, for tags in the scheme `written`; references may be in another one."""
    scheme = compared_scheme(references, written)
    if scheme != written:
        outputs = [" ".join(converted(output.split(), scheme)) for output in outputs]
    metrics: dict[str, Any] = {name: METRICS[name] for name in (PLAIN_METRICS if written == "plain" else SPAN_METRICS)}
    return {name: metric().statistics(outputs, references) for name, metric in metrics.items()}


def compared_scheme(references: Sequence[str], written: Scheme) -> Scheme:
    """The scheme in which outputs are compared with the references: that of the references, if both are spans."""
    counts = SchemeCounts()
    for reference in references:
        counts.add(reference.split())
    return written if "plain" in (written, counts.scheme) else counts.scheme


def marked_text(row: Row, tags: Sequence[str], written: Scheme) -> str:
    """A sentence with its spans in brackets, `[Redondo Beach location]`, or with its tags, `dog/NOUN`."""
    tokens = row[0].split(" ")
    if written == "plain":
        return " ".join(f"{token}/{tag}" for token, tag in zip(tokens, tags, strict=True))
    for span in spans(tags):
        tokens[span.start] = f"[{tokens[span.start]}"
        tokens[span.end - 1] += f" {span.type}]" if span.type else "]"
    return " ".join(tokens)
