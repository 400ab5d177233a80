"""Do the pairs of a table come out whole, whatever program wrote it, and is a broken table refused in plain words?"""

from __future__ import annotations

import gzip
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from heed.core.errors import DataError, HeedError, UsageError
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
def test_csv_comes_in_as_any_spreadsheet_exports_it(delimiter: str, line_end: str, encoding: str) -> None:
    text = QUOTED.format(delimiter, line_end)
    data = b"\xfe\xff" + text.encode("utf-16-be") if encoding == "utf-16-be-mark" else text.encode(encoding)
    assert pairs_of(data) == PAIRS


def test_csv_may_be_packed(here: Path) -> None:
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
        ("id,German,Notes,English", {}, [("x2", "x4")]),
        ("id,English,Notes", {"src_lang": "en", "tgt_column": "notes"}, [("x2", "x3")]),
        ("Hausa text,Swahili text", {"src_lang": "sw", "tgt_lang": "ha"}, [("x2", "x1")]),
        ("Kanuri text,Hausa text", {"src_lang": "ha"}, [("x2", "x1")]),
        ("Kanuri text,Hausa text", {"tgt_lang": "kr", "src_lang": "ha"}, [("x2", "x1")]),
        ("Hausa text,Swahili text", {}, [("x1", "x2")]),
        ("Target sentence,Source sentence", {}, [("x2", "x1")]),
        ("German text,Source text", {}, [("x2", "x1")]),
        ("Translation in German,Translation in English", {}, [("x1", "x2")]),
        ("Source id,Source text,Target text", {"src_column": 2}, [("x2", "x3")]),
        ("Notes,German sentence,English sentence", {}, [("x2", "x3")]),
        ("Notes,German sentence,English sentence", {"src_lang": "en", "tgt_lang": "de"}, [("x3", "x2")]),
        ("German,English,source url", {}, [("x1", "x2")]),
        ("Hausa,English,Source domain", {"src_lang": "en", "tgt_lang": "ha"}, [("x2", "x1")]),
        ("Source language,English,German", {}, [("x2", "x3")]),
        ("German,English,English note", {}, [("x1", "x2")]),
        ("English comment,English,German", {"src_lang": "en", "tgt_lang": "de"}, [("x2", "x3")]),
        ("id,Source text,Target text", {}, [("x2", "x3")]),
        ("Texte français,English text,Vérifié", {}, [("x1", "x2")]),
    ],
)
def test_columns_are_found_by_number_name_language_or_side(
    first: str, options: Any, expected: list[tuple[str, str]]
) -> None:
    second = ",".join(f"x{number}" for number, _ in enumerate(first.split(","), start=1))
    assert pairs_of(f"{first}\n{second}\n", **options) == expected


NUMBERED = ("1;Two dogs run.;Zwei Hunde rennen.", "2;A cat sleeps.;Eine Katze schläft.", "3;It is 7.;", "4;8;9")


@pytest.mark.parametrize("name", ["x.csv", "x.tsv"])
@pytest.mark.parametrize("number", ["No", "NO", "nr", "Source"])
def test_numbers_below_the_name_of_a_language_or_a_side_are_none(name: str, number: str) -> None:
    def table(*names: str) -> str:
        text = "".join(f"{row}\n" for row in (";".join(names), *NUMBERED))
        return text if name == "x.csv" else text.replace(";", "\t")

    expected = [tuple(row.split(";")[1:]) for row in NUMBERED]
    assert pairs_of(table(number, "English", "German"), name) == expected
    assert pairs_of(table(number, "English", "German"), name, src_lang="en", tgt_lang="de") == expected
    assert message(table(number, "English", "Kanuri"), name, UsageError) == (
        f"{name}:1: 3 columns ('{number}', 'English', 'Kanuri'). Say which hold source and target, by their numbers or "
        "by their names in the first row: --src-column 2 --tgt-column 3."
    )


