"""Leakage: test lines that are in a run's data."""

from __future__ import annotations

import json
import shutil
import unicodedata
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import toy_questions
import toy_tags
from toy import (
    pairs,
    prepared,
    tiny_keys,
    unchecked_shapes,
    with_weights,
    without_shape_checks,
    write_lines,
    write_pairs,
)

from heed.core.config import Document
from heed.data.validation import VALID, read_valid
from heed.evaluation.leakage import Leakage, check_leakage
from heed.execute import prepare_run
from heed.planner import Planner, TrainOptions
from heed.run import Run
from heed.tasks.classification import scoring
from heed.tasks.classification.labels import Labels
from heed.tasks.prepare import LINES_SEEN
from heed.tasks.span import evaluation as span_evaluation

__all__ = ["without_shape_checks"]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A prepared translation run."""
    return prepared(tmp_path_factory.mktemp("leakage"))


def leakage(run: Run, rows: list[tuple[str, ...]]) -> Leakage:
    """The leakage of these rows."""
    found = check_leakage(run, rows)
    assert found is not None
    return found


def test_lines_are_matched_by_either_side_and_reported_by_number(run: Run) -> None:
    (src, tgt), (other_src, _) = [row for row in pairs() if row not in read_valid(run.folder)][:2]
    found = leakage(run, [("new", "neu"), (src, tgt), (src, "neu"), ("new", tgt), (other_src, tgt)])
    assert found.lines == (2, 3, 4, 5)
    assert found.in_training == {"pair": 1, "src": 3, "tgt": 3}
    assert found.in_validation == 0
    assert found.render("runs/a") == (
        "4 of 5 test lines (80.0 %) are in the training data of runs/a: "
        "1 as pairs, 3 by their source, 3 by their reference"
    )


def test_lines_are_normalised_as_the_run_normalises_them(run: Run) -> None:
    src, tgt = next(row for row in pairs() if row not in read_valid(run.folder))
    assert leakage(run, [(f"\ufeff{src}\x07", f" {tgt}")]).in_training["pair"] == 1


def test_unseen_lines_are_not_reported(run: Run) -> None:
    found = leakage(run, [("new", "neu")])
    assert (found.lines, found.in_training) == ((), {"pair": 0, "src": 0, "tgt": 0})
    assert found.render("runs/a") == "no test line is in the training data of runs/a"


def test_validation_lines_in_a_test_set_are_reported(run: Run) -> None:
    valid = read_valid(run.folder)
    found = leakage(run, valid)
    assert (found.lines, found.in_validation) == ((), len(valid))
    assert found.render("a") == f"no test line is in the training data of a; {len(valid)} in its validation data"


def test_without_fingerprints_nothing_is_reported(run: Run, tmp_path: Path) -> None:
    shutil.copytree(run.folder, tmp_path / "run")
    shutil.rmtree(tmp_path / "run" / LINES_SEEN)
    assert check_leakage(Run(tmp_path / "run"), [("a", "b")]) is None


def test_without_validation_lines_training_is_still_checked(run: Run, tmp_path: Path) -> None:
    shutil.copytree(run.folder, tmp_path / "run")
    (tmp_path / "run" / VALID).unlink()
    found = leakage(Run(tmp_path / "run"), pairs()[:9])
    assert found.in_validation == 0
    assert found.lines


def test_short_lines_of_a_text_are_not_compared(tmp_path: Path) -> None:
    lines = [f"line {i} of this text is long enough" for i in range(100)] + ["short"] * 30
    keys = {"task": "language-model", "data.text": str(write_lines(tmp_path / "text", lines)), "data.hold_out": 20}
    options = TrainOptions(tmp_path / "lm", device="cpu", quiet=True)
    run = prepare_run(Planner(Document(), keys, options).plan(), options.out, quiet=True)
    trained = [line for line in lines[:20] if (line,) not in read_valid(run.folder)]
    found = leakage(run, [("short",), ("a line that is long enough and new",), (trained[0],)])
    assert (found.lines, found.in_training) == ((3,), {"tgt": 1})
    assert found.render("lm") == "1 of 2 test lines of 20 characters or more (50.0 %) are in the training data of lm"
    assert leakage(run, [("short",)]).render("lm").startswith("not checked")


def test_a_fine_tuned_run_is_checked_against_the_data_of_both(run: Run, tmp_path: Path) -> None:
    write_pairs(tmp_path, "more", 50, seed=7)
    keys = tiny_keys(tmp_path, data__src=str(tmp_path / "more.aa"), data__tgt=str(tmp_path / "more.bb"))
    with_weights(run)
    options = TrainOptions(tmp_path / "tuned", init=run.folder, device="cpu", quiet=True)
    tuned = prepare_run(Planner(Document(), keys, options).plan(), options.out, run, quiet=True)
    src, tgt = next(row for row in pairs() if row not in read_valid(run.folder))
    assert leakage(tuned, [(src, tgt)]).lines == (1,)


def untrained(folder: Path, keys: dict[str, Any]) -> Run:
    """A prepared run, which was not trained."""
    options = TrainOptions(folder / "run", device="cpu", quiet=True)
    with unchecked_shapes():
        return prepare_run(Planner(Document(), keys, options).plan(), options.out, quiet=True)


def test_questions_about_contexts_with_line_breaks_are_found(tmp_path: Path) -> None:
    rows = [row | {"context": row["context"].replace(". ", ".\n")} for row in toy_questions.questions(number=80)]
    table = toy_questions.write_questions(tmp_path / "table.jsonl", rows)
    run = untrained(tmp_path, toy_questions.TINY | {"data.table": str(table), "data.hold_out": 10})
    num_valid = len(read_valid(run.folder))
    answerer = SimpleNamespace(run=run, extract=lambda questions: [[SimpleNamespace(text="")] for _ in questions])
    found = span_evaluation.evaluate_table(answerer, table, "strict").leakage
    assert found is not None and (len(found.lines), found.in_validation) == (80 - num_valid, num_valid)


def test_sentences_whose_accents_are_characters_of_their_own_are_found(tmp_path: Path) -> None:
    text = unicodedata.normalize("NFD", toy_tags.conll(toy_tags.rows(num_sentences=80)).replace("saw", "rêvé"))
    (tmp_path / "x.conll").write_text(text, encoding="utf-8")
    run = untrained(tmp_path, toy_tags.TINY | {"data.conll": str(tmp_path / "x.conll")})
    num_valid = len(read_valid(run.folder))
    found = Run(with_weights(run).folder).predictor.evaluate(tmp_path / "x.conll").leakage
    assert (len(found.lines), found.in_validation) == (80 - num_valid, num_valid)


def test_pairs_of_texts_are_found_though_spaces_are_collapsed(tmp_path: Path) -> None:
    rows = [
        {"a": f"the first  text {i}", "b": f"another\t{i % 7}", "label": "yes" if i % 3 else "no"} for i in range(80)
    ]
    table = tmp_path / "table.jsonl"
    table.write_text("".join(json.dumps(row) + "\n" for row in rows))
    keys = {"task": "classification", "data.table": str(table), "data.text_column": ["a", "b"], "data.hold_out": 10}
    run = untrained(tmp_path, keys | {"data.normaliser.collapse_spaces": True, "head.linear": False})
    classifier = SimpleNamespace(
        run=run, labels=Labels.read(run.files), num_texts=2,
        predict_texts=lambda texts: [[SimpleNamespace(text="yes")] for _ in texts],
    )  # fmt: skip
    found = scoring.evaluate_table(classifier, table, "strict").leakage
    num_valid = len(read_valid(run.folder))
    assert found is not None and (len(found.lines), found.in_validation) == (80 - num_valid, num_valid)
