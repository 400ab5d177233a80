"""Rows of a corpus as texts or as pairs, whatever the kind of its files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from heed.cluster.parts import (
    TEXT,
    InputFile,
    Part,
    cut,
    input_files,
    kind_of,
    matching_paths,
    open_files,
    read_part,
    text_column,
)  # fmt: skip
from heed.core.errors import DataError, UsageError
from heed.text.readers import CorpusFiles, with_languages_of
from heed.text.readers.columns import find_columns, listed
from heed.text.readers.corpus import format_of
from heed.text.readers.lines import Errors, read_lines
from heed.text.readers.records import field_names

TextRow = tuple[str | None, ...]
"""The texts of a row: one, or source and target. None for one that is missing."""


@dataclass(frozen=True)
class Rows:
    """Where the texts of a row are."""

    columns: tuple[str, ...]
    """Columns of the tables of a part."""
    fields: tuple[int, ...] = ()
    """In the lines of a text: the fields, separated by tabs, counted from 0. Empty for the line itself."""
    errors: Errors = "strict"

    def read(self, part: Part) -> Iterator[TextRow]:
        """The rows of a part. Raises DataError if the file has changed since it was cut."""
        number = 0
        for table in read_part(part, self.errors, self.columns):
            yield from self.of(table, part, number)
            number += table.num_rows
        part.require_rows(number)

    def of(self, table: Any, part: Part, before: int) -> list[TextRow]:
        """The rows of a table of a part, which has so many rows `before` it."""
        texts = [table.column(name).to_pylist() for name in self.columns]
        return [*zip(*texts, strict=True)] if not self.fields else [
            self._cut(line, part, before + number) for number, line in enumerate(texts[0])
        ]  # fmt: skip

    def _cut(self, line: str, part: Part, number: int) -> TextRow:
        cells = line.split("\t")
        if len(cells) <= max(self.fields):
            place = f"{part.path}:{part.first_row + part.num_skipped + number + 1}"
            src, tgt = (at + 1 for at in self.fields)
            raise DataError(
                f"{place}: {len(cells)} column{'s' * (len(cells) > 1)}, but the source is column {src} and the target "
                f"column {tgt}. Fields are separated by one tab each."
            )
        return tuple(cells[at] for at in self.fields)


@dataclass(frozen=True)
class Corpus:
    """Files of rows in parts."""

    files: list[InputFile]
    parts: list[Part]
    rows: Rows
    left_out: Counter[str] = field(default_factory=Counter)
    """Rows of headings, by what they have."""
    pairs: CorpusFiles | None = None
    """The first file, if the rows are pairs."""

    @property
    def num_rows(self) -> int:
        """Rows of all parts."""
        return sum(part.num_rows for part in self.parts)


def open_texts(patterns: Sequence[str], column: str | None, errors: Errors, quiet: bool = False) -> Corpus:
    """A corpus of texts. Raises as `input_files`."""
    files, column = input_files(patterns, column, quiet)
    return Corpus(files, cut(files), Rows((column,), errors=errors))


def open_pairs(
    patterns: Sequence[str], given: Callable[..., CorpusFiles], errors: Errors, quiet: bool = False
) -> Corpus:
    """A corpus of pairs: two columns of Parquet files or JSON lines, or lines whose fields are separated by tabs.

    `given`: `CorpusFiles` with the columns and languages that were given. Raises as `input_files`, and UsageError where
    the columns have to be given.
    """
    paths = matching_paths(patterns)
    if kind_of(paths[0]) is not None:
        pairs = given(pairs=paths[0])
        files = open_files(paths, quiet)
        names = field_names(pairs, errors)
        for file in files:
            for column in names:
                text_column(file, column)
        return Corpus(files, cut(files), Rows(names, errors=errors), pairs=pairs)
    fields: tuple[int, int] | None = None
    left_out: Counter[str] = Counter()
    headed: set[str] = set()
    paths = [path for path in paths if any(True for _ in read_lines(path, errors))] or paths[:1]
    pairs = given(pairs=paths[0], format="tsv")
    for path in paths:
        if format_of(path) not in (None, "tsv"):
            raise UsageError(
                f"{path} is {format_of(path)}, which cannot be read in parts. Convert it to Parquet or TSV."
            )
        first = next(read_lines(path, errors), "").split("\t")
        columns = find_columns(with_languages_of(pairs, replace(pairs, pairs=path), errors), first, f"{path}:1")
        if fields not in (None, (columns.src, columns.tgt)):
            raise DataError(
                f"{path}: the source and the target are in other columns than in {paths[0]}. Use the same ones in "
                "all files."
            )
        fields = columns.src, columns.tgt
        if columns.are_named:
            headed.add(str(path))
            left_out[f"row of headings ({listed(first)})"] += 1
    files = open_files(paths, quiet)
    parts = [_without_heading(part) if part.path in headed and not part.first_row else part for part in cut(files)]
    parts = [part for part in parts if part.num_rows]
    return Corpus(files, parts, Rows((TEXT,), fields or (), errors), left_out, pairs)


def _without_heading(part: Part) -> Part:
    return replace(part, num_rows=part.num_rows - 1, num_skipped=1)