def test_norwegian_is_a_language_where_text_stands_below() -> None:
    table = "id;no;en\n1;To hunder løper.;Two dogs run.\n2;;\n3;;A cat.\n4;Nei.;No.\n"
    pairs = [("To hunder løper.", "Two dogs run."), ("", ""), ("", "A cat."), ("Nei.", "No.")]
    assert pairs_of(table) == pairs
    assert pairs_of(table, src_lang="en", tgt_lang="no") == [(tgt, src) for src, tgt in pairs]
    assert pairs_of("no;en\n") == []


@pytest.mark.parametrize(
    ("first", "are_names"),
    [
        ("Source sentence\tTarget sentence", True), ("source\tTarget text (en)", True),
        ("English sentence\tGerman sentence", True), ("English sentence\tKanuri sentence", True),
        ("English\tKanuri", False), ("en\tGerman text", True), ("Original\tTranslation by Tom", True),
        ("English sentence\tKanuri", False), ("Source sentence\tA dog runs", False), ("en\tkr", False),
        ("He is here\tEs ist hier", False), ("No\tNej", False), ("\tEnglish", False), ("He\tI", False),
        ("English is not so hard\tGerman is not so hard", False), ("Danish pastry\tein Kopenhagener", False),
    ],
)  # fmt: skip
def test_names_of_columns_may_be_of_several_words(first: str, are_names: bool) -> None:
    found = pairs_of(f"{first}\nA dog runs.\tEin Hund rennt.\n", "x.tsv")
    assert len(found) == 2 - are_names


def test_several_words_that_are_no_names_choose_no_column() -> None:
    rows = "He runs.\tEr rennt.\tdeu\nA dog.\tEin Hund.\tdeu\n"
    table = f"English lesson\tEnglischstunde\tdeu\n{rows}"
    assert pairs_of(table, "x.tsv", tgt_lang="en")[0] == ("English lesson", "Englischstunde")
    assert pairs_of(table, "x.tsv")[0] == ("English lesson", "Englischstunde")
    pastry = "Danish pastry\tein Kopenhagener\nA dog.\tEin Hund.\n"
    assert pairs_of(pastry, "x.tsv", src_lang="en", tgt_lang="da")[0] == ("Danish pastry", "ein Kopenhagener")


def test_a_table_beside_the_training_table_is_read_by_the_longer_names_of_its_columns(here: Path) -> None:
    Path("train.tsv").write_text("English sentence\tGerman sentence\nA dog.\tEin Hund.\n")
    Path("valid.tsv").write_text("German sentence\tEnglish sentence\nEine Katze.\tA cat.\n")
    files = with_languages_of(CorpusFiles(pairs="train.tsv"), CorpusFiles(pairs="valid.tsv"))
    assert list(read_pairs(files)) == [("A cat.", "Eine Katze.")]


LONG = "Two men are sitting on a bench by the road.;Wanaume wawili wameketi kwenye benchi."


@pytest.mark.parametrize(
    ("first", "below", "named"),
    [
        ("Kiingereza;Kiswahili", LONG, True),
        ("My text;Kiswahili", LONG, True),
        ("Kiingereza;The language of Kenya", LONG, False),
        ("Satz 1;Kijerumani", LONG, False),
        ("Hallo!;Hi!", LONG, False),
        ("Wasser;water", "Feuer;fire", False),
    ],
)
def test_words_above_much_longer_text_are_names(first: str, below: str, named: bool) -> None:
    rows = [below] * 6
    assert len(pairs_of("\n".join([first, *rows]))) == len(rows) + (not named)
    assert len(pairs_of("\n".join([first, *rows[:2]]))) == 3, "too few rows to tell"


def test_what_holds_no_pair_is_counted(here: Path) -> None:
    left_out: Counter[str] = Counter()
    Path("x.csv").write_text("English,German\na,b\n,\n\n\nc,d\n,,,\n")
    assert list(read_pairs(CorpusFiles(pairs="x.csv"), left_out=left_out)) == [("a", "b"), ("c", "d")]
    assert left_out == {"row of column names ('English', 'German')": 1, "empty row(s)": 4}


