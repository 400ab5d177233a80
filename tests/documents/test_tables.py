"""Tables: missing translations are filled in, and everything else stays as it is written."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heed.core.errors import DataError, UsageError
from heed.documents import tables
from heed.documents.file_format import FileContext
from heed.text.readers.columns import Sides

EN_DE = Sides("en", "de")


Lines = Callable[[Sequence[str]], list[str]]
"""Translates many short texts at once."""


def translator(lines: Lines) -> Any:
    return SimpleNamespace(lines=lines, checked=iter)


def filled_csv(text: str, name: str, sides: Sides, translate: Lines) -> str:
    return tables.translate_csv(text, translator(translate), FileContext(name, sides))


def filled_tsv(text: str, name: str, sides: Sides, translate: Lines) -> str:
    return tables.translate_tsv(text, translator(translate), FileContext(name, sides))


def loud(texts: Sequence[str]) -> list[str]:
    return [text.upper() for text in texts]


LONG = "a far longer sentence than that,A FAR LONGER SENTENCE THAN THAT\n" * 6


@pytest.mark.parametrize(
    ("table", "expected"),
    [
        ("English,German\na dog,\na cat,Katze\n", "English,German\na dog,A DOG\na cat,Katze\n"),
        ("German;English\r\n;a dog\r\nKatze;a cat\r\n", "German;English\r\nA DOG;a dog\r\nKatze;a cat\r\n"),
        ("id,English,note\n1,a dog,x\n2,,y\n", "id,English,note,German\n1,a dog,x,A DOG\n2,,y,\n"),
        ("en\na dog", "en,de\na dog,A DOG"),
        ("Source,Comment\na dog,x y\n", "Source,Comment,Target\na dog,x y,A DOG\n"),
        ('sep=;\nEnglish;x\n"a; dog";"q ""q"""\n', 'sep=;\nEnglish;x;German\n"a; dog";"q ""q""";"A; DOG"\n'),
        ("English,German\na dog\n", "English,German\na dog,A DOG\n"),
        ("English,x\na dog\n", "English,x,German\na dog,,A DOG\n"),
        ("English,x\na dog,y,,\n", "English,x,German\na dog,y,A DOG\n"),
        ("English\n\na dog\n", "English,German\n\na dog,A DOG\n"),
        ("English,German\n", "English,German\n"),
        ("English,German,German (old)\na,,x\nb,Hund,y\n", "English,German,German (old)\na,A,x\nb,Hund,y\n"),
        ("en,de,de-AT\na,,x\n", "en,de,de-AT\na,A,x\n"),
        ("English,German\na,\nb,1995\n", "English,German\na,A\nb,1995\n"),
        ("English,Notes\na dog,\n", "English,Notes,German\na dog,,A DOG\n"),
        ("English,\na dog,\n", "English,,German\na dog,,A DOG\n"),
        ("Hello\n" + "a far longer sentence than that\n" * 6, "Hello,HELLO\n" + LONG),
        ('English,German,x\n"a dog","","007"\n', 'English,German,x\n"a dog","A DOG","007"\n'),
        (
            '"English","German","x, ""y"" z"\n"a ""b""",,"007"\n',
            '"English","German","x, ""y"" z"\n"a ""b""","A ""B""","007"\n',
        ),
        ("", ""),
    ],
)
def test_rows_without_a_translation_get_one(table: str, expected: str) -> None:
    assert filled_csv(table, "a.csv", EN_DE, loud) == expected


@pytest.mark.parametrize(
    ("table", "expected"),
    [
        ("en\tde\na dog\t\na cat\tKatze\n", "en\tde\na dog\tA DOG\na cat\tKatze\n"),
        ('en\tde\r\na "dog\t\r\na, cat\t\r\n', 'en\tde\r\na "dog\tA "DOG\r\na, cat\tA, CAT\r\n'),
        ("No\tsource\n2\ta cat", "No\tsource\ttarget\n2\ta cat\tA CAT"),
        ("en\tde\ra dog\t\ra cat\tKatze\r", "en\tde\ra dog\tA DOG\ra cat\tKatze\r"),
        ("en\ra dog\ra cat", "en\tde\ra dog\tA DOG\ra cat\tA CAT"),
    ],
)
def test_tsv_is_not_quoted(table: str, expected: str) -> None:
    assert filled_tsv(table, "a.tsv", EN_DE, loud) == expected


