"""Answers to questions on the command line: training, predictions, evaluation, the data doctor, and wrong input."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest
from command import call
from toy import flags, unchecked_shapes
from toy_questions import TINY, questions, write_questions

QUICK = flags({key: value for key, value in TINY.items() if key != "task"})
CONTEXT = "Bob Ray lives in La Paz, house 7. Cem went to Oslo, house 12."


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with questions for training and testing, and a run."""
    folder = tmp_path_factory.mktemp("answers")
    table = write_questions(folder / "train.jsonl", questions(unanswered=0.2))
    write_questions(folder / "test.jsonl", questions(seed=1, number=30, unanswered=0.2))
    with unchecked_shapes():
        result = call("train", "--task", "span", "--table", table, "--out", folder / "run", *QUICK)
    assert result.code == 0, result.err
    (folder / "train.log").write_text(result.err)
    return folder


def test_train_says_what_it_reads_and_reports(folder: Path) -> None:
    log = (folder / "train.log").read_text()
    assert "train: 300 questions about 300 contexts of" in log and "without an answer: 69;" in log
    assert "answer_f1" in log
    report = (folder / "run/report.md").read_text()
    assert report.startswith("# Extractive answers") and "exact match" in report
    info = call("info", folder / "run").out
    assert "longest answer" in info and "answer_f1" in info


def test_an_answer_a_line_with_probabilities_and_alternatives(folder: Path) -> None:
    lines = f"Where is Cem?\t{CONTEXT}\nWhere is Ann?\t{CONTEXT}\n"
    assert call("predict", folder / "run", stdin=lines).lines == ["Oslo", ""]
    [first, _] = call("predict", folder / "run", "--probabilities", "--top", 2, stdin=lines).lines
    best, share, second, less = first.split("\t")
    assert best == "Oslo" != second and float(share) > float(less)
    record = json.dumps({"question": "Where is Cem?", "context": CONTEXT.replace(". ", ".\n")})
    [found] = call("predict", folder / "run", "--json", stdin=record + "\n").lines
    [prediction] = json.loads(found)["predictions"]
    assert (prediction["text"], prediction["start"], prediction["end"]) == ("Oslo", 46, 50)


def test_a_table_gets_a_row_for_each_question(folder: Path) -> None:
    result = call("predict", folder / "run", "--table", folder / "test.jsonl", "--probabilities", "--top", 2)
    rows = list(csv.DictReader(result.out.splitlines()))
    assert [*rows[0]] == [
        "id", "question", "answer", "answer start", "answer probability", "answer2", "answer2 start",
        "answer2 probability",
    ]  # fmt: skip
    expected = questions(seed=1, number=30, unanswered=0.2)
    assert [row["question"] for row in rows] == [row["question"] for row in expected]
    assert [row["id"] for row in rows[:2]] == ["1", "2"]
    right = [row["answer"] == each["answer"] for row, each in zip(rows, expected, strict=True)]
    assert sum(right) > 24
    starts = [(row["answer start"], str(each["start"])) for row, each in zip(rows, expected, strict=True)]
    assert all(start == place for (start, place), is_right in zip(starts, right, strict=True) if is_right)


def test_runs_are_tested_against_each_other_and_the_sliding_window(folder: Path) -> None:
    run = folder / "run"
    result = call("evaluate", run, run, "--table", folder / "test.jsonl")
    assert result.code == 0, result.err
    assert "test.jsonl, 30 questions" in result.out and "exact match" in result.out
    assert "sliding window" in result.out and "against the first" in result.out
    assert "no test question is in the training data" in result.out
    both = json.loads(call("evaluate", run, "--table", folder / "test.jsonl", "--json").out)
    assert [score["name"] for score in both[0]["scores"]] == ["exact match", "F1"]
    assert both[1]["system"] == "sliding window" and both[1]["against_first"]["answer_f1"]["difference"] < 0


def test_the_doctor_examines_questions(folder: Path) -> None:
    result = call("data", "check", "--table", folder / "train.jsonl", "--questions", "--test", folder / "test.jsonl")
    assert result.code == 0, result.err
    assert "300 questions" in result.out and "test: 30 questions." in result.out


def row(number: int, **changes: Any) -> dict[str, Any]:
    return {"question": f"Where is Bob Ray {number}?", "context": CONTEXT, "answer": "La Paz", "start": 17, **changes}