@pytest.mark.parametrize(
    ("data", "options", "expected"),
    [
        (
            'a,b\n"c,d\ne,f\n',
            {},
            "x.csv:2: not CSV (unexpected end of data). "
            "A field with a delimiter or a line break stands in quotes, and a quote inside quotes is doubled.",
        ),
        (
            'a,b\n"c\nd",e\n"He said "hi" to me",f\n',
            {},
            "x.csv:4: not CSV (',' expected after '\"'). "
            "A field with a delimiter or a line break stands in quotes, and a quote inside quotes is doubled.",
        ),
        (
            "a,b\nHello, world,Hallo Welt\n",
            {},
            "x.csv:2: 3 columns, but the first row has 2. A field with a delimiter in it must stand in quotes; "
            "save the table again.",
        ),
        (
            "a;b\nc\n",
            {},
            "x.csv:2: 1 column, but the source is in column 1 and the target in column 2. "
            "Columns are parted by semicolons here.",
        ),
        (
            "only\none\n",
            {},
            "x.csv:1: 1 column, but the source is in column 1 and the target in column 2. "
            "Columns are parted by commas here.",
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
            "x.csv:2: not valid UTF-16, as which the file begins. Save it again.",
        ),
    ],
)
def test_a_broken_table_is_refused_with_its_line(data: str | bytes, options: Any, expected: str) -> None:
    assert message(data, **options) == expected


@pytest.mark.parametrize(
    ("data", "options", "expected"),
    [
        (
            "id,Kiswahili,Notes\n1,2,3\n",
            {},
            "x.csv:1: 3 columns ('id', 'Kiswahili', 'Notes'). Say which hold source and target, by their numbers or by "
            "their names in the first row: --src-column 1 --tgt-column 2.",
        ),
        (
            "a,b\n",
            {"src_column": "a", "tgt_column": 1},
            "x.csv:1: source and target cannot both be column 1.",
        ),
        (
            "de,en,De\na,b,c\n",
            {"src_column": "en", "tgt_column": "de"},
            "x.csv:1: columns 1 and 3 have the name 'de'; say by its number which one is meant.",
        ),
    ],
)
def test_columns_that_cannot_be_told_are_asked_for(data: str, options: Any, expected: str) -> None:
    assert message(data, kind=UsageError, **options) == expected


def test_a_field_without_end_is_refused_before_it_fills_the_memory() -> None:
    refusal = message('a,b\n"c,d\n' + "e,f\n" * 100_000)
    assert refusal.startswith("x.csv:2: not CSV (a field of more than 131,072 characters).")


def test_columns_of_tsv_may_be_named_too_and_nothing_is_quoted() -> None:
    assert pairs_of('de\ten\n"a\tb"\textra\n', "x.tsv") == [('"a', 'b"')]
    assert pairs_of("id\tx\ty\n1\ta\tb\n", "x.tsv", src_column="x", tgt_column="y") == [("a", "b")]
    assert pairs_of("a\tb\tc\n", "x.tsv", src_column=3) == [("c", "b")]
    assert pairs_of("a\tb\tc\n", "x.tsv", tgt_column=1) == [("b", "a")]
    assert pairs_of("x\ry\tb\n", "x.tsv") == [("x\ry", "b")]


@pytest.mark.parametrize("key", ["http://example.org/{}", "doc{}-en", "news_{}"])
def test_keys_and_addresses_before_the_texts_of_tsv_are_not_taken_for_a_side(key: str) -> None:
    rows = [(key.format(i), f"A dog {i}", f"Ein Hund {i}") for i in range(60)]
    asked = message("".join("\t".join(row) + "\n" for row in rows), "x.tsv", UsageError)
    assert asked.endswith("--src-column 2 --tgt-column 3.")
    assert pairs_of("".join("\t".join(row[:2]) + "\n" for row in rows), "x.tsv")[1] == (key.format(1), "A dog 1")
    long = ("1" * 1_000_000 + " dog", "1" * 1_000_000 + " Hund", "x")
    assert pairs_of("\t".join(long) + "\n", "x.tsv") == [long[:2]]  # at once, not in an hour
    turned = "".join(f"{source}\t{target}\t{its}\n" for its, source, target in rows)
    assert pairs_of(turned, "x.tsv")[1] == ("A dog 1", "Ein Hund 1")


