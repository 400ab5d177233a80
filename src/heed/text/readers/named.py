"""Reader of tables by the names of their columns: TSV and CSV with a row of headings, and JSONL."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from heed.core.errors import DataError, UsageError
from heed.text.archives import shown_name
from heed.text.readers.columns import listed
from heed.text.readers.corpus import CorpusFiles, format_of
from heed.text.readers.lines import Errors
from heed.text.readers.records import jsonl_records
from heed.text.readers.tables import table_rows

NamedRow = tuple[int, Mapping[str, Any]]
"""The number of the line that a row starts on, and its fields by the name of their column: texts, except in JSON."""


def read_named(path: str | Path, errors: Errors = "strict") -> Iterator[NamedRow]:
    """The rows of a table whose first row has the names of the columns, or of a file of JSON objects.

    Raises UsageError for a file of another format; DataError for two columns of one name; MissingInputError and
    DataError as `read_pairs`.
    """
    format = format_of(Path(path))
    if format == "jsonl":
        yield from jsonl_records(path, errors)
        return
    if format not in ("tsv", "csv"):
        raise UsageError(f"{path}: give a table with named columns, a .tsv, .csv or .jsonl file.")
    rows, separator = table_rows(CorpusFiles(pairs=path), errors, Counter())
    first, headings = next(rows, (1, list[str]()))
    names = [name.strip() for name in headings]
    folded = [name.casefold() for name in names]
    if repeated := next((name for name in names if name and folded.count(name.casefold()) > 1), ""):
        raise DataError(
            f"{shown_name(path)}:{first}: {folded.count(repeated.casefold())} columns are called {repeated!r}. Give "
            "each a name of its own."
        )
    for number, fields in rows:
        if len(fields) < len(names):
            raise DataError(
                f"{shown_name(path)}:{number}: {len(fields)} column{'s' * (len(fields) != 1)}, but the first row names "
                f"{len(names)} ({listed(names)}). {separator}"
            )
        yield number, dict(zip(names, fields, strict=False))


def find_column(names: Sequence[str], given: str, usual: Sequence[str], flag: str, place: str) -> str:
    """The column that was given, or else the first usual name that a table has, in any case of letters.

    Raises DataError for a given column that does not exist, UsageError if none is usual; `flag` selects one.
    """
    by_folded = {name.casefold(): name for name in reversed(names)}
    for name in [given] if given else usual:
        if name.casefold() in by_folded:
            return by_folded[name.casefold()]
    if given:
        raise DataError(f"{place} has no column {given!r}; it has {listed(names)}.")
    raise UsageError(f"{place} has no column called {' or '.join(usual)}, but {listed(names)}. Name it with {flag}.")
