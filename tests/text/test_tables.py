"""Readers of CSV and TSV: every dialect that spreadsheets write, the columns they select, and refusals."""

from __future__ import annotations

import gzip
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from heed.core.errors import DataError, HeedError, UsageError
from heed.text.archives import MAX_LINE_BYTES
from heed.text.readers import CorpusFiles, read_pairs, with_languages_of
from heed.text.readers.tables import one_line, sniff_delimiter

PAIRS = [
    ("A dog, a cat.", "Ein Hund, eine Katze."), ('He said "hi".', "Er sagte „hallo“."), ("two lines", "zwei Zeilen"),
]  # fmt: skip


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to work in, so that messages show the bare names."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def pairs_of(data: str | bytes, name: str = "x.csv", **options: Any) -> list[tuple[str, str]]:
    Path(name).write_bytes(data if isinstance(data, bytes) else data.encode())
    return list(read_pairs(CorpusFiles(pairs=name, **options)))


def message(data: str | bytes, name: str = "x.csv", kind: type[HeedError] = DataError, **options: Any) -> str:
    with pytest.raises(kind) as caught:
        pairs_of(data, name, **options)
    return str(caught.value)


QUOTED = (
    'English{0}Deutsch{1}"A dog, a cat."{0}"Ein Hund, eine Katze."{1}"He said ""hi""."{0}Er sagte „hallo“.{1}'
    '"two{1}lines"{0}"zwei{1}  Zeilen"{1}'
)


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
@pytest.mark.parametrize("line_end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-be-mark"])
def test_csv_is_read_as_any_spreadsheet_exports_it(delimiter: str, line_end: str, encoding: str) -> None:
    text = QUOTED.format(delimiter, line_end)
    data = b"\xfe\xff" + text.encode("utf-16-be") if encoding == "utf-16-be-mark" else text.encode(encoding)
    assert pairs_of(data) == PAIRS


def test_csv_may_be_compressed(here: Path) -> None:
    assert pairs_of(gzip.compress(QUOTED.format(",", "\n").encode()), "x.csv.gz") == PAIRS


@pytest.mark.parametrize(
    ("rows", "delimiter"),
    [
        (["a,b", "c,d"], ","),
        (["A dog, a cat;Ein Hund, eine Katze", "x;y"], ";"),
        (["one, two; three, four", "five, six; seven, eight"], ";"),
        (["a\tb, c", "d\te, f"], "\t"),
        (['"a;b","c;d"', '"e;f","g"'], ","),
        (['"a,b";"c,d"', '"e\n', 'f";"g"'], ";"),
        (["Hello; world,Hallo; Welt", '"a, b","c, d"', '"e, f","g, h"'], ","),
        (["Hello\tworld,Hallo\tWelt", '"a, b","c, d"', '"e, f","g, h"'], ","),
        (["only", "one", "column"], ","),
        ([], ","),
    ],
)
def test_the_delimiter_is_the_one_that_makes_a_table(rows: list[str], delimiter: str) -> None:
    assert sniff_delimiter([row + "\n" for row in rows]) == delimiter


