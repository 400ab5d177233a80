"""Readers of tables: TSV as tools write it, CSV as spreadsheets export it.

A row of TSV is a line; its fields are separated by tabs and never quoted. A field of CSV may be quoted (RFC 4180) and
then contain delimiters, doubled quotes and line breaks, which become spaces. The delimiter is whichever of tab,
semicolon and comma cuts the first rows into equally many fields, unless a first line such as `sep=;` gives it. CSV may
be UTF-16 with a byte-order mark. A first row of headings is left out: see `columns.py`.
"""

from __future__ import annotations

import codecs
import csv
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain, islice
from pathlib import Path

from heed.core.errors import DataError, UsageError
from heed.core.files import format_bytes
from heed.text.archives import MAX_LINE_BYTES, raw_lines, require_line, shown_name
from heed.text.language.codes import code_of
from heed.text.readers.columns import Columns, find_columns, listed
from heed.text.readers.corpus import CorpusFiles, Pair
from heed.text.readers.lines import UTF_16_MARKS, Errors, LineDecoder, read_lines

csv.field_size_limit(max(MAX_LINE_BYTES, csv.field_size_limit()))  # of all readers of the process

DELIMITERS = {"\t": "tabs", ";": "semicolons", ",": "commas"}
SAMPLE_LINES = 200
MIN_SWALLOWED = 4
"""Lines of one row from which they may be rows that an unmatched quote has swallowed."""

Row = tuple[int, list[str]]
"""The number of the line that a row starts on, and its fields."""
Record = tuple[int, list[str], str]
"""As `Row` with the line breaks inside fields, and then the row as it is written in the file."""

_BREAK = re.compile(r"(?<![ \t])[ \t]*[\r\n][ \t\r\n]*")
"""Thanks to the lookbehind, a run of blanks is tried once and not from each of its blanks."""
_LINE_END = re.compile(r"(?<=\n)|(?<=\r)(?!\n)")
_DELIMITER_LINE = re.compile(r'"?sep=(?P<delimiter>[^\w\s"]|\t)"?\s*', re.IGNORECASE)
"""The line above the first row that Excel reads and writes."""


def one_line(text: str) -> str:
    """The text with each line break and the indentation around it replaced by a space."""
    return _BREAK.sub(" ", text) if "\n" in text or "\r" in text else text


def tsv_field(text: str) -> str:
    """The text as a field of TSV, which has neither line breaks nor tabs: spaces in their places."""
    return one_line(text).replace("\t", " ")


def read_table(files: CorpusFiles, errors: Errors, left_out: Counter[str]) -> Iterator[Pair]:
    """A pair from each line of TSV, or from each row of CSV that is not empty.

    Raises DataError, with file and line, for malformed CSV and for a row that lacks a column.
    """
    rows, separator = table_rows(files, errors, left_out)
    number, first = next(rows, (0, []))
    if not number:
        return
    name = shown_name(files.pairs or "")
    columns = find_columns(files, first, f"{name}:{number}")
    if columns.are_named:
        left_out[f"row of headings ({listed(first)})"] += 1
    else:
        rows = chain([(number, first)], rows)
    for number, fields in rows:
        if len(fields) <= max(columns.src, columns.tgt):
            raise DataError(
                f"{name}:{number}: {len(fields)} column{'s' * (len(fields) > 1)}, but the source is column "
                f"{columns.src + 1} and the target column {columns.tgt + 1}. {separator}"
            )
        yield fields[columns.src], fields[columns.tgt]


def column_languages(files: CorpusFiles, errors: Errors = "strict") -> dict[str, str]:
    """The languages in the headings of a table's columns, by "src" and "tgt"; empty for a heading without one."""
    columns, first = _columns_of(files, errors)
    if columns is None or not columns.are_named:
        return {"src": "", "tgt": ""}
    positions = {"src": columns.src, "tgt": columns.tgt}
    return {side: code_of(first[at]) if at < len(first) else "" for side, at in positions.items()}


