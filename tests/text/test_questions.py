"""Tables of questions: their layouts, what is refused, and what the data doctor finds."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from heed.core.errors import DataError, HeedError, UsageError
from heed.text.doctor.questions import diagnose_questions
from heed.text.readers.questions import Answer, Question, QuestionTable, occurrences

CONTEXT = "Ann lives in Oslo. Bob is in Oslo too, and Cem in Rome."
GAP = ["ID", "Text", "Pronoun", "Pronoun-offset", "A", "A-offset", "A-coref", "B", "B-offset", "B-coref", "URL"]


def jsonl(path: Path, *rows: Any) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def row(**changes: Any) -> dict[str, Any]:
    return {"question": "Where is Bob?", "context": CONTEXT, "answer": "Oslo", "start": 29, **changes}


def test_flat_tables_in_every_format_are_read_alike(tmp_path: Path) -> None:
    expected = Question(1, "Where is Bob?", CONTEXT, (Answer("Oslo", 29),))
    [one] = QuestionTable(jsonl(tmp_path / "q.jsonl", row()))
    assert one == expected
    with (tmp_path / "q.csv").open("w", newline="") as file:
        csv.writer(file).writerow(["Context", "Question", "Answer", "answer_start"])
        csv.writer(file).writerow([CONTEXT, "Where is Bob?", "Oslo", 29])
    [two] = QuestionTable(tmp_path / "q.csv")
    assert two == Question(2, *(getattr(expected, name) for name in ("question", "context", "answers")))


def test_layouts_of_squad_are_read_alike(tmp_path: Path) -> None:
    qas = [
        {"id": "a", "question": "Where is Bob?", "answers": [{"text": "Oslo", "answer_start": 29}]},
        {"id": "b", "question": "Where is Dan?", "answers": [], "is_impossible": True},
    ]
    paragraph = {"context": CONTEXT, "qas": qas}
    nested = list(QuestionTable(jsonl(tmp_path / "q.jsonl", {"title": "T", **paragraph})))
    (tmp_path / "q.json").write_text(json.dumps({"version": "2", "data": [{"title": "T", "paragraphs": [paragraph]}]}))
    assert nested == list(QuestionTable(tmp_path / "q.json"))
    assert [(each.id, each.answers) for each in nested] == [("a", (Answer("Oslo", 29),)), ("b", ())]
    columns = {"text": ["Oslo", "Oslo too"], "answer_start": [29, 29]}
    flat = row(answers=columns)
    del flat["answer"], flat["start"]
    [of_columns] = QuestionTable(jsonl(tmp_path / "c.jsonl", flat))
    assert of_columns.answers == (Answer("Oslo", 29), Answer("Oslo too", 29))
    nested = [{"text": "Oslo", "answer_start": 29}, {"text": None, "answer_start": None}, {}]
    read = list(QuestionTable(jsonl(tmp_path / "n.jsonl", *({**flat, "answers": answers} for answers in nested))))
    assert [each.answers for each in read] == [(Answer("Oslo", 29),), (), ()]


def test_a_row_of_gap_is_a_choice_between_two_names(tmp_path: Path) -> None:
    text = "Ann met Eve when she was in Oslo."
    values = ["x-1", text, "she", "17", "Ann", "0", "FALSE", "Eve", "8", "TRUE", "http://x"]
    (tmp_path / "gap.tsv").write_text("\t".join(GAP) + "\n" + "\t".join(values) + "\n")
    [question] = QuestionTable(tmp_path / "gap.tsv")
    names = (Answer("Ann", 0), Answer("Eve", 8))
    assert question == Question(2, "she", text, names[1:], names, 17, "x-1", "feminine")
    values[5] = "0.0"

    del values[6], values[-2]
    unknown = [name for name in GAP if not name.endswith("coref")]
    (tmp_path / "gap.tsv").write_text("\t".join(unknown) + "\n" + "\t".join(values) + "\n")
    assert [*QuestionTable(tmp_path / "gap.tsv", needs_answers=False)] == [replace(question, answers=None)]
    with pytest.raises(DataError, match="not a row of GAP: 'a-coref' is missing"):
        [*QuestionTable(tmp_path / "gap.tsv")]


def test_ids_of_zero_and_places_with_a_decimal_point_are_read(tmp_path: Path) -> None:
    records = [row(id=0, group=0, start="13.0"), row(id=1, start=13.0), row(answer=" ", answers=["Oslo"])]
    path = tmp_path / "questions.jsonl"
    path.write_text("\n\n".join(map(json.dumps, records)) + "\n \n")
    first, second, third = QuestionTable(path)
    assert (first.id, first.group, first.answers) == ("0", "0", (Answer("Oslo", 13),))
    assert (second.id, second.answers) == ("1", (Answer("Oslo", 13),))
    assert (third.number, third.answers) == (5, (Answer("Oslo"),))


def test_an_answer_of_spaces_is_none(tmp_path: Path) -> None:
    path = tmp_path / "questions.jsonl"
    path.write_text("\n".join(map(json.dumps, [row(answer=" "), row(answer=["  ", "Oslo"])])) + "\n")
    assert [each.answers for each in QuestionTable(path)] == [(), (Answer("Oslo"),)]


def test_an_answer_is_found_at_its_place_or_at_the_nearest_one() -> None:
    assert Answer("Oslo", 13).found_in(CONTEXT) == Answer("Oslo", 13)
    assert Answer("Oslo", 27).found_in(CONTEXT) == Answer("Oslo", 29)
    assert Answer("Oslo").found_in(CONTEXT) == Answer("Oslo", 13)
    assert Answer("Paris", 3).found_in(CONTEXT) is None
    assert occurrences("aaa", "aa") == [0, 1] and occurrences("aaa", "") == []


NASTY: list[tuple[str, Any, type[HeedError], str]] = [
    ("no question", {"context": "x", "answer": "x"}, DataError, "has no column called question or query"),
    ("no context", {"question": "x", "answer": "x"}, DataError, "has no column called context or passage"),
    ("no answer", {"question": "x", "context": "y"}, DataError, "has no column called answer or answers"),
    ("a number", row(question=5), DataError, "'question' is a number; it must be a string."),
    ("no place", row(start="here"), DataError, "'start' is 'here'; it must be a whole number, counted from 0."),
    ("half a place", row(start=13.5), DataError, "'start' is 13.5; it must be a whole number"),
    ("endless place", row(start=float("inf")), DataError, "'start' is inf; it must be a whole number"),
    ("gap", {**dict.fromkeys(GAP, "x"), "A-offset": None}, DataError, "not a row of GAP"),
    ("columns", row(answer={"text": ["a", "b"], "start": [0]}), DataError, "the answers have 2 texts and 1 starts"),
    ("one text", row(answer={"text": 3}), DataError, "'text' is a number; it must be a list."),
    ("answers", row(answer=[5]), DataError, "an answer is a number; it must be a string, or"),
    ("qas", {"context": "x", "qas": 5}, DataError, "'qas' is a number; it must be a list of questions."),
    ("candidates", row(candidates={"a": 1}), DataError, "'candidates' is an object; it must be a list."),
    ("half a character", row(question="\ud800"), DataError, "field 'question' contains \\ud800, half a character."),
    ("half in a list", row(answer=["\ud800"]), DataError, "field 'answer' contains \\ud800, half a character."),
    ("half in an object", row(answer=[{"text": "\ud800"}]), DataError, "contains half a character, \\ud800."),
]


@pytest.mark.parametrize(("name", "record", "error", "message"), NASTY, ids=[case[0] for case in NASTY])
def test_what_is_no_question_is_refused(
    tmp_path: Path, name: str, record: Any, error: type[HeedError], message: str
) -> None:
    with pytest.raises(error) as caught:
        list(QuestionTable(jsonl(tmp_path / "q.jsonl", record)))
    assert message in str(caught.value)
    assert "q.jsonl:1" in str(caught.value)


def test_files_without_questions_are_refused(tmp_path: Path) -> None:
    (tmp_path / "q.json").write_text("[1, 2]")
    with pytest.raises(DataError, match="not in SQuAD's format"):
        list(QuestionTable(tmp_path / "q.json"))
    with pytest.raises(DataError, match="no questions"):
        list(QuestionTable(jsonl(tmp_path / "empty.jsonl")))
    with pytest.raises(UsageError, match="give a table of questions"):
        list(QuestionTable(tmp_path / "q.txt"))


def test_the_doctor_finds_what_is_wrong_with_answers(tmp_path: Path) -> None:
    good = [row(question=f"Where is Bob {n}?") for n in range(30)]
    bad = [
        row(question="1", answer="Paris"), row(question="2", start=27), row(question="3", start=48),
        row(question="4", answer="slo", start=30), row(question=" "), good[0], row(question="5", answer="", start=""),
        row(question="6", candidates=[{"text": "Rome", "start": 50}]),
    ]  # fmt: skip
    table = jsonl(tmp_path / "q.jsonl", *good, *bad)
    test = jsonl(tmp_path / "t.jsonl", good[3], row(question="new"))
    diagnosis = diagnose_questions(QuestionTable(table), None, QuestionTable(test))
    found = {finding.check: finding.count for finding in diagnosis.findings}
    expected = {
        "not-in-context": 1, "off-by-a-little": 1, "misplaced": 1, "cut-word": 1, "empty": 1, "duplicate": 1,
        "no-candidate": 1, "test-leak": 1, "test-context": 1,
    }  # fmt: skip
    assert expected.items() <= found.items()
    assert diagnosis.num_pairs == 35 and diagnosis.statistics["num_unanswered"] == 1
    assert diagnosis.statistics["answer_words"] == 1
    assert (
        "35 questions about 1 context of 13 words on average; without an answer: 1; with candidates: 1; all"
        in diagnosis.summary[0]
    )


def test_the_doctor_compares_questions_as_training_does(tmp_path: Path) -> None:
    table = jsonl(tmp_path / "q.jsonl", row(question="Où\u0301?"), row(question="Ou\u0300\u0301?"))
    test = jsonl(tmp_path / "t.jsonl", row(question="Ou\u0300\u0301?"))
    diagnosis = diagnose_questions(QuestionTable(table), None, QuestionTable(test))
    assert {"duplicate", "test-leak"} <= {finding.check for finding in diagnosis.findings}


def test_the_doctor_stops_if_most_answers_are_elsewhere(tmp_path: Path) -> None:
    rows = [row(question=f"Where is Bob {n}?", answer="Paris" if n % 3 else "Oslo") for n in range(90)]
    diagnosis = diagnose_questions(QuestionTable(jsonl(tmp_path / "q.jsonl", *rows)))
    assert [finding.check for finding in diagnosis.stops] == ["not-in-context"]