@pytest.mark.parametrize(
    ("first", "options", "expected"),
    [
        ("a,b", {}, [("a", "b"), ("x1", "x2")]),
        ("English,German", {}, [("x1", "x2")]),
        ("de,en-US", {}, [("x1", "x2")]),
        ("de,en-US", {"src_lang": "en", "tgt_lang": "de"}, [("x2", "x1")]),
        ("Deutsch,English", {"src_lang": "eng"}, [("x2", "x1")]),
        ("target,source", {}, [("x2", "x1")]),
        ("a,b", {"src_column": 2, "tgt_column": 1}, [("b", "a"), ("x2", "x1")]),
        ("a,b", {"src_column": "b", "tgt_column": "a"}, [("x2", "x1")]),
        ("a,b", {"src_column": " B "}, [("x2", "x1")]),
        ("a,b", {"tgt_column": 1}, [("b", "a"), ("x2", "x1")]),
        ("a,b,c", {"src_column": 1, "tgt_column": 3}, [("a", "c"), ("x1", "x3")]),
        ("id,English,German", {"src_lang": "en", "tgt_lang": "de"}, [("x2", "x3")]),
        ("id,source,comment,target", {}, [("x2", "x4")]),
        ("id,src,trg", {}, [("x2", "x3")]),
        ("id,no,en", {"src_lang": "en", "tgt_lang": "no"}, [("x3", "x2")]),
        ("id,en", {}, [("x1", "x2")]),
        ("No,English,German", {}, [("x2", "x3")]),
        ("en,de,de-AT", {"src_lang": "en", "tgt_lang": "de"}, [("x1", "x2")]),
        ("Hausa text,English", {"src_lang": "en"}, [("x2", "x1")]),
        (
            "English sentence,German sentence",
            {"src_column": 1},
            [("English sentence", "German sentence"), ("x1", "x2")],
        ),
        ("English sentence,German sentence", {"src_column": "English sentence"}, [("x1", "x2")]),
        ("I speak English.,Ich spreche Deutsch.", {}, [("I speak English.", "Ich spreche Deutsch."), ("x1", "x2")]),
        ("German,Deutsch", {}, [("German", "Deutsch"), ("x1", "x2")]),
        ("open source,quelloffen", {}, [("open source", "quelloffen"), ("x1", "x2")]),
        ("No,Nej", {}, [("No", "Nej"), ("x1", "x2")]),
        ("id,German,Notes,English", {}, [("x2", "x4")]),
        ("id,English,Notes", {"src_lang": "en", "tgt_column": "notes"}, [("x2", "x3")]),
        ("German,English,source url", {}, [("x1", "x2")]),
        ("Hausa,English,Source domain", {"src_lang": "en", "tgt_lang": "ha"}, [("x2", "x1")]),
        ("Source language,English,German", {}, [("x2", "x3")]),
        ("German,English,English note", {}, [("x1", "x2")]),
        ("English comment,English,German", {"src_lang": "en", "tgt_lang": "de"}, [("x2", "x3")]),
    ],
)
def test_columns_are_selected_by_number_heading_language_or_side(
    first: str, options: Any, expected: list[tuple[str, str]]
) -> None:
    second = ",".join(f"x{number}" for number, _ in enumerate(first.split(","), start=1))
    assert pairs_of(f"{first}\n{second}\n", **options) == expected


@pytest.mark.parametrize(
    ("first", "advice"),
    [
        ("Source sentence;Target sentence", "--src-column 'Source sentence' --tgt-column 'Target sentence'"),
        ("target text;source text", "--src-column 'source text' --tgt-column 'target text'"),
        ("English text\tGerman text", "--src-column 'English text' --tgt-column 'German text'"),
        ("English,Kanuri", "--src-column 'English' --tgt-column 'Kanuri'"),
        ("source_text,target_text", "--src-column 'source_text' --tgt-column 'target_text'"),
        ("English,हिंदी पाठ", "--src-column 'English' --tgt-column 'हिंदी पाठ'"),
        ("English text,हिन्दी पाठ", "--src-column 'English text' --tgt-column 'हिन्दी पाठ'"),
        ("English,தமிழ் மொழி", "--src-column 'English' --tgt-column 'தமிழ் மொழி'"),
        ("English,မြန်မာဘာသာ", "--src-column 'English' --tgt-column 'မြန်မာဘာသာ'"),
    ],
)
def test_a_first_row_that_looks_like_other_headings_is_refused(first: str, advice: str) -> None:
    delimiter = next(mark for mark in "\t;," if mark in first)
    refusal = message(f"{first}\nA dog{delimiter}Ein Hund\n", kind=UsageError)
    shown = ", ".join(map(repr, first.split(delimiter)))
    assert refusal.startswith(f"x.csv:1: the first row ({shown}) looks like a row of headings, ")
    assert f"select the columns by them: {advice}. If they are a sentence pair, select the columns by number" in refusal
    by_heading = dict(zip(("src_column", "tgt_column"), advice.split("'")[1::2], strict=True))
    assert set(pairs_of(f"{first}\nA dog{delimiter}Ein Hund\n", **by_heading)[0]) == {"A dog", "Ein Hund"}


def test_names_of_languages_in_any_script_are_headings() -> None:
    assert "looks like a row of headings" in message("English,فارسی\u200cها\nA dog,سگ\n", kind=UsageError)
    for name in ("हिन्दी", "हिंदी"):
        assert pairs_of(f"English,{name}\nA dog,कुत्ता\n") == [("A dog", "कुत्ता")]
    assert pairs_of("English,हिंदी में।\nA dog,कुत्ता\n")[0] == ("English", "हिंदी में।"), "a sentence"