LOST = "have an answer that is not in their context, and cannot be trained on."
NASTY: dict[str, tuple[list[Any], int, str]] = {
    "empty": ([], 65, "error: q.jsonl: no questions.\n"),
    "no context": (
        [{"question": "x", "answer": "y"}], 65,
        "error: q.jsonl:1 has no column called context or passage or paragraph or text, but 'question', 'answer'.\n",
    ),
    "no answers": (
        [{"question": "x", "context": "y"}], 65,
        "error: q.jsonl:1 has no column called answer or answers, but 'question', 'context'.\n",
    ),
    "a number as the question": (
        [row(1, question=5)], 65, "error: q.jsonl:1: 'question' is a number; it must be a string.\n",
    ),
    "answers elsewhere": (
        [row(n, answer="Rome" if n % 3 else "La Paz") for n in range(90)], 65,
        f"error: this data would ruin the run:\n  60 of 90 questions (66.7 %) {LOST} Answers must be copied from the "
        "context, letter for letter.\nFix it, or continue with --force.\n",
    ),
    "few": (
        [row(n) for n in range(5)], 65,
        "error: this data would ruin the run:\n  Only 5 questions have an answer that can be trained on. Give at least "
        "5,000.\nFix it, or continue with --force.\n",
    ),
    "a later bad row": (
        [*(row(n) for n in range(30)), row(30, start="x")], 65,
        "error: The training data cannot be read to its end. q.jsonl:31: 'start' is 'x'; it must be a whole number, "
        "counted from 0.\n",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", NASTY)
def test_questions_that_cannot_be_learned_are_refused(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    rows, code, message = NASTY[name]
    write_questions(tmp_path / "q.jsonl", rows)
    result = call("train", "--task", "span", "--table", "q.jsonl", "--out", "run", "--quiet")
    assert (result.code, result.err) == (code, message)
    assert not (tmp_path / "run").exists()


def test_a_division_that_leaves_too_little_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_questions(tmp_path / "q.jsonl", [row(n) for n in range(40)])  # all about one context
    train = ("train", "--task", "span", "--table", "q.jsonl", "--out", "run", "--quiet", "--overwrite")
    most = call(*train, "--data.hold_out=20")
    assert (most.code, most.err) == (
        65, "error: the contexts that were held out have 40 of the 40 questions. Give separate validation questions "
        "(--valid-table), or lower data.hold_out.\n",
    )  # fmt: skip
    none = call(*train, "--data.hold_out=1")
    assert (none.code, none.err) == (
        65, "error: no context was held out, because there are so few. Give separate validation questions "
        "(--valid-table), or raise data.hold_out.\n",
    )  # fmt: skip


def test_settings_and_lines_that_make_no_sense_are_refused(folder: Path) -> None:
    run, table = folder / "run", folder / "train.jsonl"
    missing = call("train", "--task", "span", "--out", folder / "new")
    assert (missing.code, missing.err) == (2, "error: data.table is missing: give --table F.\n")
    windows = call("train", "--task", "span", "--table", table, "--out", folder / "new", "--data.overlap=400")
    assert windows.code == 2 and "set data.overlap below data.max_tokens" in windows.err
    smooth = call(
        "train", "--task", "span", "--table", table, "--out", folder / "new", "--training.label_smoothing=0.1"
    )
    assert smooth.code == 2 and "spans have no label smoothing" in smooth.err
    line = call("predict", run, stdin=f"Where is Cem?\t{CONTEXT}\nno tab\n")
    expected = "expected a question, a tab and its context, or a JSON object with both, got 0 tabs: 'no tab'.\n"
    assert (line.code, line.lines, line.err) == (2, ["Oslo"], f"error: standard input, line 2: {expected}")
    number = call("predict", run, stdin=f"Where is Cem?\t{CONTEXT}\n" * 1100 + '{"question": 1, "context": "x"}\n')
    assert "error: standard input, line 1,101: 'question' is a number; it must be a string." in number.err
    unlabelled = folder / "unlabelled.jsonl"
    unlabelled.write_text(json.dumps({"question": "x", "context": "y"}) + "\n")
    assert call("predict", run, "--table", unlabelled).code == 0
    scored = call("evaluate", run, "--table", unlabelled)
    assert scored.code == 65 and "has no column called answer or answers" in scored.err
