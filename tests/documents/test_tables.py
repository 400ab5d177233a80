"""Do the rows of a table get what they lack, and stays everything else as it is written?"""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heed.core.errors import DataError, UsageError
from heed.documents.tables import Sides, translate_csv, translate_tsv

EN_DE = Sides("en", "de")


def loud(texts: Sequence[str]) -> list[str]:
    return [text.upper() for text in texts]


@pytest.mark.parametrize(
    ("table", "expected"),
    [
        ("English,German\na dog,\na cat,Katze\n", "English,German\na dog,A DOG\na cat,Katze\n"),
        ("German;English\r\n;a dog\r\nKatze;a cat\r\n", "German;English\r\nA DOG;a dog\r\nKatze;a cat\r\n"),
        ("id,English,note\n1,a dog,x\n2,,y\n", "id,English,note,German\n1,a dog,x,A DOG\n2,,y,\n"),
        ("en\na dog", "en,de\na dog,A DOG"),
        ("Source,Comment\na dog,x y\n", "Source,Comment,Target\na dog,x y,A DOG\n"),
        ("1,a dog\n2,a cat\n", "1,a dog,A DOG\n2,a cat,A CAT\n"),
        ('sep=;\nEnglish;x\n"a; dog";"q ""q"""\n', 'sep=;\nEnglish;x;German\n"a; dog";"q ""q""";"A; DOG"\n'),
        ("English,German\na dog\n", "English,German\na dog,A DOG\n"),
        ("English,x\na dog\n", "English,x,German\na dog,,A DOG\n"),
        ("English,x\na dog,y,,\n", "English,x,German\na dog,y,A DOG\n"),
        ("English\n\na dog\n", "English,German\n\na dog,A DOG\n"),
        ("English,German\n", "English,German\n"),
        ("", ""),
    ],
)
def test_rows_without_a_translation_get_one(table: str, expected: str) -> None:
    assert translate_csv(table, "a.csv", EN_DE, loud) == expected


@pytest.mark.parametrize(
    ("table", "expected"),
    [
        ("en\tde\na dog\t\na cat\tKatze\n", "en\tde\na dog\tA DOG\na cat\tKatze\n"),
        ('a "dog\t\r\na, cat\t\r\n', 'a "dog\tA "DOG\r\na, cat\tA, CAT\r\n'),
        ("1\ta dog\n2\ta cat", "1\ta dog\tA DOG\n2\ta cat\tA CAT"),
    ],
)
def test_tsv_is_not_quoted(table: str, expected: str) -> None:
    assert translate_tsv(table, "a.tsv", EN_DE, loud) == expected


def test_a_translation_with_tabs_and_line_breaks_stays_one_cell() -> None:
    assert translate_tsv("en\na dog\n", "a.tsv", EN_DE, lambda texts: ["x\ty\r\nz"] * len(texts)) == (
        "en\tde\na dog\tx y z\n"
    )
    assert translate_csv("en\na dog\n", "a.csv", EN_DE, lambda texts: ["x\r\ny, z"] * len(texts)) == (
        'en,de\na dog,"x\r\ny, z"\n'
    )


def test_columns_are_those_that_were_said() -> None:
    table = "a,b,c\nx y,z w,\n"
    assert translate_csv(table, "t.csv", Sides(src_column=2, tgt_column=3), loud) == "a,b,c\nx y,z w,Z W\n"
    assert translate_csv(table, "t.csv", Sides(src_column="B", tgt_column="new"), loud) == ("a,b,c,new\nx y,z w,,Z W\n")


@pytest.mark.parametrize(
    ("sides", "error", "says"),
    [
        (EN_DE, UsageError, "Say which one is translated"),
        (Sides(src_column="d"), DataError, "no column 'd'"),
        (Sides(src_column=4), DataError, "no column 4"),
        (Sides(src_column=1, tgt_column=1), UsageError, "cannot both be column 1"),
        (Sides(src_column=1, tgt_column=7), DataError, "no column 7"),
    ],
)
def test_columns_that_cannot_be_told_are_refused(sides: Sides, error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        translate_csv("a,b,c\nx y,z w,\nx y,z w,v\n", "t.csv", sides, loud)


def test_a_row_with_too_many_columns_is_refused() -> None:
    with pytest.raises(DataError, match="row 2 has 3 columns, but the first one 2"):
        translate_csv("English,x\na dog, a cat,y\n", "t.csv", EN_DE, loud)


_CELLS = st.text(st.sampled_from('ab,;"\n\r x1'), max_size=6)


@given(st.lists(st.tuples(_CELLS, _CELLS), min_size=1, max_size=6), st.sampled_from([",", ";"]), st.booleans())
def test_whatever_the_cells_are_only_one_column_is_new(
    rows: list[tuple[str, str]], delimiter: str, all_quoted: bool
) -> None:
    quoting = csv.QUOTE_ALL if all_quoted else csv.QUOTE_MINIMAL
    out = io.StringIO()
    writer = csv.writer(out, delimiter=delimiter, quoting=quoting)
    writer.writerows([("English text", "Comment"), *rows])
    table = f"sep={delimiter}\r\n{out.getvalue()}"
    sides = Sides("en", "de", src_column="English text")
    done = translate_csv(table, "t.csv", sides, loud)
    assert done.startswith(f"sep={delimiter}\r\n")
    found = list(csv.reader(io.StringIO(done[7:], newline=""), delimiter=delimiter))
    expected = [[*row, row[0].upper() if row[0].strip() else ""] for row in rows]
    given_rows = [row for row in found[1:] if row]
    assert given_rows == [row if any(row) else row[:2] for row in expected]
    place = 0
    for row in out.getvalue().split("\r\n"):  # all that was there is there, as it was written
        place = done.index(row, place) + len(row)
