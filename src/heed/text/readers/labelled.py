"""Reader of tables of texts with labels: CSV, TSV, JSONL and Parquet.

The columns are given by number (from 1) or heading, or chosen: by a usual heading (`text`, `label`, ...), or else by
the contents of the first rows. What was chosen is described in a sentence, and what is ambiguous is refused in one.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Any

from heed.core.errors import DataError, UsageError
from heed.core.json_text import parse_json
from heed.text.archives import plain_name, shown_name
from heed.text.readers.corpus import CorpusFiles, format_of
from heed.text.readers.label_columns import SAMPLE_ROWS, Choice, choose_columns
from heed.text.readers.lines import Errors
from heed.text.readers.records import jsonl_records, kind_of, parquet_records
from heed.text.readers.tables import table_rows

Cells = list[Any]


@dataclass(frozen=True)
class LabelledTable:
    """A file of texts with labels, and what was given about its columns."""

    path: str | Path
    text_columns: tuple[int | str, ...] = ()
    """One column of texts, or two of pairs; empty: chosen."""
    label_column: int | str | None = None
    """None: chosen."""
    label_separator: str = ""
    """What separates several labels in a cell; empty: a cell is one label, unless it is a list."""


@dataclass(frozen=True)
class LabelledRow:
    """A row of a table: one text or two, and its labels."""

    number: int
    """The line that it starts on, or the number of the record, from 1."""
    texts: tuple[str, ...]
    labels: tuple[str, ...]
    """Usually one; empty for a missing label."""
    is_list: bool = False
    """Whether the cell is a list of labels."""
    cells: tuple[str, ...] = ()
    """All cells, as text."""


@dataclass(frozen=True)
class OpenTable:
    """A table that is being read: its columns, and its rows, which can be read once."""

    name: str
    choice: Choice
    heading: tuple[str, ...] | None
    rows: Iterator[LabelledRow]

    def shown(self, column: int) -> str:
        """The heading of a column in quotes, or `column 3` for one without."""
        heading = self.heading or ()
        return f'"{heading[column].strip()}"' if column < len(heading) else f"column {column + 1}"

    def require_texts(self, number: int, advice: str) -> None:
        """Raise UsageError, with this advice, unless there are `number` columns of texts, as in the training table."""
        found = len(self.choice.texts)
        if found != number:
            columns = f"{number} column{'s' * (number > 1)} of texts"
            raise UsageError(
                f"{self.name}: expected {columns}, as in the training table, got {found} ({self.choice.how}). {advice}"
            )


def open_labelled(
    table: LabelledTable, errors: Errors = "strict", left_out: Counter[str] | None = None, needs_labels: bool = True
) -> OpenTable:
    """Choose the columns of a table and read its rows, one in memory at a time.

    Without `needs_labels`, a table may have no column of labels. Raises MissingInputError for a file that cannot be
    read, DataError for a malformed one or one without rows, and UsageError where the columns have to be given.
    """
    left_out = Counter() if left_out is None else left_out
    name = shown_name(table.path)
    heading, rows = _cells(table, errors, left_out)
    sample = list(islice(rows, SAMPLE_ROWS))
    if not sample:
        raise DataError(f"{name}: the table has no rows.")
    given = table.text_columns, table.label_column
    choice = choose_columns(name, heading, [cells for _, cells in sample], *given, needs_labels)
    if choice.has_heading and heading is None:
        heading = [_text(cell) for cell in sample[0][1]]
        left_out["row of headings"] += 1
        sample = sample[1:]
    labelled = (_row(table, choice, number, cells, name) for number, cells in chain(sample, rows))
    return OpenTable(name, choice, tuple(heading) if heading else None, labelled)


def possible_headings(table: LabelledTable, errors: Errors = "strict") -> tuple[str, ...]:
    """The names of a table's fields, or what its first row has, which may be headings."""
    names, rows = _cells(table, errors, Counter())
    return tuple(map(_text, names if names is not None else next(rows, (1, []))[1]))


def _cells(
    table: LabelledTable, errors: Errors, left_out: Counter[str]
) -> tuple[list[str] | None, Iterator[tuple[int, Cells]]]:
    """The names of the fields, if the format has them, and the cells of each row."""
    plain = format_of(Path(table.path)) is None and Path(plain_name(table.path)).suffix in (".txt", "")
    files = CorpusFiles(pairs=table.path, format="tsv" if plain or str(table.path) == "-" else None)
    if files.record_format in ("tsv", "csv"):
        rows, _ = table_rows(files, errors, left_out)
        return None, ((number, list(cells)) for number, cells in rows if any(cells))
    records = jsonl_records(table.path, errors) if files.record_format == "jsonl" else parquet_records(table.path)
    if files.record_format == "tmx":
        raise DataError(f"{shown_name(table.path)}: a translation memory has no labels; give a table.")
    sample = list(islice(records, SAMPLE_ROWS))
    if not sample:
        return None, iter(())
    names = list(dict.fromkeys(name for _, record in sample for name in record))
    return names, ((number, [record.get(name) for name in names]) for number, record in chain(sample, records))


def _row(table: LabelledTable, choice: Choice, number: int, cells: Cells, name: str) -> LabelledRow:
    needed = max((*choice.texts, -1 if choice.label is None else choice.label))
    if len(cells) <= needed:
        raise DataError(f"{name}:{number}: {len(cells)} columns, but column {needed + 1} is needed.")
    for at in (*choice.texts, *(() if choice.label is None else (choice.label,))):
        if isinstance(cells[at], dict) or (at != choice.label and isinstance(cells[at], list)):
            can = "text or a list of labels" if at == choice.label else "text"
            raise DataError(f"{name}:{number}: column {at + 1} is {kind_of(cells[at])}; it must be {can}.")
    texts = tuple(_text(cells[at]) for at in choice.texts)
    labels, is_list = _labels(table, cells[choice.label]) if choice.label is not None else ((), False)
    return LabelledRow(number, texts, labels, is_list, tuple(map(_text, cells)))


def _labels(table: LabelledTable, cell: Any) -> tuple[tuple[str, ...], bool]:
    """The labels of a cell, and whether it is a list."""
    if isinstance(cell, str) and cell.lstrip().startswith("[") and cell.rstrip().endswith("]"):
        cell = _list_in(cell)
    if isinstance(cell, list):
        return tuple(dict.fromkeys(text for each in cell if (text := _text(each).strip()))), True
    text = _text(cell).strip()
    if table.label_separator:
        parts = (part.strip() for part in text.split(table.label_separator))
        return tuple(dict.fromkeys(part for part in parts if part)), True
    return ((text,) if text else ()), False


def _list_in(cell: str) -> Any:
    """The list that a cell contains as JSON; the cell itself if it is none."""
    try:
        return parse_json(cell)
    except ValueError:
        return cell


def _text(cell: Any) -> str:
    """A cell as text: a whole number has no decimals, and nothing is empty."""
    if cell is None or isinstance(cell, str):
        return cell or ""
    if isinstance(cell, bool):
        return "true" if cell else "false"
    if isinstance(cell, float):
        return "" if cell != cell else str(int(cell)) if cell.is_integer() else repr(cell)
    return json.dumps(cell, ensure_ascii=False) if isinstance(cell, list | dict) else str(cell)


def cells_of(row: Sequence[str], separator: str) -> str:
    """A row of TSV or CSV as a line, without its end."""
    if separator == "\t":
        return "\t".join(" ".join(cell.split("\t")) for cell in row)
    return separator.join(
        '"' + cell.replace('"', '""') + '"' if any(mark in cell for mark in (separator, '"', "\n", "\r")) else cell
        for cell in row
    )
