"""Evaluation of classifiers on tables, and the analysis of their validation data."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from heed.core.errors import DataError, UsageError
from heed.core.progress import message
from heed.data.validation import VALID, Row, read_valid
from heed.evaluation.evaluation import INTERVALS, Evaluation, with_clean_scores
from heed.evaluation.leakage import check_leakage
from heed.evaluation.test_set import HeldOut
from heed.metrics.calibration import expected_calibration_error, reliability
from heed.metrics.classification import Confusion
from heed.tasks.classification.answer import combinations
from heed.tasks.classification.prepare import targets_of
from heed.tasks.classification.report import report_sections
from heed.tasks.classification.rows import split
from heed.tasks.classification.scores import statistics_of
from heed.text.readers.label_columns import UnclearColumnsError
from heed.text.readers.labelled import LabelledTable, OpenTable, open_labelled, possible_headings
from heed.text.readers.lines import Errors


def read_test(predictor: Any, table: Path, errors: Errors) -> list[Row]:
    """The rows of a test table, texts and labels; rows without either are left out, and counted.

    So are those with several labels, unless the run predicts several, and those with another label than a number, if
    that is what the run predicts.
    """
    rows: list[Row] = []
    left_out, labels = 0, predictor.labels
    named = "number" if labels.kind == "number" else "label"
    opened = open_test(predictor, table, errors)
    if labels.columns and opened.heading and opened.choice.label is not None:
        trained, here = f'"{labels.columns[-1].strip()}"', opened.shown(opened.choice.label)
        if trained.casefold() != here.casefold():
            message(f"{table}: no column {trained}, which the run was trained on; compared with {here}")
    for row in opened.rows:
        if labels.kind == "labels":
            has_answer = bool(row.labels) or row.is_list
        else:
            has_answer = len(row.labels) == 1 and (labels.kind == "label" or labels.known(row.labels))
        if all(text.strip() for text in row.texts) and has_answer:
            rows.append((*row.texts, labels.written(row.labels)))
        else:
            left_out += 1
    one = "single " if labels.kind == "label" else ""
    if left_out:
        message(f"{table}: skipped {left_out:,} rows without a text or a {one}{named}")
    if not rows:
        raise DataError(f"{table}: no rows with a text and a {one}{named}.")
    return rows


def open_test(predictor: Any, table: Path, errors: Errors = "strict", with_labels: bool = True) -> OpenTable:
    """Open a table for a run, and say which texts are read if its headings are not those of the training table.

    Raises UsageError if its rows have another number of texts than the run reads.
    """
    names = predictor.labels.columns[:-1]
    listed = " and ".join(f'"{name.strip()}"' for name in names)
    advice = f"Name the columns as there: {listed}." if names else "Give a table with the same columns."
    try:
        opened = open_labelled(_test_table(predictor, table, errors, with_labels), errors, needs_labels=with_labels)
    except UnclearColumnsError as error:
        columns = ", ".join(f'"{name.strip()}"' for name in predictor.labels.columns)
        as_there = f"Name the columns as in the training table: {columns}." if columns else advice
        raise UsageError(f"{error.problem} {as_there}") from error
    opened.require_texts(predictor.num_texts, advice)
    present = {heading.strip().casefold() for heading in opened.heading or ()}
    if present and (missing := [name.strip() for name in names if name.strip().casefold() not in present]):
        lacking, here = " or ".join(map('"{}"'.format, missing)), " and ".join(map(opened.shown, opened.choice.texts))
        message(f"{table}: no column {lacking}, which the run was trained on; read {here}")
    return opened


def _test_table(predictor: Any, table: Path, errors: Errors, with_labels: bool) -> LabelledTable:
    """A table with the columns that the run was trained on, if it has these headings."""
    data, columns = predictor.run.recipe.data, predictor.labels.columns
    if not columns:
        given = tuple(data.text_column), data.label_column if with_labels else None
        return LabelledTable(table, *given, data.label_separator)
    names = {name.strip().casefold() for name in possible_headings(LabelledTable(table), errors)}
    texts = columns[:-1] if all(name.strip().casefold() in names for name in columns[:-1]) else ()
    label = columns[-1] if with_labels and columns[-1].strip().casefold() in names else None
    return LabelledTable(table, texts, label, data.label_separator)


def evaluate_table(predictor: Any, table: Path, errors: Errors) -> Evaluation:
    """The scores of a run on a table, with intervals; per label and the most frequent errors for one label."""
    rows = read_test(predictor, table, errors)
    answers = [found[0].text for found in predictor.predict_texts([split(row)[0] for row in rows])]
    references = [row[-1] for row in rows]
    kind = predictor.labels.kind
    statistics = statistics_of(kind, answers, references)
    test = HeldOut((table.name,), [("\t".join(split(row)[0]), row[-1]) for row in rows])
    valid = read_valid(predictor.run.folder) if predictor.run.files.has(VALID) else []
    normalise = predictor.run.recipe.data.normaliser.apply
    texts, valid_texts = ([("\t".join(map(normalise, split(row)[0])),) for row in each] for each in (rows, valid))
    leakage = check_leakage(predictor.run, texts, valid_texts, are_normalised=True)
    evaluation = Evaluation(
        system=str(predictor.run.folder),
        test=test,
        run=predictor.run,
        scores={name: each.score(INTERVALS) for name, each in statistics.items()},
        how={"precision": predictor.run.precision}, leakage=leakage, num_rows=len(rows), statistics=statistics,
        by_label=Confusion.of(answers, references).rows if kind == "label" else (),
        confusions=Confusion.of(answers, references).largest() if kind == "label" else (),
    )  # fmt: skip
    return with_clean_scores([evaluation])[0]


def analyse(predictor: Any) -> dict[str, Any]:
    """Scores, errors and calibration on the validation data, as `validation.json` has them."""
    rows, labels = read_valid(predictor.run.folder), predictor.labels
    texts, references = [split(row)[0] for row in rows], [row[-1] for row in rows]
    targets = targets_of(labels, references)
    parts = predictor.parts_on_valid(texts)
    systems = []
    for answer in combinations(labels.link, parts, targets):
        answer = predictor.answer if answer.name == predictor.answer.name else answer
        probabilities = labels.link.probabilities(answer.outputs(parts))
        answers = [labels.answer(row) for row in probabilities.tolist()]
        scores = [each.score(INTERVALS) for each in statistics_of(labels.kind, answers, references).values()]
        systems.append((answer.name, scores, answers, probabilities))
    name, scores, answers, probabilities = next(each for each in systems if each[0] == predictor.answer.name)
    result: dict[str, Any] = {
        "num_lines": len(rows), "scores": [score.to_json() for score in scores], "answer": name,
        "systems": [{"name": each[0], "scores": [score.to_json() for score in each[1]]} for each in systems],
    }  # fmt: skip
    if labels.kind == "label":
        confusion = Confusion.of(answers, references)
        right = np.array([a == b for a, b in zip(answers, references, strict=True)])
        bins = reliability(probabilities.max(1).values.double().numpy(), right)
        result |= {"by_label": confusion.rows, "confusions": confusion.largest()}
        result |= {"calibration_error": expected_calibration_error(bins)}
    return {**result, "sections": report_sections(predictor, result)}
