"""Tests of labelled tables: which columns are chosen, what is refused, and what the doctor says."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from heed.core.errors import DataError, UsageError
from heed.text.doctor.tables import diagnose_table
from heed.text.readers.labelled import LabelledTable, open_labelled

SENTENCES = ["the film was good", "a very dull plot", "an actor of great skill", "this story was poor indeed"]


def table(path: Path, rows: list[list[str]], separator: str = "\t") -> LabelledTable:
    path.write_text("\n".join(separator.join(row) for row in rows) + "\n")
    return LabelledTable(path)


def sentences(number: int) -> list[str]:
    return [f"{SENTENCES[i % 4]} {i}" for i in range(number)]


def test_columns_are_chosen_by_usual_headings(tmp_path: Path) -> None:
    opened = open_labelled(table(tmp_path / "t.tsv", [["id", "Review", "Sentiment"], ["1", "good film", "pos"]]))
    [row] = opened.rows
    assert (row.texts, row.labels, opened.heading) == (("good film",), ("pos",), ("id", "Review", "Sentiment"))
    assert opened.choice.how == 'text: column "Review"; label: column "Sentiment"'
    pairs = [["premise", "hypothesis", "gold_label"], ["a", "b", "neutral"]]
    assert next(open_labelled(table(tmp_path / "p.tsv", pairs)).rows).texts == ("a", "b")


def test_columns_are_chosen_by_their_contents(tmp_path: Path) -> None:
    rows = [[f"id{i}", ["pos", "neg"][i % 2], text] for i, text in enumerate(sentences(20))]
    opened = open_labelled(table(tmp_path / "t.tsv", rows))
    assert opened.choice.how == "text: column 3; label: column 2"
    assert len(list(opened.rows)) == 20
    headed = open_labelled(table(tmp_path / "h.tsv", [["key", "kind", "what"], *rows]))
    assert headed.heading == ("key", "kind", "what")
    assert len(list(headed.rows)) == 20


def test_plain_text_is_read_as_tsv_also_if_it_is_compressed(tmp_path: Path) -> None:
    rows = [["pos" if i % 2 else "neg", text] for i, text in enumerate(sentences(8))]
    plain = table(tmp_path / "t.txt", rows)
    packed = tmp_path / "t.txt.gz"
    packed.write_bytes(gzip.compress(Path(plain.path).read_bytes()))
    assert [*open_labelled(LabelledTable(packed)).rows] == [*open_labelled(plain).rows]


def test_records_have_columns_too(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    records = [{"text": "a b", "labels": ["x", "y"]}, {"text": "c", "labels": []}, {"text": "d", "labels": 3}]
    path.write_text("\n".join(map(json.dumps, records)))
    rows = list(open_labelled(LabelledTable(path)).rows)
    assert [(row.labels, row.is_list) for row in rows] == [(("x", "y"), True), ((), True), (("3",), False)]


def test_a_record_may_lack_what_others_have(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    records = [{"text": "a b"}, {"label": "x", "text": "c"}, {"text": "d", "label": "y"}]
    path.write_text("\n".join(map(json.dumps, records)))
    rows = list(open_labelled(LabelledTable(path)).rows)
    assert [(row.texts, row.labels) for row in rows] == [(("a b",), ()), (("c",), ("x",)), (("d",), ("y",))]


def test_labels_in_lists_have_whole_characters(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_text(json.dumps({"text": "a b", "label": ["x", "\ud800"]}))
    with pytest.raises(DataError, match=r"t.jsonl:1: field 'label' contains \\ud800, half a char"):
        list(open_labelled(LabelledTable(path)).rows)
    [row] = open_labelled(LabelledTable(path), errors="replace").rows
    assert row.labels == ("x", "\ufffd")


@pytest.mark.parametrize(
    ("record", "message"),
    [
        ({"text": ["a"], "label": "x"}, "t.jsonl:2: column 1 is a list; it must be text."),
        ({"text": {"a": 1}, "label": "x"}, "t.jsonl:2: column 1 is an object; it must be text."),
        ({"text": "a", "label": {"x": 1}}, "t.jsonl:2: column 2 is an object; it must be text or a list of labels."),
    ],
)
def test_nested_values_are_no_texts(tmp_path: Path, record: dict[str, object], message: str) -> None:
    path = tmp_path / "t.jsonl"
    path.write_text("\n".join(map(json.dumps, [{"text": "a b", "label": "x"}, record])))
    with pytest.raises(DataError) as error:
        list(open_labelled(LabelledTable(path)).rows)
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("rows", "error", "message"),
    [
        (
            [[f"and {text}", text, "ab"[i % 2]] for i, text in enumerate(sentences(20))],
            UsageError,
            "several columns could hold the texts",
        ),
        (
            [[text, "ab"[i % 2], "12"[i % 2]] for i, text in enumerate(sentences(20))],
            UsageError,
            "columns 2 and 3 could hold the labels",
        ),
        ([[text, str(i), f"k{i}"] for i, text in enumerate(sentences(20))], UsageError, "no column of labels"),
        ([["text", "label"], ["only one"]], DataError, "t.tsv:2: 1 columns, but column 2 is needed."),
        (
            [["a"], *(["ab"[i % 2], text] for i, text in enumerate(sentences(20)))],
            DataError,
            "t.tsv:1: 1 columns, but column 2 is needed.",
        ),
    ],
)
def test_what_is_ambiguous_is_refused(
    rows: list[list[str]], error: type[Exception], message: str, tmp_path: Path
) -> None:
    with pytest.raises(error, match=message):
        list(open_labelled(table(tmp_path / "t.tsv", rows)).rows)


def test_given_columns_are_used(tmp_path: Path) -> None:
    given = table(tmp_path / "t.tsv", [["one two", "x", "y"], ["three four", "u", "v"]])
    rows = open_labelled(LabelledTable(given.path, (3,), 2)).rows
    assert [(row.texts, row.labels) for row in rows] == [(("y",), ("x",)), (("v",), ("u",))]
    with pytest.raises(DataError, match="no column 'nothing'"):
        open_labelled(LabelledTable(given.path, ("nothing",)))
    with pytest.raises(DataError, match="no column 4; the table has 3"):
        open_labelled(LabelledTable(given.path, (4,), 1))


def findings(folder: Path, labels: list[str], texts: list[str] | None = None, **others: LabelledTable) -> set[str]:
    texts = texts or sentences(len(labels))
    rows = [["text", "label"], *([text, label] for text, label in zip(texts, labels, strict=True))]
    diagnosis = diagnose_table(table(folder / "t.tsv", rows), **others)
    return {f"{finding.severity} {finding.check}" for finding in diagnosis.findings}


def test_the_doctor_examines_labels(tmp_path: Path) -> None:
    fine = ["pos", "neg"] * 300
    assert findings(tmp_path, fine) == set()
    assert "stop one-label" in findings(tmp_path, ["pos"] * 600)
    assert "warn label-typo" in findings(tmp_path, [*fine, "Pos", "p os", "Pos"])
    assert "warn rare-label" in findings(tmp_path, [*fine, "once"])
    assert "warn unbalanced" in findings(tmp_path, ["pos"] * 580 + ["neg"] * 20)
    assert "stop many-labels" in findings(tmp_path, [f"label {i}" for i in range(10_000)])
    assert "warn missing-label" in findings(tmp_path, [*fine, *[""] * 20])
    assert "stop few" in findings(tmp_path, ["pos", "neg"] * 5)
    assert "warn few" in findings(tmp_path, ["pos", "neg"] * 50)


def test_the_doctor_compares_texts(tmp_path: Path) -> None:
    labels, texts = ["pos", "neg"] * 300, sentences(600)
    assert "warn empty" in findings(tmp_path, [*labels, *["pos"] * 20], [*texts, *[" "] * 20])
    assert "note duplicate" in findings(tmp_path, [*labels, "pos"], [*texts, texts[0]])
    assert "warn contradictory" in findings(tmp_path, [*labels, *["pos"] * 20], [*texts, *texts[1:40:2]])
    in_nfc, decomposed = f"{texts[0]} hé", f"{texts[0]} he\u0301"
    assert "note duplicate" in findings(tmp_path, [*labels, "pos", "pos"], [*texts, in_nfc, decomposed])
    test = table(tmp_path / "test.tsv", [["text", "label"], [decomposed, "pos"]])
    assert "stop test-leak" in findings(tmp_path, [*labels, "pos"], [*texts, in_nfc], test=test)
    named = [f"{text} {label}" for text, label in zip(texts, labels, strict=True)]
    assert "warn leaking-label" in findings(tmp_path, labels, named)
    valid = table(tmp_path / "v.tsv", [["text", "label"], *([text, "new"] for text in texts[:4])])
    assert {"stop validation-leak", "warn unknown-label"} <= findings(tmp_path, labels, texts, valid=valid)
