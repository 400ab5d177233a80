"""Tables (CSV, TSV): translates one column into another.

Rows without a translation get one, in the target's column or in a new last one. Everything else stays as it is written,
including quotes, line ends and the header. `heed.text.readers.columns` chooses the columns.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from heed.core.errors import DataError
from heed.text.language.codes import code_of, name_of
from heed.text.readers.columns import Sides, ToTranslate, find_to_translate, listed
from heed.text.readers.tables import csv_lines, csv_records

Lines = Callable[[Sequence[str]], list[str]]
"""Translates many short texts at once."""
Tell = Callable[[str], None]
"""Gets a message about what will be translated."""


def tell_nobody(message: str) -> None:
    """Ignore the message."""


LONGEST_CODE = 3
"""A longer heading that is a language is its name, not its code."""
_OPPOSITE = {"source": "target", "src": "tgt", "original": "translation"}
_LINE = re.compile(r"(?<=\n)")
_NO_CELL = re.compile(r"[\t\r\n]+")


@dataclass(frozen=True)
class _Row:
    """A row as it is written, without its line end; its fields; and its line end."""

    raw: str
    fields: list[str]
    end: str

    def field(self, at: int) -> str:
        """A field; empty if the row is shorter."""
        return self.fields[at] if at < len(self.fields) else ""


@dataclass(frozen=True)
class _Form:
    """The format of the rows."""

    delimiter: str
    is_quoted: bool

    def field(self, text: str, as_before: str = "") -> str:
        """A field, in quotes if needed or if the field that it replaces was."""
        if not self.is_quoted:
            return text
        if as_before.startswith('"'):
            return '"' + text.replace('"', '""') + '"'
        out = io.StringIO()
        csv.writer(out, delimiter=self.delimiter).writerow([text, ""])  # a second field, as an empty row is quoted
        return out.getvalue().removesuffix(f"{self.delimiter}\r\n")

    def parts(self, raw: str) -> list[str]:
        """The fields of a row as they are written."""
        if not self.is_quoted:
            return raw.split(self.delimiter)
        field = re.compile(rf'(?:"(?:[^"]|"")*")?[^{re.escape(self.delimiter)}]*')
        parts, place = [], 0
        while True:
            match = field.match(raw, place)
            assert match is not None
            parts.append(match[0])
            if match.end() == len(raw):
                return parts
            place = match.end() + 1


def translate_csv(text: str, name: str, sides: Sides, translate: Lines, tell: Tell) -> str:
    """Translate a table as spreadsheets export it. `name` is used in messages. Raises DataError and UsageError."""
    first, delimiter, records = csv_records(csv_lines(text), name)
    rows = [_row(raw, fields) for _, fields, raw in records]
    return first + _filled(rows, name, sides, translate, tell, _Form(delimiter, True))


def translate_tsv(text: str, name: str, sides: Sides, translate: Lines, tell: Tell) -> str:
    """Translate a table of lines, separated by tabs and never quoted. Raises DataError and UsageError."""
    rows = [_row(raw, raw.rstrip("\r\n").split("\t")) for raw in filter(None, _LINE.split(text))]

    def cells(texts: Sequence[str]) -> list[str]:
        return [_NO_CELL.sub(" ", each) for each in translate(texts)]

    return _filled(rows, name, sides, cells, tell, _Form("\t", False))


def _row(raw: str, fields: list[str]) -> _Row:
    bare = raw.rstrip("\r\n")
    return _Row(bare, fields, raw[len(bare) :])


def _filled(rows: Sequence[_Row], name: str, sides: Sides, translate: Lines, tell: Tell, form: _Form) -> str:
    """The table with its translations."""
    filled = [row for row in rows if any(map(str.strip, row.fields))]
    if not filled:
        return "".join(row.raw + row.end for row in rows)
    width = len(filled[0].fields)
    _require_width(rows, filled[0], name)
    columns = find_to_translate(sides, filled[0].fields, name)
    src, tgt = columns.src, columns.tgt
    todo = [
        row
        for row in filled[columns.are_named :]
        if row.field(src).strip() and (tgt is None or not row.field(tgt).strip())
    ]
    tell(_summary(columns, filled, len(todo)))
    outputs = translate([row.field(src) for row in todo])
    new = {id(row): output for row, output in zip(todo, outputs, strict=True)}
    if columns.are_named and (tgt is None or not filled[0].field(tgt).strip()):
        new[id(filled[0])] = _header_of_new(sides, filled[0].field(src))
    out = []
    for row in rows:
        raw = row.raw
        if id(row) in new or (tgt is None and any(row.fields)):
            raw = _with_field(row, tgt, width, new.get(id(row), ""), form)
        out.append(raw + row.end)
    return "".join(out)


def _require_width(rows: Sequence[_Row], first: _Row, name: str) -> None:
    """Raise DataError for a row that is longer than the first one."""
    width = len(first.fields)
    for number, row in enumerate(rows, start=1):
        if any(row.fields[width:]):
            raise DataError(
                f"{name}: row {number} has {len(row.fields)} columns, but the first row with text has {width} "
                f"({listed(first.fields)}). Quote fields that contain the delimiter, and remove any title above the "
                "table."
            )


def _summary(columns: ToTranslate, rows: Sequence[_Row], num_todo: int) -> str:
    """The message about what will be translated."""

    def label(at: int) -> str:
        name = rows[0].field(at).strip() if columns.are_named else ""
        return f"column {at + 1}" + (f" ({name})" if name else "")

    into = "a new column" if columns.tgt is None else label(columns.tgt)
    names = "" if columns.are_named else "; the first row is text (if it is a header, name a column with --src-column)"
    return f"{label(columns.src)} into {into}: {num_todo:,} of {len(rows) - columns.are_named:,} rows{names}"


def _with_field(row: _Row, at: int | None, width: int, text: str, form: _Form) -> str:
    """The row with a text in one of its columns, or in a new last one."""
    parts = form.parts(row.raw)
    if at is None:
        parts = [*parts[:width], *[""] * (width - len(parts)), form.field(text)]
    else:
        parts += [""] * (at + 1 - len(parts))
        parts[at] = form.field(text, parts[at])
    return form.delimiter.join(parts)


def _header_of_new(sides: Sides, source: str) -> str:
    """The new column's header, after that of the source: `de` for `en`, `German` for `English`."""
    if isinstance(sides.tgt_column, str):
        return sides.tgt_column
    opposite = _OPPOSITE.get(source.strip().casefold(), "")
    if opposite:
        return opposite.title() if source[:1].isupper() else opposite
    if not sides.tgt_lang:
        return "translation"
    named = code_of(source) and len(source.strip()) > LONGEST_CODE
    return name_of(sides.tgt_lang) if named else sides.tgt_lang
