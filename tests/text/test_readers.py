"""Readers of lines, pairs and records, and the errors for files that cannot be read."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import lzma
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import zstandard

from heed.core.errors import DataError, HeedError, MissingInputError, UsageError
from heed.text.archives import open_bytes, open_text_output
from heed.text.readers import CorpusFiles, fingerprint, read_lines, read_pairs, read_text
from heed.text.readers.corpus import counted
from heed.text.readers.records import field_names

Compress = Callable[[bytes], bytes]
COMPRESS: dict[str, Compress] = {
    "": bytes,
    ".gz": gzip.compress,
    ".xz": lzma.compress,
    ".zst": zstandard.ZstdCompressor().compress,
}


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to work in, so that messages show the bare names."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


WHICH = " Name the fields: --src-column NAME --tgt-column NAME."


def message(work: Callable[[], Any], kind: type[HeedError] = DataError) -> str:
    with pytest.raises(kind) as caught:
        work()
    return str(caught.value)


def lines_of(data: bytes, name: str = "x.txt", errors: Any = "strict") -> list[str]:
    Path(name).write_bytes(data)
    return list(read_lines(name, errors))


# Lines


@pytest.mark.parametrize("suffix", COMPRESS)
def test_lines_are_read_from_every_compression(here: Path, suffix: str) -> None:
    lines = [f"line {number} ä" for number in range(10_000)]
    data = COMPRESS[suffix]("".join(f"{line}\n" for line in lines).encode())
    assert lines_of(data, f"x.txt{suffix}") == lines


@pytest.mark.parametrize("suffix", [".gz", ".xz", ".zst"])
def test_concatenated_archives_are_one_file(here: Path, suffix: str) -> None:
    data = COMPRESS[suffix](b"one\ntw") + COMPRESS[suffix](b"") + COMPRESS[suffix](b"o\n")
    assert lines_of(data, f"x{suffix}") == ["one", "two"]


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"", []),
        (b"\n", [""]),
        (b"a\n\nb", ["a", "", "b"]),
        (b"a\n", ["a"]),
        (b"a\r\nb\r\n", ["a", "b"]),
        (b"a\rb\r\r\nc\r", ["a\rb\r", "c\r"]),
        ("a\u2028b\u2029c\x85d\x0be\x0cf\x1cg\n".encode(), ["a\u2028b\u2029c\x85d\x0be\x0cf\x1cg"]),
        (b"\xef\xbb\xbfa\n\xef\xbb\xbfb\n", ["a", "\ufeffb"]),
        (b"\xef\xbb\xbf\xef\xbb\xbfa", ["\ufeffa"]),
        (b"\xef\xbb\xbf", [""]),
        (b"a\x00b\n", ["a\x00b"]),
        (b"  \n", ["  "]),
    ],
)
def test_only_a_line_feed_ends_a_line(here: Path, data: bytes, expected: list[str]) -> None:
    assert lines_of(data) == expected


def test_a_line_of_ten_megabytes_is_one_line(here: Path) -> None:
    assert [len(line) for line in lines_of(b"a" * 10_000_000 + b"\nb")] == [10_000_000, 1]


def test_bytes_that_are_not_utf_8_are_named_with_file_line_and_byte(here: Path) -> None:
    text = b"eins\n" * 16 + b"zwei Zeilen\xe4\n"
    assert message(lambda: lines_of(text, "train.de")) == (
        "train.de:17: byte 12 is not valid UTF-8 (0xE4). If the file is Windows-1252, convert it "
        "with `iconv -f WINDOWS-1252 -t UTF-8`; otherwise pass --errors replace."
    )
    assert lines_of(text, "train.de", "replace")[16] == "zwei Zeilen\ufffd"


def test_after_utf_8_only_the_rest_has_to_be_converted(here: Path) -> None:
    good, rest = ["Grüße"] * 3 + ["plain"], ["„Straße“ – 5 €"] * 2
    Path("F").write_bytes("".join(f"{line}\n" for line in good).encode() + "\n".join(rest).encode("cp1252"))
    refusal = message(lambda: list(read_lines("F")))
    assert refusal == (
        "F:5: byte 1 is not valid UTF-8 (0x84), but earlier lines are. If files in two encodings were joined, "
        "convert only the rest, `tail -n +5 F | iconv -f WINDOWS-1252 -t UTF-8`, and append it to the lines before. "
        "If only a few lines are damaged, fix them or pass --errors replace."
    )
    command = f"(head -n 4 F; {refusal.split('`')[1]}) > G"
    if shutil.which("iconv"):
        subprocess.run(command, shell=True, check=True)
        assert list(read_lines("G")) == good + rest
    Path("F.gz").write_bytes(gzip.compress(Path("F").read_bytes()))
    assert "joined, decompress it and convert only the rest" in message(lambda: list(read_lines("F.gz")))
    assert list(read_lines("F", "replace"))[:4] == good


@pytest.mark.parametrize("encoding", ["UTF-16LE", "UTF-16BE"])
@pytest.mark.parametrize(("text", "place"), [("eins\nGrüße\n", "a.txt:2: byte 6"), ("Grüße\n\n", "a.txt:1: byte ")])
def test_utf_16_without_a_mark_is_recognised_by_its_nul_bytes(encoding: str, text: str, place: str, here: Path) -> None:
    refusal = message(lambda: lines_of(text.encode(encoding), "a.txt"))
    assert refusal.startswith(f"{place}")
    assert refusal.endswith(
        f" is not valid UTF-8 (0xFC). NUL bytes mean UTF-16: convert it with `iconv -f {encoding} -t UTF-8`."
    )


def test_a_file_in_utf_16_is_recognised(here: Path) -> None:
    assert message(lambda: lines_of("ab".encode("utf-16"), "a.txt")) == (
        "a.txt:1: byte 1 is not valid UTF-8 (0xFF). The file is UTF-16: convert it with `iconv -f UTF-16 -t UTF-8`."
    )


@pytest.mark.parametrize("surrogate", [b"\xed\xa0\x80", b"\xc0\x80", b"\xf4\x90\x80\x80"])
def test_bytes_that_only_look_like_utf_8_are_refused(here: Path, surrogate: bytes) -> None:
    assert "x.txt:1: byte 2 is not valid UTF-8" in message(lambda: lines_of(b"a" + surrogate))


@pytest.mark.parametrize("suffix", [".gz", ".xz", ".zst"])
def test_a_truncated_archive_is_refused_with_its_last_good_line(here: Path, suffix: str) -> None:
    text = b"".join(hashlib.sha256(b"%d" % number).hexdigest().encode() + b"\n" for number in range(7_000))
    Path(f"x{suffix}").write_bytes(COMPRESS[suffix](text)[:-100_000])
    read: list[str] = []
    refusal = message(lambda: read.extend(read_lines(f"x{suffix}")))
    count = len(read)
    assert count > 1_000
    assert read == text.decode().split("\n")[:count]
    assert refusal == (
        f"x{suffix} ends unexpectedly after line {count:,}. "
        "The archive is damaged or incomplete: copy or create it again."
    )


@pytest.mark.parametrize("suffix", ["", ".gz", ".xz", ".zst", ".GZ"])
def test_an_output_is_compressed_if_its_suffix_says_so(here: Path, suffix: str) -> None:
    path = Path(f"x.txt{suffix}")
    lines = [f"Zeile {number}: schön" for number in range(5_000)]
    written = []
    for _ in range(2):
        with open_text_output(path) as file:
            file.writelines(line + "\n" for line in lines)
        written.append(path.read_bytes())
    assert list(read_lines(path)) == lines
    assert written[0] == written[1], "the same bytes, whatever the time"
    assert (len(written[0]) < len("\n".join(lines).encode())) == bool(suffix)


def test_an_output_that_fails_replaces_nothing(here: Path) -> None:
    Path("x.gz").write_bytes(gzip.compress(b"old\n"))
    with pytest.raises(KeyboardInterrupt), open_text_output("x.gz") as file:
        file.write("new\n")
        raise KeyboardInterrupt
    assert [path.name for path in here.iterdir()] == ["x.gz"]
    assert list(read_lines("x.gz")) == ["old"]


@pytest.mark.parametrize("suffix", [".gz", ".xz", ".zst"])
def test_a_file_that_is_not_an_archive_is_refused(here: Path, suffix: str) -> None:
    assert message(lambda: lines_of(b"plain text\n", f"x{suffix}")) == (
        f"x{suffix} is not a {suffix} archive. If it is plain text, remove {suffix} from its name."
    )


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (gzip.compress(b"a"), "a .gz archive: give it a name that ends in .gz, and heed decompresses it"),
        (lzma.compress(b"a"), "an .xz archive: give it a name that ends in .xz, and heed decompresses it"),
        (COMPRESS[".zst"](b"a"), "a .zst archive: give it a name that ends in .zst, and heed decompresses it"),
        (b"PK\x03\x04\x14\xff", 'a zip archive or a spreadsheet: unzip it, or save the sheet as "CSV UTF-8"'),
        (b"%PDF-1.7 \xe2\xe3", "a PDF: export the text first"),
    ],
    ids=["gz", "xz", "zst", "zip", "pdf"],
)
def test_a_file_that_is_not_text_is_distinguished_from_one_in_another_encoding(
    here: Path, data: bytes, expected: str
) -> None:
    assert message(lambda: lines_of(data, "train.de")) == f"train.de is not text but {expected}."


def test_a_pipe_can_be_read_but_not_fingerprinted(here: Path) -> None:
    os.mkfifo("pipe")
    assert message(lambda: fingerprint(CorpusFiles(pairs="pipe", format="tsv")), UsageError) == (
        "pipe cannot be read twice; write it to a file first."
    )


def test_a_missing_file_is_named_and_a_similar_name_suggested(here: Path) -> None:
    Path("train.de.gz").write_bytes(b"")
    assert message(lambda: list(read_lines("train.de")), MissingInputError) == (
        "train.de does not exist. Did you mean train.de.gz?"
    )
    assert message(lambda: list(read_lines("a/b.txt")), MissingInputError) == (
        "a/b.txt does not exist. The folder a does not exist or cannot be listed."
    )


def test_a_folder_and_an_unreadable_file_are_refused(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("folder").mkdir()
    assert message(lambda: list(read_lines("folder")), MissingInputError) == "folder is a folder; give a file."
    assert "cannot be read" in message(lambda: list(read_lines("a\0b")), MissingInputError)

    def refuse(*_: object) -> None:  # the administrator, as whom tests may run, may read everything
        raise PermissionError

    monkeypatch.setattr(Path, "open", refuse)
    assert message(lambda: list(read_lines("secret.txt")), MissingInputError) == (
        "secret.txt: permission denied. Check the access rights of the file and its folder."
    )


def test_a_hyphen_is_standard_input_and_leaves_it_open(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.TextIOWrapper(io.BytesIO(b"one\r\ntwo"))
    monkeypatch.setattr(sys, "stdin", stream)
    assert list(read_lines("-")) == ["one", "two"]
    assert not stream.buffer.closed
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"\xff")))
    assert message(lambda: list(read_lines("-"))).startswith("standard input:1: byte 1 is")


def test_bytes_can_be_read_without_lines(here: Path) -> None:
    Path("x.gz").write_bytes(gzip.compress(b"a\r\nb"))
    with open_bytes("x.gz") as file:
        assert file.read() == b"a\r\nb"


def test_a_file_of_records_is_not_monolingual_text(here: Path) -> None:
    Path("x.txt").write_text("a\nb\n")
    assert list(read_text("x.txt")) == ["a", "b"]
    assert message(lambda: read_text("x.jsonl.gz"), UsageError) == (
        "x.jsonl.gz is jsonl; give plain text with one sentence or paragraph per line."
    )


# Pairs

PAIRS = [("ein Haus", "a house"), ("", "empty source"), ('"zitiert"', "\u2028 quoted, with commas")]


def write_jsonl(path: str, pairs: list[tuple[Any, Any]], src: str = "src", tgt: str = "tgt") -> None:
    Path(path).write_text("".join(json.dumps({src: a, "n": 1, tgt: b}) + "\n" for a, b in pairs))


def test_two_files_tsv_jsonl_and_parquet_give_the_same_pairs(here: Path) -> None:
    import pyarrow
    import pyarrow.parquet

    Path("a.de").write_text("".join(f"{src}\n" for src, _ in PAIRS), "utf-8")
    Path("a.en.gz").write_bytes(gzip.compress("".join(f"{tgt}\n" for _, tgt in PAIRS).encode()))
    Path("a.tsv.xz").write_bytes(lzma.compress("".join(f"{a}\t{b}\n" for a, b in PAIRS).encode()))
    Path("b.txt").write_bytes("".join(f"{b}\t7\t{a}\r\n" for a, b in PAIRS).encode())
    write_jsonl("a.jsonl", PAIRS)
    write_jsonl("b.ndjson", PAIRS, "de", "en")
    table = pyarrow.table({"de": [a for a, _ in PAIRS], "n": [1, 2, 3], "en": [b for _, b in PAIRS]})
    pyarrow.parquet.write_table(table, "a.parquet", row_group_size=2)
    for files in [
        CorpusFiles("a.de", "a.en.gz"),
        CorpusFiles(pairs="a.tsv.xz"),
        CorpusFiles(pairs="b.txt", format="tsv", src_column=3, tgt_column=1),
        CorpusFiles(pairs="a.jsonl"),
        CorpusFiles(pairs="b.ndjson", src_field="de", tgt_field="en"),
        CorpusFiles(pairs="b.ndjson", src_column="de", tgt_column="en"),
        CorpusFiles(pairs="b.ndjson", src_lang="de", tgt_lang="en-GB"),
        CorpusFiles(pairs="b.ndjson", src_column="de", tgt_lang="en"),
        CorpusFiles(pairs="a.jsonl", src_lang="de", tgt_lang="en"),
        CorpusFiles(pairs="a.parquet", src_field="de", tgt_field="en"),
        CorpusFiles(pairs="a.parquet", src_lang="de", tgt_lang="en"),
    ]:
        assert list(read_pairs(files)) == PAIRS, files
    for pairs in ("b.ndjson", "a.parquet"):
        assert field_names(CorpusFiles(pairs=pairs, src_lang="de", tgt_lang="en")) == ("de", "en")
    assert field_names(CorpusFiles(pairs="-", format="jsonl", src_lang="de", tgt_lang="en")) == ("src", "tgt")


@pytest.mark.parametrize(
    ("number", "entry", "counts"),
    [
        (1, "unit without row", "1 unit without row"),
        (2_000, "unit without row", "2,000 units without row"),
        (2, "empty row", "2 empty rows"),
        (3, "row of headings ('line', 'rows')", "3 rows of headings ('line', 'rows')"),
    ],
)
def test_entries_that_are_left_out_are_counted_in_words(number: int, entry: str, counts: str) -> None:
    assert counted(number, entry) == counts


@pytest.mark.parametrize(("src_lang", "tgt_lang"), [("fr", "en"), ("de", "de"), ("", ""), ("de", "pt")])
def test_fields_of_records_that_no_language_names_must_be_named(here: Path, src_lang: str, tgt_lang: str) -> None:
    Path("x.jsonl").write_text('{"de": "ein Haus", "en": "a house", "pt-PT": "uma casa", "pt-BR": "uma casa"}')
    files = CorpusFiles(pairs="x.jsonl", src_lang=src_lang, tgt_lang=tgt_lang)
    assert message(lambda: list(read_pairs(files))).startswith("x.jsonl:1: no field ")
    assert message(lambda: list(read_pairs(files))).endswith(WHICH)


def test_pairs_are_streamed(here: Path) -> None:
    Path("a").write_bytes(b"one\n\xff\n")
    pairs = read_pairs(CorpusFiles("a", "a"))
    assert next(pairs) == ("one", "one")


@pytest.mark.parametrize(
    ("src_count", "tgt_count", "facts"),
    [
        (999, 1_000, "train.de has 999 lines, train.en has 1,000"),
        (1_000, 7, "train.de has 1,000 lines, train.en has 7"),
        (0, 3, "train.de has 0 lines, train.en has 3"),
        (2, 1, "train.de has 2 lines, train.en has 1"),
    ],
)
def test_files_of_different_length_are_refused_with_both_counts(
    here: Path, src_count: int, tgt_count: int, facts: str
) -> None:
    Path("train.de").write_text("x\n" * src_count)
    Path("train.en").write_text("y\n" * tgt_count)
    read: list[tuple[str, str]] = []
    assert message(lambda: read.extend(read_pairs(CorpusFiles("train.de", "train.en")))) == (
        f"{facts}, but line k of one must be the translation of line k of the other. "
        "Find where they diverge (`paste` shows both side by side), or export both again."
    )


@pytest.mark.parametrize(
    ("line", "options", "expected"),
    [
        (
            "only one",
            {},
            "x.tsv:2: 1 column, but the source is column 1 and the target column 2. "
            "Fields are separated by one tab each.",
        ),
        (
            "a\tb",
            {"tgt_column": 4},
            "x.tsv:2: 2 columns, but the source is column 1 and the target column 4. "
            "Fields are separated by one tab each.",
        ),
    ],
)
def test_a_tsv_line_without_its_columns_is_named(here: Path, line: str, options: Any, expected: str) -> None:
    Path("x.tsv").write_text(f"a\tb\tc\td\n{line}\n")
    options = {"src_column": 1, "tgt_column": 2} | options
    assert message(lambda: list(read_pairs(CorpusFiles(pairs="x.tsv", **options)))) == expected


@pytest.mark.parametrize("name", ["x.jsonl", "x.parquet"])
def test_fields_have_names_and_not_numbers(name: str) -> None:
    with pytest.raises(UsageError, match="has named fields, not numbered columns"):
        CorpusFiles(pairs=name, src_column=2, tgt_column=1)


def test_blank_lines_of_jsonl_are_skipped(here: Path) -> None:
    Path("x.jsonl").write_text('{"src": "a", "tgt": "b"}\n\n \r\n{"src": "c", "tgt": "d"}\n\n')
    assert list(read_pairs(CorpusFiles(pairs="x.jsonl"))) == [("a", "b"), ("c", "d")]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ('{"src": "a", "tgt": ', "not JSON (Expecting value). Each line must be one JSON object."),
        ("[" * 100_000, "not JSON (nested too deeply or a number too long). Each line must be one JSON object."),
        ("1" * 10_000, "not JSON (nested too deeply or a number too long). Each line must be one JSON object."),
        ('["a", "b"]', "got a list; each line must be one JSON object."),
        ('{"src": "a", "target": "b"}', "no field 'tgt'; it has 'src', 'target'." + WHICH),
        ("{}", "no field 'src'; it has none." + WHICH),
        ('{"src": "a", "tgt": null}', "field 'tgt' is null; it must be a string."),
        ('{"src": 3, "tgt": "b"}', "field 'src' is a number; it must be a string."),
        (
            '{"src": "a\\ud800", "tgt": "b"}',
            "field 'src' contains \\ud800, half a character. Fix the line or pass --errors replace.",
        ),
    ],
)
def test_a_jsonl_line_that_is_wrong_is_named(here: Path, line: str, expected: str) -> None:
    Path("x.jsonl").write_text(f'{{"src": "a", "tgt": "b"}}\n{line}\n')
    assert message(lambda: list(read_pairs(CorpusFiles(pairs="x.jsonl")))) == f"x.jsonl:2: {expected}"


def test_half_a_character_in_json_can_be_replaced(here: Path) -> None:
    Path("x.jsonl").write_text('{"src": "a\\ud800b", "tgt": "\\ud83d\\ude00"}')
    assert list(read_pairs(CorpusFiles(pairs="x.jsonl"), "replace")) == [("a\ufffdb", "\U0001f600")]


def test_a_parquet_file_that_is_wrong_is_named(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import pyarrow
    import pyarrow.parquet

    pyarrow.parquet.write_table(pyarrow.table({"src": ["a", "b"], "tgt": ["c", None]}), "x.parquet")
    files = CorpusFiles(pairs="x.parquet")
    assert message(lambda: list(read_pairs(files))) == "x.parquet, row 2: field 'tgt' is null; it must be a string."
    other = CorpusFiles(pairs="x.parquet", src_field="de")
    assert message(lambda: list(read_pairs(other))) == "x.parquet: no field 'de'; it has 'src', 'tgt'." + WHICH
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert message(lambda: list(read_pairs(files)), UsageError) == (
        "x.parquet: reading Parquet needs pyarrow. Install it with: pip install pyarrow"
    )
    monkeypatch.undo()
    monkeypatch.chdir(here)
    Path("x.parquet").write_bytes(b"PAR1 no")
    assert message(lambda: list(read_pairs(files))).startswith("x.parquet: not a readable Parquet file (")


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, "Give either two files, a source and a target, or one file of pairs."),
        ({"src": "a"}, "Give either two files, a source and a target, or one file of pairs."),
        (
            {"src": "a", "tgt": "b", "pairs": "c.tsv"},
            "Give either two files, a source and a target, or one file of pairs.",
        ),
        ({"src": "-", "tgt": "-"}, "Standard input (-) can be the source or the target, not both."),
        ({"pairs": "a.tsv", "src_column": 0}, "There is no column 0; columns are counted from 1."),
        ({"pairs": "a.tsv", "src_column": 2, "tgt_column": 2}, "Source and target cannot both be column 2."),
        ({"pairs": "a.parquet.gz"}, "a.parquet.gz: Parquet is compressed internally; decompress the file first."),
        ({"pairs": "-", "format": "parquet"}, "Parquet cannot be read from standard input; give the file."),
    ],
)
def test_files_that_are_not_a_corpus_are_refused(options: Any, expected: str) -> None:
    assert message(lambda: CorpusFiles(**options), UsageError) == expected


def test_an_unknown_format_is_refused() -> None:
    assert message(lambda: read_pairs(CorpusFiles(pairs="a.de")), UsageError) == (
        "a.de: unknown format. Files of pairs end in .tsv, .csv, .jsonl, .parquet or .tmx; otherwise give two files of "
        "plain text, one for the source and one for the target."
    )
    assert message(lambda: read_pairs(CorpusFiles(pairs="a.xlsx")), UsageError) == (
        'a.xlsx is a spreadsheet: save the sheet as "CSV UTF-8" and give that file.'
    )


# Fingerprints


def test_a_fingerprint_has_name_size_checksum_and_lines(here: Path) -> None:
    Path("a.de").write_bytes(b"a\r\nb\nc")
    packed = gzip.compress(b"\n\n\n", mtime=0)
    Path("a.en.gz").write_bytes(packed)
    assert fingerprint(CorpusFiles(here / "a.de", "a.en.gz")) == {
        "src": {
            "name": "a.de",
            "bytes": 6,
            "sha256": hashlib.sha256(b"a\r\nb\nc").hexdigest(),
            "lines": 3,
            "crlf_lines": 1,
        },
        "tgt": {
            "name": "a.en.gz",
            "bytes": len(packed),
            "sha256": hashlib.sha256(packed).hexdigest(),
            "lines": 3,
            "crlf_lines": 0,
        },
    }
    assert message(lambda: fingerprint(CorpusFiles(pairs="-", format="tsv")), UsageError) == (
        "standard input cannot be read twice; write it to a file first."
    )


def test_the_lines_of_a_parquet_file_are_its_rows(here: Path) -> None:
    import pyarrow
    import pyarrow.parquet

    pyarrow.parquet.write_table(pyarrow.table({"src": ["a\n", "b"], "tgt": ["c", "d"]}), "x.parquet")
    assert fingerprint(CorpusFiles(pairs="x.parquet"))["pairs"]["lines"] == 2


def test_real_files_are_read_whole(shared_data: Path) -> None:
    folder = shared_data / "multi30k"
    pairs = list(read_pairs(CorpusFiles(folder / "val.en.gz", folder / "val.de.gz")))
    assert len(pairs) == 1_014
    assert pairs[0] == (
        "A group of men are loading cotton onto a truck",
        "Eine Gruppe von Männern lädt Baumwolle auf einen Lastwagen",
    )
