"""How do sentence pairs come out of a table: TSV as tools write it, CSV as spreadsheets export it?

A row of TSV is a line, its columns are parted by tabs and nothing is quoted. A field of CSV may stand in quotes
(RFC 4180) and then hold delimiters, doubled quotes and line breaks, which become spaces. Its delimiter is the one of
tab, semicolon and comma that cuts the first rows into equally many columns, or what a first line such as `sep=;` says;
UTF-16 is known by its byte-order mark. A first row that only names the columns is left out: see `columns.py`.
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
from heed.text.archives import shown_name
from heed.text.readers.columns import Columns, find_columns, language_named, listed
from heed.text.readers.corpus import CorpusFiles, Pair
from heed.text.readers.lines import UTF_16_MARKS, Errors, LineDecoder, raw_lines, read_lines

DELIMITERS = {"\t": "tabs", ";": "semicolons", ",": "commas"}
SAMPLE_LINES = 200
SAMPLE_ROWS = 50
FEWEST_SWALLOWED = 4
"""So many lines in one row may be rows that a quote without its partner has swallowed."""

Row = tuple[int, list[str]]
"""The line that a row begins on, and its fields."""
Record = tuple[int, list[str], str]
"""The same with the fields as they are, line breaks included, and behind them the row as it is written."""

_BREAK = re.compile(r"(?<![ \t])[ \t]*[\r\n][ \t\r\n]*")
"""The look behind lets a run of blanks be tried once, not from each of its blanks."""
_LINE_END = re.compile(r"(?<=\n)|(?<=\r)(?!\n)")
_SAYS_DELIMITER = re.compile(r'"?sep=(?P<delimiter>[^\w\s"]|\t)"?\s*', re.IGNORECASE)
"""What Excel reads, and writes for itself, above the first row."""


def one_line(text: str) -> str:
    """The text with a space for line breaks and the indentation around them: a pair is one line on each side."""
    return _BREAK.sub(" ", text) if "\n" in text or "\r" in text else text


def read_tsv(files: CorpusFiles, errors: Errors, left_out: Counter[str]) -> Iterator[Pair]:
    """A row a line. Raises DataError, with file and line, for a row without its columns."""
    return _pairs(files, *_tsv_table(files, errors), left_out)


def read_csv(files: CorpusFiles, errors: Errors, left_out: Counter[str]) -> Iterator[Pair]:
    """The rows of CSV; empty ones are left out. Raises DataError, with file and line, for what is no CSV."""
    yield from _pairs(files, *_csv_table(files, errors, left_out), left_out)


def column_languages(files: CorpusFiles, errors: Errors = "strict") -> dict[str, str]:
    """The languages, by "src" and "tgt", that the columns of a table are named by; empty where none is."""
    columns, names = _columns_of(files, errors)
    if columns is None or not columns.are_named:
        return {"src": "", "tgt": ""}
    places = {"src": columns.src, "tgt": columns.tgt}
    return {side: language_named(names[at]) if at < len(names) else "" for side, at in places.items()}


def column_numbers(files: CorpusFiles, errors: Errors = "strict") -> tuple[int, int]:
    """The columns of a table that hold source and target, counted from 1; the first two where nothing tells."""
    columns, _ = _columns_of(files, errors)
    return (1, 2) if columns is None else (columns.src + 1, columns.tgt + 1)


def with_languages_of(train: CorpusFiles, files: CorpusFiles, errors: Errors = "strict") -> CorpusFiles:
    """Files that go with a training table, in the languages that its columns are named by, unless others were said.

    So the columns of each are found by their names, in whatever order they stand.
    """
    named = column_languages(train, errors)
    return replace(files, src_lang=files.src_lang or named["src"], tgt_lang=files.tgt_lang or named["tgt"])


def _columns_of(files: CorpusFiles, errors: Errors) -> tuple[Columns | None, Sequence[str]]:
    """The columns of a table and its first row; None for what is no table, or cannot be read as one."""
    if files.pairs is None or files.record_format not in ("tsv", "csv") or not Path(files.pairs).is_file():
        return None, ()  # a pipe can be read only once
    is_csv = files.record_format == "csv"
    try:
        rows, _ = _csv_table(files, errors, Counter()) if is_csv else _tsv_table(files, errors)
        head = [fields for _, fields in islice(rows, SAMPLE_ROWS)]
        return (find_columns(files, head, shown_name(files.pairs)), head[0]) if head else (None, ())
    except (DataError, UsageError):  # which reading the pairs tells
        return None, ()


def _tsv_table(files: CorpusFiles, errors: Errors) -> tuple[Iterator[Row], str]:
    """The rows, and what parts their columns."""
    lines = read_lines(files.pairs or "", errors)
    rows = ((number, line.split("\t")) for number, line in enumerate(lines, start=1))
    return rows, "Columns are parted by one tab each."


def _csv_table(files: CorpusFiles, errors: Errors, left_out: Counter[str]) -> tuple[Iterator[Row], str]:
    path = files.pairs or ""
    name = shown_name(path)
    said, delimiter, records = csv_records(_lines(path, errors), name)
    if said:
        left_out[f"line that says the delimiter ({said.strip()})"] += 1
    rows = ((number, [one_line(field) for field in fields]) for number, fields, _ in records)
    parted = f"Columns are parted by {DELIMITERS.get(delimiter, repr(delimiter))} here."
    return _rectangle(rows, name, left_out), parted


def csv_records(lines: Iterable[str], name: str) -> tuple[str, str, Iterator[Record]]:
    """What stands before the first row to say the delimiter (mostly nothing), the delimiter, and the rows.

    The lines have their ends. Raises DataError, with `name` and line, for what is no CSV.
    """
    lines = iter(lines)
    sample = list(islice(lines, SAMPLE_LINES))
    said = _SAYS_DELIMITER.fullmatch("".join(sample[:1]))
    num_skipped = int(said is not None)
    delimiter = said["delimiter"] if said else sniff_delimiter(sample)
    records = _csv_records(chain(sample[num_skipped:], lines), delimiter, name, num_skipped)
    return said[0] if said else "", delimiter, records


def sniff_delimiter(lines: Sequence[str]) -> str:
    """The delimiter that cuts most rows into the same number of columns, two or more; a comma when none does."""
    agreement = {delimiter: _agreement(lines, delimiter) for delimiter in DELIMITERS}
    return max(agreement, key=agreement.__getitem__) if any(agreement.values()) else ","


def _agreement(lines: Sequence[str], delimiter: str) -> float:
    """The share of rows with the most frequent number of columns; 0 where that is one.

    Lines behind an error are rows of none: a wrong delimiter often makes quotes wrong. The sample may end inside some.
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
    """The lines of CSV with their ends: a line feed, a carriage return, or both."""
    return filter(None, _LINE_END.split(text))


