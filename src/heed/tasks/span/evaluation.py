"""Evaluation of extractive answers on tables of questions, and the analysis of the validation data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from heed.core.errors import DataError
from heed.core.progress import message
from heed.data.validation import VALID, read_valid
from heed.evaluation.evaluation import INTERVALS, Evaluation, with_clean_scores
from heed.evaluation.leakage import check_leakage
from heed.evaluation.test_set import HeldOut
from heed.metrics import METRICS
from heed.metrics.answers import ChoiceBias, agreement, rates
from heed.metrics.calibration import Bin, expected_calibration_error, reliability
from heed.metrics.metric import SentenceStatistics
from heed.report.markdown import table
from heed.tasks.span.baselines import baseline_answer, baseline_name
from heed.tasks.span.prepare import seen_text
from heed.tasks.span.rows import question_of, references_in, row_of
from heed.text.readers.lines import Errors
from heed.text.readers.questions import Question, QuestionTable

SCORES = ("answer_match", "answer_f1")
CHOICE = "choice_f1"
BIAS = "choice_bias"
WOMEN, MEN = "feminine", "masculine"
"""Groups of questions whose scores are compared."""


def statistics_of(
    outputs: Sequence[str], questions: Sequence[Question], names: Sequence[str] = ()
) -> dict[str, SentenceStatistics]:
    """The counts of each question by metric: those of answers or, if all are choices, of choices; or these `names`."""
    references = [references_in(question) for question in questions]
    are_choices = all(question.candidates for question in questions)
    metrics: dict[str, Any] = {name: METRICS[name]() for name in names or (*SCORES, *[CHOICE] * are_choices)}
    if not names and are_choices and {each.group for each in questions} == {WOMEN, MEN}:
        metrics[BIAS] = ChoiceBias(groups=tuple(each.group == WOMEN for each in questions))
    return {name: metric.statistics(outputs, references) for name, metric in metrics.items()}


def by_group(statistics: Mapping[str, SentenceStatistics], questions: Sequence[Question]) -> list[dict[str, Any]]:
    """Precision, recall and F1 of the choices in each group of questions; empty without groups."""
    groups = [question.group for question in questions]
    if CHOICE not in statistics or not any(groups):
        return []
    rows = statistics[CHOICE].rows
    return [
        {"label": name, "number": groups.count(name), **rates(rows[[group == name for group in groups]].sum(0))}
        for name in sorted({*groups})
    ]


def read_test(table: QuestionTable) -> list[Question]:
    """The questions of a test table; those without a question or a context are left out, and counted."""
    every = list(table)
    questions = [each for each in every if each.question.strip() and each.context.strip()]
    if len(questions) < len(every):
        message(f"{table.path}: skipped {len(every) - len(questions):,} rows without a question or a context")
    if not questions:
        raise DataError(f"{table.path}: no questions with a context.")
    return questions


def evaluate_table(predictor: Any, path: Path, errors: Errors) -> Evaluation:
    """The scores of a run on a table of questions."""
    questions = read_test(QuestionTable(path, errors))
    run = predictor.run
    valid = valid_questions(run) if run.files.has(VALID) else []
    normaliser = run.recipe.data.normaliser
    rows, valid_rows = ([(seen_text(each, normaliser),) for each in some] for some in (questions, valid))
    leakage = check_leakage(run, rows, valid_rows, are_normalised=True)
    return with_clean_scores([evaluate_questions(predictor, questions, path.name, leakage=leakage)])[0]


def valid_questions(run: Any) -> list[Question]:
    """The validation questions of a run."""
    return [question_of(row, number) for number, row in enumerate(read_valid(run.folder), start=1)]


def evaluate_questions(predictor: Any, questions: Sequence[Question], name: str, **more: Any) -> Evaluation:
    """The scores of a run on questions, whose answers must be known."""
    outputs = [found[0].text for found in predictor.extract(questions)]
    how = {"precision": predictor.run.precision}
    return evaluate_answers(str(predictor.run.folder), predictor.run, questions, outputs, name, how=how, **more)


def evaluate_baseline(path: Path, errors: Errors) -> Evaluation:
    """The scores of the answers without a model."""
    questions = read_test(QuestionTable(path, errors))
    outputs = [baseline_answer(each) for each in questions]
    return evaluate_answers(baseline_name(questions), None, questions, outputs, path.name)


def evaluate_answers(
    system: str, run: Any, questions: Sequence[Question], outputs: Sequence[str], name: str, **more: Any
) -> Evaluation:
    """The scores of answers."""
    statistics = statistics_of(outputs, questions)
    return Evaluation(
        system=system,
        test=HeldOut((name,), [row_of(question) for question in questions], unit="question"),
        run=run,
        scores={name: each.score(INTERVALS) for name, each in statistics.items()},
        num_rows=len(questions),
        statistics=statistics,
        by_label=by_group(statistics, questions),
        **more,
    )


def analyse(predictor: Any) -> Mapping[str, Any]:
    """Scores and calibration on the validation data, as `validation.json` has them."""
    questions = valid_questions(predictor.run)
    found = [answers[0] for answers in predictor.extract(questions)]
    evaluation = evaluate_answers("", predictor.run, questions, [answer.text for answer in found], "validation")
    shares = [agreement(a.text, references_in(q)) for a, q in zip(found, questions, strict=True)]
    bins = reliability(np.array([answer.probability for answer in found]), np.array(shares))
    by_label = {"by_label": evaluation.by_label} if evaluation.by_label else {}
    return {
        "num_lines": len(questions), "scores": [score.to_json() for score in evaluation.scores.values()], **by_label,
        "calibration_error": expected_calibration_error(bins), "sections": [_probabilities(bins)],
    }  # fmt: skip


def _probabilities(bins: list[Bin]) -> str:
    """The section of the report on how far probabilities can be trusted."""
    rows = [[f"{100 * each.probability:.0f} %", f"{each.count:,}", f"{100 * each.share:.0f} %"] for each in bins]
    shown = table([["probability", "questions", "given by annotators"], *rows], right=range(3))
    error = 100 * expected_calibration_error(bins)
    return (
        "## Probabilities\n\nThe probability of an answer is that of its place and its words, as one annotator marks "
        f"them. It is off by {error:.1f} points on average (expected calibration error, ten bins).\n\n{shown}"
    )
