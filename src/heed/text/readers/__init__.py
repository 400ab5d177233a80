"""Readers: lines and sentence pairs from text, tables, records and translation memories.

A line of text ends at "\\n" and nowhere else: U+2028, U+0085 and a lone carriage return are part of the text. So line k
is the same line for heed, for `wc -l` and for the tool that made the file.

| file          | contents                                         |
|---------------|--------------------------------------------------|
| lines.py      | lines of a text file                             |
| corpus.py     | the files of a corpus and their formats          |
| tables.py     | TSV and CSV                                      |
| columns.py    | which columns of a table hold source and target  |
| records.py    | JSONL and Parquet                                |
| tmx.py        | units and pairs of a translation memory          |
| links.py      | links between the words of pairs                 |
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from itertools import zip_longest
from pathlib import Path
from typing import TypedDict

from heed.core.errors import DataError, UsageError
from heed.core.files import sha256_file
from heed.text.archives import count_lines, is_stream, open_file, shown_name
from heed.text.readers.columns import parse_column
from heed.text.readers.corpus import CorpusFiles, Format, Pair, format_of
from heed.text.readers.lines import Errors, read_lines
from heed.text.readers.records import count_rows, read_jsonl, read_parquet
from heed.text.readers.tables import column_languages, column_numbers, read_table, with_languages_of
from heed.text.readers.tmx import read_tmx

__all__ = [
    "CorpusFiles", "Errors", "FileFingerprint", "column_languages", "column_numbers", "fingerprint",
    "fingerprint_file", "parse_column", "read_lines", "read_pairs", "read_text", "with_languages_of",
]  # fmt: skip

RECORD_READERS: dict[Format, Callable[[CorpusFiles, Errors, Counter[str]], Iterator[Pair]]] = {
    "tsv": read_table,
    "csv": read_table,
    "jsonl": read_jsonl,
    "parquet": read_parquet,
    "tmx": read_tmx,
}


def read_pairs(
    files: CorpusFiles, errors: Errors = "strict", left_out: Counter[str] | None = None
) -> Iterator[tuple[str, str]]:
    """The sentence pairs (source, target), streamed in the order of the files.

    Entries without a pair (a row of headings, a unit without one of the languages) are counted in `left_out`. Raises
    MissingInputError for a file that cannot be read; DataError, with file and line, for a malformed line and, at the
    end of the shorter file, for two files with different numbers of lines.
    """
    if files.src is not None and files.tgt is not None:
        return _from_two_files(files.src, files.tgt, errors)
    return RECORD_READERS[files.record_format](files, errors, Counter() if left_out is None else left_out)


def _from_two_files(src: str | Path, tgt: str | Path, errors: Errors) -> Iterator[Pair]:
    src_lines, tgt_lines = read_lines(src, errors), read_lines(tgt, errors)
    for number, (src_line, tgt_line) in enumerate(zip_longest(src_lines, tgt_lines), start=1):
        if src_line is None or tgt_line is None:
            rest = sum(1 for _ in src_lines) + sum(1 for _ in tgt_lines)
            counts = [number - 1, number + rest]
            src_count, tgt_count = counts if src_line is None else reversed(counts)
            raise DataError(
                f"{shown_name(src)} has {src_count:,} lines, {shown_name(tgt)} has {tgt_count:,}, but line k of one "
                "must be the translation of line k of the other. Find where they diverge (`paste` shows both side by "
                "side), or export both again."
            )
        yield src_line, tgt_line


def read_text(path: str | Path, errors: Errors = "strict") -> Iterator[str]:
    """The lines of a monolingual text, as `read_lines`. Raises UsageError for a file of records."""
    if (kind := format_of(Path(path))) not in (None, "tsv"):
        raise UsageError(f"{path} is {kind}; give plain text with one sentence or paragraph per line.")
    return read_lines(path, errors)


class FileFingerprint(TypedDict):
    """The identity of a file as it was read."""

    name: str
    bytes: int
    sha256: str
    lines: int
    crlf_lines: int


def fingerprint(files: CorpusFiles) -> dict[str, FileFingerprint]:
    """The fingerprint of each file of a corpus, by role: `src` and `tgt`, or `pairs`."""
    records = files.record_format if files.pairs is not None else None
    return {part: fingerprint_file(path, records) for part, path in files.paths.items()}


def fingerprint_file(path: str | Path, records: Format | None = None) -> FileFingerprint:
    """Size and SHA-256 of the file on disk, and the number of its lines (Parquet: rows) after decompression.

    `records` is the format of a file of pairs; for CSV and TMX, which allow any line end, CRLF is not counted. Raises
    UsageError for standard input and pipes, which can be read only once, and what `open_bytes` raises.
    """
    if is_stream(path):
        raise UsageError(f"{shown_name(path)} cannot be read twice; write it to a file first.")
    with open_file(Path(path)):  # its errors are the clear ones
        sha256 = sha256_file(path)
    lines, crlf_lines = (count_rows(path), 0) if records == "parquet" else count_lines(path)
    if records in ("csv", "tmx"):
        crlf_lines = 0
    return FileFingerprint(
        name=Path(path).name, bytes=Path(path).stat().st_size, sha256=sha256, lines=lines, crlf_lines=crlf_lines
    )