def column_numbers(files: CorpusFiles, errors: Errors = "strict") -> tuple[int, int]:
    """The columns of a table with the source and the target, counted from 1; the first two if they are unknown."""
    columns, _ = _columns_of(files, errors)
    return (1, 2) if columns is None else (columns.src + 1, columns.tgt + 1)


def with_languages_of(train: CorpusFiles, files: CorpusFiles, errors: Errors = "strict") -> CorpusFiles:
    """Other files of a corpus, with the languages of the training table's headings unless they have their own.

    Their columns are then selected by heading, whatever their order.
    """
    named = column_languages(train, errors)
    return replace(files, src_lang=files.src_lang or named["src"], tgt_lang=files.tgt_lang or named["tgt"])


def _columns_of(files: CorpusFiles, errors: Errors) -> tuple[Columns | None, Sequence[str]]:
    """The columns of a table, and its first row; None for any other file, and for one that cannot be read."""
    if files.pairs is None or files.record_format not in ("tsv", "csv") or not Path(files.pairs).is_file():
        return None, ()  # a pipe can be read only once
    try:
        rows, _ = table_rows(files, errors, Counter())
        first = next((fields for _, fields in rows), None)
        return (find_columns(files, first, shown_name(files.pairs)), first) if first else (None, ())
    except (DataError, UsageError):  # reported when the pairs are read
        return None, ()


def table_rows(files: CorpusFiles, errors: Errors, left_out: Counter[str]) -> tuple[Iterator[Row], str]:
    """The rows, and a sentence that names the delimiter."""
    path = files.pairs or ""
    if files.record_format == "tsv":
        lines = enumerate(read_lines(path, errors), start=1)
        return ((number, line.split("\t")) for number, line in lines), "Fields are separated by one tab each."
    name = shown_name(path)
    delimiter_line, delimiter, records = csv_records(_lines(path, errors), name)
    if delimiter_line:
        left_out[f"line with the delimiter ({delimiter_line.strip()})"] += 1
    rows = ((number, [one_line(field) for field in fields]) for number, fields, _ in records)
    separator = f"Fields are separated by {DELIMITERS.get(delimiter, repr(delimiter))} here."
    return _rectangle(rows, name, left_out), separator


def csv_records(lines: Iterable[str], name: str) -> tuple[str, str, Iterator[Record]]:
    """The line that sets the delimiter (usually none), the delimiter, and the rows.

    `lines` include their line ends. Raises DataError, with `name` and line, for malformed CSV.
    """
    lines = iter(lines)
    sample = list(islice(lines, SAMPLE_LINES))
    line = _DELIMITER_LINE.fullmatch("".join(sample[:1]))
    num_skipped = int(line is not None)
    delimiter = line["delimiter"] if line else sniff_delimiter(sample)
    records = _csv_records(chain(sample[num_skipped:], lines), delimiter, name, num_skipped)
    return line[0] if line else "", delimiter, records


def sniff_delimiter(lines: Sequence[str]) -> str:
    """The delimiter that cuts most rows into the same number of fields, at least two; a comma if none does."""
    agreement = {delimiter: _agreement(lines, delimiter) for delimiter in DELIMITERS}
    return max(agreement, key=agreement.__getitem__) if any(agreement.values()) else ","


def _agreement(lines: Sequence[str], delimiter: str) -> float:
    """The share of rows with the most frequent number of fields; 0 if that number is one.

    Lines after a CSV error count as disagreeing, since a wrong delimiter often makes quotes wrong.
    """
    widths: Counter[int] = Counter()
    rows, num_left = csv.reader(lines, delimiter=delimiter, strict=True), 0
    try:
        for row in rows:
            widths[len(row)] += bool(row)
    except csv.Error:
        num_left = len(lines) - rows.line_num
    [(width, count)] = widths.most_common(1) or [(0, 0)]
    return count / (widths.total() + num_left) if width > 1 else 0.0


