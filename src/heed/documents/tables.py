"""Tables (CSV, TSV): translates one column into another.

Rows without a translation get one, in the target's column or in a new last one. Everything else stays as it is written,
including quotes, line ends and the header. `heed.text.readers.columns` chooses the columns.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence
from dataclasses import dataclass

from heed.core.errors import DataError
from heed.documents.file_format import FileContext, TextFormat
from heed.documents.text_translator import TextTranslator
from heed.text.language.codes import code_of, name_of
from heed.text.readers.columns import Columns, Sides, find_to_translate, listed
from heed.text.readers.tables import csv_lines, csv_records

LONGEST_CODE = 3
"""A longer heading that is a language is its name, not its code."""
_OPPOSITE = {"source": "target", "src": "tgt", "original": "translation"}
_NO_CELL = re.compile(r"[\t\r\n]+")


@dataclass(frozen=True, slots=True)
class _Row:
    """A row as it is written, with its line end, and its fields."""

    raw: str
    fields: tuple[str, ...]  # unlike a list, nothing that the collector of garbage visits again and again

    def field(self, at: int) -> str:
        """A field; empty if the row is shorter."""
        return self.fields[at] if at < len(self.fields) else ""


@dataclass(frozen=True)
class _Dialect:
    """Delimiter and quotes of a table."""

    delimiter: str
    is_quoted: bool

    def field(self, text: str, as_before: str = "") -> str:
        """A field, in quotes if needed or if the field that it replaces was."""
        if not self.is_quoted:
            return _NO_CELL.sub(" ", text)
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


def translate_csv(text: str, translator: TextTranslator, context: FileContext) -> str:
    """Translate a table as spreadsheets export it. Raises DataError and UsageError."""
    first, delimiter, records = csv_records(csv_lines(text), context.name)
    rows = [_Row(raw, tuple(fields)) for _, fields, raw in translator.checked(records)]
    return first + _filled(rows, translator, context, _Dialect(delimiter, True))


def translate_tsv(text: str, translator: TextTranslator, context: FileContext) -> str:
    """Translate a table of lines, separated by tabs and never quoted. Raises DataError and UsageError."""
    lines = translator.checked(io.StringIO(text, newline="\n" if "\n" in text else "\r"))
    rows = [_Row(line, tuple(line.rstrip("\r\n").split("\t"))) for line in lines]
    return _filled(rows, translator, context, _Dialect("\t", False))


CSV = TextFormat(is_bilingual=True, has_columns=True, write=translate_csv)
TSV = TextFormat(is_bilingual=True, has_columns=True, write=translate_tsv)


def _filled(rows: Sequence[_Row], translator: TextTranslator, context: FileContext, dialect: _Dialect) -> str:
    with_text = [row for row in translator.checked(rows) if any(map(str.strip, row.fields))]
    if not with_text:
        return "".join(row.raw for row in rows)
    first = with_text[0]
    _require_width(rows, first, context.name)
    columns = find_to_translate(context.sides, first.fields, context.name)
    src, tgt = columns.src, columns.tgt
    is_new = tgt == len(first.fields)
    todo = [row for row in with_text[columns.are_named :] if row.field(src).strip() and not row.field(tgt).strip()]
    context.notify(_summary(columns, with_text, len(todo)))
    outputs = translator.lines([row.field(src) for row in todo])
    new = {id(row): output for row, output in zip(todo, outputs, strict=True)}
    if columns.are_named and not first.field(tgt).strip():
        new[id(first)] = _header_of_new(context.sides, first.field(src))
    return "".join(
        _with_field(row, tgt, is_new, new.get(id(row), ""), dialect)
        if id(row) in new or (is_new and any(row.fields))
        else row.raw
        for row in translator.checked(rows)
    )


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


def _summary(columns: Columns, rows: Sequence[_Row], num_todo: int) -> str:
    def label(at: int) -> str:
        name = rows[0].field(at).strip() if columns.are_named else ""
        return f"column {at + 1}" + (f" ({name})" if name else "")

    into = "a new column" if columns.tgt == len(rows[0].fields) else label(columns.tgt)
    names = "" if columns.are_named else "; the first row is text (if it is a header, name a column with --src-column)"
    return f"{label(columns.src)} into {into}: {num_todo:,} of {len(rows) - columns.are_named:,} rows{names}"


def _with_field(row: _Row, at: int, is_last: bool, text: str, dialect: _Dialect) -> str:
    """The row with a text in one of its columns, without those after it if it is the last."""
    bare = row.raw.rstrip("\r\n")
    parts = dialect.parts(bare)
    if is_last:
        del parts[at:]
    parts += [""] * (at + 1 - len(parts))
    parts[at] = dialect.field(text, parts[at])
    return dialect.delimiter.join(parts) + row.raw[len(bare) :]


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