@pytest.mark.parametrize("name", ["x.csv", "x.tsv"])
@pytest.mark.parametrize(
    "first", ["1,A dog.,Ein Hund.", "A dog.,Ein Hund.,CC-BY 2.0", "id,English,Kanuri", "English,German,French", "a,b,c"]
)
def test_columns_without_known_headings_have_to_be_given(first: str, name: str) -> None:
    text = first if name == "x.csv" else first.replace(",", "\t")
    shown = ", ".join(map(repr, first.split(",")))
    assert message(f"{text}\n", name, UsageError) == (
        f"{name}:1: 3 columns ({shown}), and no heading identifies the source and the target. Select them by "
        "number or by heading, for example --src-column 1 --tgt-column 2."
    )
    assert message(f"{text}\n", name, UsageError, src_column=1).startswith(f"{name}:1: 3 columns (")


def test_a_table_next_to_the_training_table_is_read_by_its_headings(here: Path) -> None:
    Path("train.tsv").write_text("English\tGerman\nA dog.\tEin Hund.\n")
    Path("valid.tsv").write_text("German\tEnglish\nEine Katze.\tA cat.\n")
    files = with_languages_of(CorpusFiles(pairs="train.tsv"), CorpusFiles(pairs="valid.tsv"))
    assert list(read_pairs(files)) == [("A cat.", "Eine Katze.")]


def test_rows_that_hold_no_pair_are_counted(here: Path) -> None:
    left_out: Counter[str] = Counter()
    Path("x.csv").write_text("English,German\na,b\n,\n\n\nc,d\n,,,\n")
    assert list(read_pairs(CorpusFiles(pairs="x.csv"), left_out=left_out)) == [("a", "b"), ("c", "d")]
    assert left_out == {"row of headings ('English', 'German')": 1, "empty row": 4}


@pytest.mark.parametrize(
    ("data", "options", "expected"),
    [
        (
            'a,b\n"c,d\ne,f\n',
            {},
            "x.csv:2: not CSV (unexpected end of data). "
            "Quote fields that contain a delimiter or a line break, and double any quote inside quotes.",
        ),
        (
            'a,b\n"c\nd",e\n"He said "hi" to me",f\n',
            {},
            "x.csv:4: not CSV (',' expected after '\"'). "
            "Quote fields that contain a delimiter or a line break, and double any quote inside quotes.",
        ),
        (
            "a,b\nHello, world,Hallo Welt\n",
            {},
            "x.csv:2: 3 columns, but the first row has 2. Quote fields that contain a delimiter, or save the table "
            "again.",
        ),
        (
            "a;b\nc\n",
            {},
            "x.csv:2: 1 column, but the source is column 1 and the target column 2. Fields are separated by semicolons "
            "here.",
        ),
        (
            "only\none\n",
            {},
            "x.csv:1: 1 column, but the source is column 1 and the target column 2. Fields are separated by commas "
            "here.",
        ),
        (
            "a,b\nc,d\n",
            {"src_column": "English"},
            "x.csv:1: no column 'English'; the first row has 'a', 'b'.",
        ),
        (
            b"a,b\nc,gr\xfc\xdfe\n",
            {},
            'x.csv:2: byte 5 is not valid UTF-8 (0xFC). Save the sheet as "CSV UTF-8", or pass --errors replace.',
        ),
        (
            "a,b\n".encode("utf-16") + b"\x00",
            {},
            "x.csv:2: not valid UTF-16, although the file starts as UTF-16. Save it again.",
        ),
    ],
)
def test_a_broken_table_is_refused_with_its_line(data: str | bytes, options: Any, expected: str) -> None:
    assert message(data, **options) == expected


@pytest.mark.parametrize(
    ("data", "options", "expected"),
    [
        (
            "a,b\n",
            {"src_column": "a", "tgt_column": 1},
            "x.csv:1: source and target cannot both be column 1.",
        ),
        (
            "de,en,De\na,b,c\n",
            {"src_column": "en", "tgt_column": "de"},
            "x.csv:1: columns 1 and 3 are all called 'de'. Select one by number, such as --tgt-column 1.",
        ),
    ],
)
def test_ambiguous_columns_are_refused(data: str, options: Any, expected: str) -> None:
    assert message(data, kind=UsageError, **options) == expected