def _decoded(path: str | Path, errors: Errors) -> Iterator[str]:
    raws = raw_lines(path)
    first = next(raws, b"")
    name, everything = shown_name(path), chain([first], raws)
    if not first.startswith(UTF_16_MARKS):
        yield from map(LineDecoder(name, errors).decode, everything)
        return
    number, rest = 0, ""
    try:
        for text in codecs.iterdecode(everything, "utf-16", errors):  # the bytes of a line feed may be in two pieces
            *lines, rest = (rest + text).split("\n")
            number += len(lines)
            yield from (f"{line}\n" for line in lines)
    except UnicodeDecodeError as error:
        raise DataError(f"{name}:{number + 1}: not valid UTF-16, as which the file begins. Save it again.") from error
    yield rest


def _csv_records(lines: Iterable[str], delimiter: str, name: str, num_skipped: int) -> Iterator[Record]:
    """The rows of these lines, before which the file has `num_skipped` others."""
    own: list[str] = []
    reader = csv.reader(_kept(lines, own), delimiter=delimiter, strict=True)
    width = 0
    while True:
        own.clear()
        number = num_skipped + reader.line_num + 1
        try:
            row = next(reader, None)
        except csv.Error as error:
            advice = "A field with a delimiter or a line break stands in quotes, and a quote inside quotes is doubled."
            is_endless = "field limit" in str(error)
            what = f"a field of more than {csv.field_size_limit():,} characters" if is_endless else f"{error}"
            raise DataError(f"{name}:{number}: not CSV ({what}). {advice}") from error
        if row is None:
            return
        width = width or len(row)
        if len(own) >= FEWEST_SWALLOWED and _are_rows(own, delimiter, width):
            raise DataError(
                f"{name}:{number}: the quote that is opened here is closed only in line {number + len(own) - 1}, and "
                "the lines between look like rows. Close it, or take it away; a quote that belongs to the text stands "
                "doubled in a field in quotes."
            )
        yield number, row, "".join(own)


def _kept(lines: Iterable[str], own: list[str]) -> Iterator[str]:
    """The lines, each of which is also put into `own`."""
    for line in lines:
        own.append(line)
        yield line


def _are_rows(lines: Sequence[str], delimiter: str, width: int) -> bool:
    """Whether nearly all lines are rows by themselves: prose has a blank, nothing or digits around a comma."""
    mark = re.escape(delimiter)
    prose = re.compile(rf"\A{mark}|{mark}(?:\s|\Z)|\d{mark}\d")
    alike = sum(line.count(delimiter) == width - 1 and not prose.search(line) for line in lines)
    return width > 1 and 4 * alike > 3 * len(lines)


def _rectangle(rows: Iterator[Row], name: str, left_out: Counter[str]) -> Iterator[Row]:
    """The rows with something in them, none of which may go on where the first one ends."""
    width = 0
    for number, fields in rows:
        width = width or len(fields)
        if any(fields[width:]):
            raise DataError(
                f"{name}:{number}: {len(fields)} columns, but the first row has {width}. A field with a delimiter in "
                "it must stand in quotes; save the table again."
            )
        if any(fields):
            yield number, fields
        else:
            left_out["empty row(s)"] += 1


def _pairs(files: CorpusFiles, rows: Iterator[Row], parted: str, left_out: Counter[str]) -> Iterator[Pair]:
    """The two chosen columns of each row."""
    head = list(islice(rows, SAMPLE_ROWS))
    if not head:
        return
    name = shown_name(files.pairs or "")
    columns = find_columns(files, [fields for _, fields in head], f"{name}:{head[0][0]}")
    if columns.are_named:
        left_out[f"row of column names ({listed(head[0][1])})"] += 1
        del head[0]
    for number, fields in chain(head, rows):
        if len(fields) <= max(columns.src, columns.tgt):
            found = f"{len(fields)} column{'s' * (len(fields) > 1)}"
            wanted = f"the source is in column {columns.src + 1} and the target in column {columns.tgt + 1}"
            raise DataError(f"{name}:{number}: {found}, but {wanted}. {parted}")
        yield fields[columns.src], fields[columns.tgt]