def _lines(path: str | Path, errors: Errors) -> Iterator[str]:
    for text in _decoded(path, errors):
        yield from csv_lines(text)


def csv_lines(text: str) -> Iterator[str]:
    """The lines of CSV with their line ends: a line feed, a carriage return, or both."""
    return filter(None, _LINE_END.split(text))


def _decoded(path: str | Path, errors: Errors) -> Iterator[str]:
    raws = raw_lines(path)
    first = next(raws, b"")
    name, everything = shown_name(path), chain([first], raws)
    if not first.startswith(UTF_16_MARKS):
        yield from map(LineDecoder(name, errors).decode, everything)
        return
    number, rest, size = 0, [""], 0
    try:
        for text in codecs.iterdecode(everything, "utf-16", errors):  # the bytes of a line feed may be in two pieces
            rest.append(text)
            size += len(text)
            require_line(size, name, number + 1)
            if "\n" in text:
                *lines, last = "".join(rest).split("\n")
                number += len(lines)
                yield from (f"{line}\n" for line in lines)
                rest, size = [last], len(last)
    except UnicodeDecodeError as error:
        raise DataError(
            f"{name}:{number + 1}: not valid UTF-16, although the file starts as UTF-16. Save it again."
        ) from error
    yield "".join(rest)


def _csv_records(lines: Iterable[str], delimiter: str, name: str, num_skipped: int) -> Iterator[Record]:
    """The rows of these lines, which follow `num_skipped` other lines of the file."""
    own: list[str] = []
    reader = csv.reader(_kept(lines, own, name, num_skipped), delimiter=delimiter, strict=True)
    width = 0
    while True:
        own.clear()
        number = num_skipped + reader.line_num + 1
        try:
            row = next(reader, None)
        except csv.Error as error:
            advice = "Quote fields that contain a delimiter or a line break, and double any quote inside quotes."
            raise DataError(f"{name}:{number}: not CSV ({error}). {advice}") from error
        if row is None:
            return
        width = width or len(row)
        if len(own) >= MIN_SWALLOWED and _are_rows(own, delimiter, width):
            raise DataError(
                f"{name}:{number}: the quote opened here is not closed until line {number + len(own) - 1}, and the "
                "lines between look like rows. Close or remove it; a quote that belongs to the text must be doubled, "
                "in a quoted field."
            )
        yield number, row, "".join(own)


def _kept(lines: Iterable[str], own: list[str], name: str, num_skipped: int) -> Iterator[str]:
    """The lines, each of which is also appended to `own`, those of the row. Raises DataError for an endless row."""
    size = 0
    for number, line in enumerate(lines, start=num_skipped + 1):
        size = len(line) + (size if own else 0)
        if own and size > MAX_LINE_BYTES:
            raise DataError(
                f"{name}:{number - len(own)}: a quote that is opened here is not closed within "
                f"{format_bytes(MAX_LINE_BYTES)}. Close it, and double any quote inside quotes."
            )
        require_line(size, name, number)
        own.append(line)
        yield line


def _are_rows(lines: Sequence[str], delimiter: str, width: int) -> bool:
    """Whether most lines look like rows; in prose a space, a line end or digits surround a comma."""
    mark = re.escape(delimiter)
    prose = re.compile(rf"\A{mark}|{mark}(?:\s|\Z)|\d{mark}\d")
    alike = sum(line.count(delimiter) == width - 1 and not prose.search(line) for line in lines)
    return width > 1 and 4 * alike > 3 * len(lines)


def _rectangle(rows: Iterator[Row], name: str, left_out: Counter[str]) -> Iterator[Row]:
    """The rows that are not empty. Raises DataError for one with more fields than the first row."""
    width = 0
    for number, fields in rows:
        width = width or len(fields)
        if any(fields[width:]):
            raise DataError(
                f"{name}:{number}: {len(fields)} columns, but the first row has {width}. Quote fields that contain a "
                "delimiter, or save the table again."
            )
        if any(fields):
            yield number, fields
        else:
            left_out["empty row"] += 1