TATOEBA = "".join(f"{i}\tLet's try {i}.\t{77 * i}\tVersuchen wir {i}.\n" for i in range(1000, 1060))


def test_numbers_before_the_texts_of_tsv_are_not_taken_for_a_side() -> None:
    assert message(TATOEBA, "x.tsv", UsageError) == (
        "x.tsv:1: 4 columns ('1000', \"Let's try 1000.\", '77000', 'Versuchen wir 1000.'). Say which hold source and "
        "target, by their numbers or by their names in the first row: --src-column 2 --tgt-column 4."
    )
    assert message(TATOEBA, "x.tsv", UsageError, tgt_column=4).startswith("x.tsv:1: 4 columns ('1000', ")
    chosen = pairs_of(TATOEBA, "x.tsv", src_column=2, tgt_column=4)
    assert chosen[0] == ("Let's try 1000.", "Versuchen wir 1000.")
    assert message("id\tx\ty\n1\ta\tb\n", "x.tsv", UsageError).startswith("x.tsv:1: 3 columns ('id', 'x', 'y').")


def test_what_stands_behind_the_two_texts_of_tsv_may_be_anything() -> None:
    rows = [("Go.", "Geh.", "CC-BY 2.0"), ("42!", "42!", "CC-BY 2.0"), ("走吧。", "Los.", "7"), ("Stop.", "Halt.")]
    table = "".join("\t".join(row) + "\n" for row in rows)
    assert pairs_of(table, "x.tsv") == [row[:2] for row in rows]


def swallowed(mark: str, num: int) -> str:
    """Rows of which the third is opened by a quote that the row `num` lines on closes."""
    rows = [f"A dog {i}.{mark}Ein Hund {i}." for i in range(20)]
    rows[2] = '"' + rows[2]
    rows[2 + num] = rows[2 + num].replace(mark, f'"{mark}')
    return "\n".join(["English" + mark + "German", *rows]) + "\n"


@pytest.mark.parametrize("mark", [",", ";", "\t"])
@pytest.mark.parametrize("num", [3, 12])
def test_a_quote_that_swallows_rows_is_refused(mark: str, num: int) -> None:
    assert message(swallowed(mark, num)) == (
        f"x.csv:4: the quote that is opened here is closed only in line {4 + num}, and the lines between look like "
        "rows. Close it, or take it away; a quote that belongs to the text stands doubled in a field in quotes."
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
def test_prose_of_many_lines_in_a_field_is_no_row(cell: str) -> None:
    for src, tgt in ((cell, "x"), ("x", cell), (cell, cell)):
        assert pairs_of(f'a,b\n"{src}","{tgt}"\n')[1:] == [(one_line(src), one_line(tgt))]


@pytest.mark.parametrize("mark", [",", ";", "\t", "|"])
@pytest.mark.parametrize("line", ["sep={}", '"sep={}"', "\ufeffSEP={}\r"])
def test_a_first_line_that_says_the_delimiter_is_taken_at_its_word(mark: str, line: str, here: Path) -> None:
    head = line.format(mark) + "\n"
    assert pairs_of(f"{head}a;b,c\td{mark}e\n" if mark == "|" else f"{head}a{mark}b|c\n")[0][0][0] == "a"
    assert message(f"{head}English{mark}German\na{mark}b\nc\n").startswith("x.csv:4: 1 column, but the source is in")
    left_out: Counter[str] = Counter()
    Path("x.csv").write_text(f"{head}a{mark}b\n")
    assert list(read_pairs(CorpusFiles(pairs="x.csv"), left_out=left_out)) == [("a", "b")]
    said = line.format(mark).strip("\ufeff\r\t")
    assert left_out == {f"line that says the delimiter ({said})": 1}


def test_only_a_first_line_says_the_delimiter() -> None:
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
