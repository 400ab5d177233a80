"""Leakage: test lines that are in a run's data."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from toy import pairs, prepared, tiny_keys, with_weights, without_shape_checks, write_lines, write_pairs

from heed.core.config import Document
from heed.data.validation import VALID, read_valid
from heed.evaluation.leakage import Leakage, check_leakage
from heed.execute import prepare_run
from heed.planner import Planner, TrainOptions
from heed.run import Run
from heed.tasks.prepare import LINES_SEEN

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