def test_an_endless_field_is_refused_before_it_fills_the_memory() -> None:
    refusal = message('a,b\n"c,d\n' + ("e" * 999 + ",f\n") * (MAX_LINE_BYTES // 1000))
    assert refusal.startswith("x.csv:2: a quote that is opened here is not closed within 16 MB.")


def test_a_document_may_be_a_cell() -> None:
    text = "word, " * 30_000
    assert pairs_of(f'"{text}",b\n') == [(text, "b")]


def test_tsv_may_have_headings_and_is_never_quoted() -> None:
    assert pairs_of('de\ten\n"a\tb"\textra\n', "x.tsv") == [('"a', 'b"')]
    assert pairs_of("id\tx\ty\n1\ta\tb\n", "x.tsv", src_column="x", tgt_column="y") == [("a", "b")]
    assert pairs_of("a\tb\tc\n", "x.tsv", src_column=3, tgt_column=2) == [("c", "b")]
    assert pairs_of("a\tb\n", "x.tsv", src_column=2) == [("b", "a")]
    assert pairs_of("x\ry\tb\n", "x.tsv") == [("x\ry", "b")]


def swallowed(mark: str, num: int) -> str:
    """Rows of which the third is opened by a quote that the row `num` lines on closes."""
    rows = [f"A dog {i}.{mark}Ein Hund {i}." for i in range(20)]
    rows[2] = '"' + rows[2]
    rows[2 + num] = rows[2 + num].replace(mark, f'"{mark}')
    return "\n".join(["English" + mark + "German", *rows]) + "\n"


@pytest.mark.parametrize("mark", [",", ";", "\t"])
@pytest.mark.parametrize("num", [3, 12])
def test_an_unmatched_quote_that_swallows_rows_is_refused(mark: str, num: int) -> None:
    assert message(swallowed(mark, num)) == (
        f"x.csv:4: the quote opened here is not closed until line {4 + num}, and the lines between look like rows. "
        "Close or remove it; a quote that belongs to the text must be doubled, in a quoted field."
    )


@pytest.mark.parametrize(
    "cell",
    [
        "Dear John,\nthanks, that is kind.\nSee you,\nsoon, I hope,\nMary",
        "Prices:\nfrom 10,000 on\nto 12,000\nor 13,000",
        "10,000\n12,000\n13,000\n14,000\n",
        "one\ntwo\nthree\nfour\nfive",
    ],
)
def test_prose_of_many_lines_in_a_field_is_accepted(cell: str) -> None:
    for src, tgt in ((cell, "x"), ("x", cell), (cell, cell)):
        assert pairs_of(f'a,b\n"{src}","{tgt}"\n')[1:] == [(one_line(src), one_line(tgt))]


@pytest.mark.parametrize("mark", [",", ";", "\t", "|"])
@pytest.mark.parametrize("line", ["sep={}", '"sep={}"', "\ufeffSEP={}\r"])
def test_a_first_line_can_set_the_delimiter(mark: str, line: str, here: Path) -> None:
    head = line.format(mark) + "\n"
    assert pairs_of(f"{head}a;b,c\td{mark}e\n" if mark == "|" else f"{head}a{mark}b|c\n")[0][0][0] == "a"
    assert message(f"{head}English{mark}German\na{mark}b\nc\n").startswith("x.csv:4: 1 column, but the source is ")
    left_out: Counter[str] = Counter()
    Path("x.csv").write_text(f"{head}a{mark}b\n")
    assert list(read_pairs(CorpusFiles(pairs="x.csv"), left_out=left_out)) == [("a", "b")]
    shown = line.format(mark).strip("\ufeff\r\t")
    assert left_out == {f"line with the delimiter ({shown})": 1}


def test_only_the_first_line_can_set_the_delimiter() -> None:
    assert pairs_of("a,b\nsep=;,c\n") == [("a", "b"), ("sep=;", "c")]
    assert pairs_of("sep=x,b\n") == [("sep=x", "b")]


def test_an_empty_table_has_no_pairs() -> None:
    assert pairs_of("") == []
    assert pairs_of("\n\n") == []
    assert pairs_of("", "x.tsv") == []


def test_a_line_break_and_the_indentation_around_it_become_one_space() -> None:
    assert one_line("a \r\n\n\t b\nc\rd") == "a b c d"
    assert one_line("a  b\u2028c") == "a  b\u2028c"
    assert one_line(" \n a \n \r\n  b \n") == " a b "
    assert one_line("a" + " " * 1_000_000 + "b\nc") == "a" + " " * 1_000_000 + "b c"  # at once, not in an hour