def test_a_translation_with_tabs_and_line_breaks_stays_one_cell() -> None:
    assert filled_tsv("en\na dog\n", "a.tsv", EN_DE, lambda texts: ["x\ty\r\nz"] * len(texts)) == (
        "en\tde\na dog\tx y z\n"
    )
    assert filled_csv("en\na dog\n", "a.csv", EN_DE, lambda texts: ["x\r\ny, z"] * len(texts)) == (
        'en,de\na dog,"x\r\ny, z"\n'
    )


def test_columns_can_be_given_by_number_and_by_heading() -> None:
    table = "a,b,c\nx y,z w,\n"
    assert filled_csv(table, "t.csv", Sides(src_column=2, tgt_column=3), loud) == "a,b,c\nx y,z w,Z W\n"
    assert filled_csv(table, "t.csv", Sides(src_column="B", tgt_column="new"), loud) == ("a,b,c,new\nx y,z w,,Z W\n")


@pytest.mark.parametrize(
    ("sides", "error", "message"),
    [
        (EN_DE, UsageError, "no heading identifies the one to translate"),
        (Sides(src_column="d"), DataError, "no column 'd'"),
        (Sides(src_column=4), DataError, "no column 4"),
        (Sides(src_column=1, tgt_column=1), UsageError, "cannot both be column 1"),
        (Sides(src_column=1, tgt_column=7), DataError, "no column 7"),
    ],
)
def test_unknown_columns_are_refused(sides: Sides, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        filled_csv("a,b,c\nx y,z w,\nx y,z w,v\n", "t.csv", sides, loud)


@pytest.mark.parametrize("number", [0, -1])
def test_columns_are_counted_from_one(number: int) -> None:
    with pytest.raises(UsageError, match=f"no column {number}; columns are counted from 1"):
        Sides(src_column=number)
    with pytest.raises(UsageError, match=f"no column {number}"):
        Sides(tgt_column=number)


def test_a_language_without_a_code_is_matched_literally() -> None:
    sides = Sides("en", "bar")
    assert filled_csv("en,bar\na,\nb,Hund\n", "t.csv", sides, loud) == "en,bar\na,A\nb,Hund\n"
    assert filled_csv("bar,en,note\na,,x\n", "t.csv", Sides("bar", "en"), loud) == "bar,en,note\na,A,x\n"


def test_a_variety_is_matched_exactly_and_an_ambiguous_one_has_to_be_selected() -> None:
    table = "en,pt-PT,pt-BR\na,x,\n"
    assert filled_csv(table, "t.csv", Sides("en", "pt-BR"), loud) == "en,pt-PT,pt-BR\na,x,A\n"
    with pytest.raises(UsageError, match=r"'pt-PT', 'pt-BR' are all in the language of the target. Select"):
        filled_csv(table, "t.csv", Sides("en", "pt"), loud)


def test_a_heading_of_a_column_given_by_number_is_not_translated() -> None:
    table = "English;Notes\na dog;x\n"
    assert filled_csv(table, "t.csv", Sides("en", "de", 1), loud) == "English;Notes;German\na dog;x;A DOG\n"
    assert filled_csv("Word,x\na dog,y\n", "t.csv", Sides("en", "de", 1, "German"), loud) == (
        "Word,x,German\na dog,y,A DOG\n"
    )


@pytest.mark.parametrize(
    ("table", "sides", "expected"),
    [
        ("source,notes\na dog,x\n", Sides(src_column=1), "source,notes,target\na dog,x,A DOG\n"),
        ("Source;Target\na dog;\n", Sides(src_column=1, tgt_column=3), "Source;Target;Target\na dog;;A DOG\n"),
        ("Hi\tx\nBye\t-\n", Sides("en", "de", 1), "Hi\tx\tHI\nBye\t-\tBYE\n"),
        ("A dog,ok\nA cat,1\n", Sides("en", "de", 1), "A dog,ok,A DOG\nA cat,1,A CAT\n"),
        ("id,en\nseekor anjing,\n", Sides("id", "en"), "id,en\nseekor anjing,SEEKOR ANJING\n"),
        (' ,\n"English","German"\na dog,\n', EN_DE, ' ,\n"English","German"\na dog,A DOG\n'),
    ],
)
def test_headings_are_distinguished_from_text(table: str, sides: Sides, expected: str) -> None:
    filled = filled_tsv if "\t" in table else filled_csv
    assert filled(table, "t.csv", sides, loud) == expected


def test_a_message_describes_what_will_be_translated() -> None:
    messages: list[str] = []
    table = "English;Notes;German\na dog;x;\nb;;B\n"
    context = FileContext("t.csv", EN_DE, notify=messages.append)
    tables.translate_csv(table, translator(loud), context)
    tables.translate_csv("a dog\n", translator(loud), context)
    assert messages == [
        "column 1 (English) into column 3 (German): 1 of 2 rows",
        "column 1 into a new column: 1 of 1 rows; the first row is text "
        "(if it is a header, name a column with --src-column)",
    ]


def test_a_row_with_too_many_columns_is_refused() -> None:
    with pytest.raises(DataError, match=r"row 2 has 3 columns, but the first row with text has 2 \('English', 'x'\)"):
        filled_csv("English,x\na dog, a cat,y\n", "t.csv", EN_DE, loud)


_CELLS = st.text(st.sampled_from('ab,;"\n\r x1'), max_size=6)


@given(st.lists(st.tuples(_CELLS, _CELLS, _CELLS), min_size=1, max_size=6), st.sampled_from([",", ";"]), st.booleans())
def test_only_the_target_changes_for_any_cells(
    rows: list[tuple[str, str, str]], delimiter: str, all_quoted: bool
) -> None:
    out = io.StringIO()
    writer = csv.writer(out, delimiter=delimiter, quoting=csv.QUOTE_ALL if all_quoted else csv.QUOTE_MINIMAL)
    writer.writerows([("English", "German", "Comment"), *rows])
    done = filled_csv(out.getvalue(), "t.csv", EN_DE, loud)
    found = [row for row in csv.reader(io.StringIO(done, newline=""), delimiter=delimiter) if row]
    expected = [[src, tgt if tgt.strip() or not src.strip() else src.upper(), more] for src, tgt, more in rows]
    assert found[1:] == expected
    if all_quoted:
        assert done.count('"') >= 6 * (len(rows) + 1)


@given(st.lists(st.tuples(_CELLS, _CELLS), min_size=1, max_size=6), st.sampled_from([",", ";"]), st.booleans())
def test_only_one_column_is_new_for_any_cells(rows: list[tuple[str, str]], delimiter: str, all_quoted: bool) -> None:
    quoting = csv.QUOTE_ALL if all_quoted else csv.QUOTE_MINIMAL
    out = io.StringIO()
    writer = csv.writer(out, delimiter=delimiter, quoting=quoting)
    writer.writerows([("English text", "Comment"), *rows])
    table = f"sep={delimiter}\r\n{out.getvalue()}"
    sides = Sides("en", "de", src_column="English text")
    done = filled_csv(table, "t.csv", sides, loud)
    assert done.startswith(f"sep={delimiter}\r\n")
    found = list(csv.reader(io.StringIO(done[7:], newline=""), delimiter=delimiter))
    expected = [[*row, row[0].upper() if row[0].strip() else ""] for row in rows]
    given_rows = [row for row in found[1:] if row]
    assert given_rows == [row if any(row) else row[:2] for row in expected]
    place = 0
    for row in out.getvalue().split("\r\n"):  # all that was there is there, as it was written
        place = done.index(row, place) + len(row)
