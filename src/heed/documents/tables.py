"""How does a table, TSV or CSV, get the translations of one of its columns?

Rows that have no translation yet get one, in the column of the target or in a new one behind the others; everything
else stays as it is written, quotes, line ends and the row of names included. The columns are found as they are for
training (`heed.text.readers.columns`).
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from heed.core.errors import DataError
from heed.text.languages import code_of, name_of
from heed.text.readers.columns import LONGEST_CODE, find_source, find_target, language_named
from heed.text.readers.tables import SAMPLE_ROWS, csv_lines, csv_records

Lines = Callable[[Sequence[str]], list[str]]
"""Translates many short texts at once."""

_OPPOSITE = {"source": "target", "src": "tgt", "original": "translation"}
_TSV_LINE = re.compile(r"(?<=\n)")
_NO_CELL = re.compile(r"[\t\r\n]+")


@dataclass(frozen=True)
class Sides:
    """What is translated into what, and which columns hold it: by number, counted from 1, or by name."""

    src_lang: str = ""
    tgt_lang: str = ""
    src_column: int | str | None = None
    tgt_column: int | str | None = None


@dataclass(frozen=True)
class _Row:
    """A row as it is written, without its end; its fields; and its end."""

    raw: str
    fields: list[str]
    end: str


def translate_csv(text: str, name: str, sides: Sides, translate: Lines) -> str:
    """A table as a spreadsheet exports it. `name`: what messages call it. Raises DataError and UsageError."""
    first, delimiter, records = csv_records(csv_lines(text), name)
    rows = [_row(raw, fields) for _, fields, raw in records]

    def written(fields: Sequence[str]) -> str:
        out = io.StringIO()
        csv.writer(out, delimiter=delimiter).writerow(fields)  # its line end decides what stands in quotes
        return out.getvalue().removesuffix("\r\n")

    return first + _filled(rows, name, sides, translate, delimiter, written)


def translate_tsv(text: str, name: str, sides: Sides, translate: Lines) -> str:
    """A table whose rows are lines, parted by tabs and never quoted. Raises DataError and UsageError."""
    rows = [_row(raw, raw.rstrip("\r\n").split("\t")) for raw in filter(None, _TSV_LINE.split(text))]

    def cells(texts: Sequence[str]) -> list[str]:
        return [_NO_CELL.sub(" ", each) for each in translate(texts)]

    return _filled(rows, name, sides, cells, "\t", "\t".join)


def _row(raw: str, fields: list[str]) -> _Row:
    bare = raw.rstrip("\r\n")
    return _Row(bare, fields, raw[len(bare) :])


def _filled(
    rows: Sequence[_Row], name: str, sides: Sides, translate: Lines, delimiter: str,
    written: Callable[[Sequence[str]], str],
) -> str:  # fmt: skip
    """The table with its translations."""
    filled = [number for number, row in enumerate(rows) if any(row.fields)]
    if not filled:
        return "".join(row.raw + row.end for row in rows)
    width = len(rows[filled[0]].fields)
    for number in filled:
        if any(rows[number].fields[width:]):
            raise DataError(
                f"{name}: row {number + 1} has {len(rows[number].fields)} columns, but the first one {width}. A field "
                "with a delimiter in it must stand in quotes; save the table again."
            )
    head = [rows[number].fields for number in filled[:SAMPLE_ROWS]]
    src, are_named = find_source(sides.src_column, sides.src_lang, sides.tgt_lang, head, name)
    tgt = find_target(sides.tgt_column, sides.tgt_lang, src, [rows[number].fields for number in filled], name)
    todo = [
        number
        for number in filled[are_named:]
        if _field(rows[number], src).strip() and (tgt is None or not _field(rows[number], tgt).strip())
    ]
    new = dict(zip(todo, translate([_field(rows[number], src) for number in todo]), strict=True))
    if tgt is None and are_named:
        new[filled[0]] = _name_of_new(sides, rows[filled[0]].fields[src])
    out = []
    for number, row in enumerate(rows):
        if number in new or (tgt is None and any(row.fields)):
            raw = _with_field(row, tgt, width, new.get(number, ""), delimiter, written)
        else:
            raw = row.raw
        out.append(raw + row.end)
    return "".join(out)


def _field(row: _Row, at: int) -> str:
    return row.fields[at] if at < len(row.fields) else ""


def _with_field(
    row: _Row, at: int | None, width: int, text: str, delimiter: str, written: Callable[[Sequence[str]], str]
) -> str:
    """The row with a text in one of its columns, or behind all of them."""
    if at is None:
        raw = row.raw if len(row.fields) <= width else written(row.fields[:width])
        missing = delimiter * (width - len(row.fields))
        return raw + missing + delimiter + (written([text]) if text else "")
    fields = [*row.fields, *[""] * (at + 1 - len(row.fields))]
    fields[at] = text
    return written(fields)


def _name_of_new(sides: Sides, beside: str) -> str:
    """What the new column is called, beside the name of the source's: `de` beside `en`, `German` beside `English`."""
    if isinstance(sides.tgt_column, str):
        return sides.tgt_column
    opposite = _OPPOSITE.get(beside.strip().casefold(), "")
    if opposite:
        return opposite.title() if beside[:1].isupper() else opposite
    if not sides.tgt_lang:
        return "translation"
    named = language_named(beside) and not (code_of(beside) and len(beside.strip()) <= LONGEST_CODE)
    return name_of(sides.tgt_lang) if named else sides.tgt_lang
