"""Readers of records with named fields: JSONL and Parquet."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Any

from heed.core.errors import DataError, UsageError
from heed.core.json_text import parse_json
from heed.text.archives import open_file, shown_name
from heed.text.readers.columns import find_fields
from heed.text.readers.corpus import CorpusFiles, Pair
from heed.text.readers.lines import Errors, read_lines

JSON_KINDS = {
    "NoneType": "null",
    "bool": "true or false",
    "int": "a number",
    "float": "a number",
    "str": "a string",
    "list": "a list",
    "dict": "an object",
}


def read_jsonl(files: CorpusFiles, errors: Errors, left_out: Counter[str]) -> Iterator[Pair]:
    """A pair from each line, which is one JSON object. Raises DataError, with file and line, for anything else."""
    fields: tuple[str, str] | None = None
    for number, record in jsonl_records(files.pairs or "", errors):
        fields = fields or find_fields(files, list(record))
        yield _pair_of(record, fields, f"{shown_name(files.pairs or '')}:{number}")


def field_names(files: CorpusFiles, errors: Errors = "strict") -> tuple[str, str]:
    """The fields of the source and the target in a file of JSONL or Parquet."""
    path = Path(files.pairs or "")
    if not path.is_file():  # a pipe can be read only once
        return files.fields
    records = parquet_records(path) if files.record_format == "parquet" else jsonl_records(path, errors)
    try:
        return find_fields(files, list(next(records, (0, {}))[1]))
    except (DataError, UsageError):  # reported when the pairs are read
        return files.fields


def jsonl_records(
    path: str | Path, errors: Errors = "strict", offset: int = 0, num_before: int = 0, skip_blank: bool = True
) -> Iterator[tuple[int, dict[str, Any]]]:
    """The object of each line, with its number. `offset`, `num_before`: as `read_lines`.

    `skip_blank`: without blank lines. Raises DataError, with file and line, for anything else, and for half a character
    in a string.
    """
    for number, line in enumerate(read_lines(path, errors, offset, num_before), start=num_before + 1):
        if skip_blank and not line.strip():
            continue
        place = f"{shown_name(path)}:{number}"
        try:
            record = parse_json(line)
        except ValueError as error:
            reason = error.msg if isinstance(error, json.JSONDecodeError) else "nested too deeply or a number too long"
            raise DataError(f"{place}: not JSON ({reason}). Each line must be one JSON object.") from error
        if not isinstance(record, dict):
            raise DataError(f"{place}: got {kind_of(record)}; each line must be one JSON object.")
        if "\\u" in line:  # JSON can write half of a surrogate pair, which is not a character
            record = {
                _whole_characters(field, field, place, errors): _with_whole_characters(value, field, place, errors)
                for field, value in record.items()
            }
        yield number, record


def _with_whole_characters(value: Any, field: str, place: str, errors: Errors) -> Any:
    """The value of a field; its characters are checked if it is a string or a list with strings, such as labels."""
    if isinstance(value, list):
        return [_whole_characters(v, field, place, errors) if isinstance(v, str) else v for v in value]
    return _whole_characters(value, field, place, errors) if isinstance(value, str) else value


def _whole_characters(value: str, field: str, place: str, errors: Errors) -> str:
    try:
        value.encode("utf-8")
    except UnicodeEncodeError as error:
        if errors == "strict":
            code = ord(value[error.start])
            advice = "Fix the line or pass --errors replace."
            raise DataError(f"{place}: field {field!r} contains \\u{code:04x}, half a character. {advice}") from error
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return value


class FieldKinds:
    """The kinds of the fields of JSON objects that are rows of one table."""

    def __init__(self) -> None:
        self.of: dict[str, str] = {}
        """By the name of the field: `null`, `string`, `bool`, `int64` or `double`, as Arrow calls them."""
        self._inexact: dict[str, str] = {}
        """Where a field first has a whole number that is not exact as a `double`."""

    def add(self, record: dict[str, Any], place: str) -> None:
        """Add a row. Raises DataError for a nested value, and for another kind than in earlier rows."""
        for field, value in record.items():
            kind = _SCALARS.get(type(value).__name__)
            if kind is None:
                raise DataError(
                    f"{place}: field {field!r} is {kind_of(value)}; a row of a table has strings, numbers, true, false "
                    "or null. Put nested values into fields of their own, or leave them out."
                )
            if kind == "int64" and not -(1 << 63) <= value < 1 << 63:
                raise DataError(f"{place}: field {field!r} is a number of more than 64 bits. Write it as a string.")
            if kind == "int64" and int(float(value)) != value:
                self._inexact.setdefault(field, place)
            before = self.of.get(field, "null")
            if kind != before and kind != "null":
                self.of[field] = self._joined(before, kind, field, place)
            else:
                self.of.setdefault(field, kind)
            self._require_exact(field)

    def merge(self, others: FieldKinds, name: str) -> None:
        """Add the fields of another file, called `name`."""
        for field, kind in others.of.items():
            self.of[field] = self._joined(self.of.get(field, "null"), kind, field, name)
            if field in others._inexact:
                self._inexact.setdefault(field, others._inexact[field])
            self._require_exact(field)

    def _require_exact(self, field: str) -> None:
        if self.of.get(field) == "double" and (place := self._inexact.get(field)):
            raise DataError(
                f"{place}: field {field!r} is a whole number that would be rounded, as other rows have fractions. "
                "Write it as a string."
            )

    def _joined(self, before: str, kind: str, field: str, place: str) -> str:
        if before in (kind, "null") or kind == "null":
            return before if kind == "null" else kind
        if {before, kind} == {"int64", "double"}:
            return "double"
        now, earlier = (_KINDS.get(each, "a number") for each in (kind, before))
        raise DataError(
            f"{place}: field {field!r} is {now}, and {earlier} in earlier rows. Write one kind in all rows."
        )


_KINDS = {"bool": "true or false", "string": "a string"}
_SCALARS = {"NoneType": "null", "str": "string", "bool": "bool", "int": "int64", "float": "double"}


def read_parquet(files: CorpusFiles, errors: Errors, left_out: Counter[str]) -> Iterator[Pair]:
    """A pair from each row of a Parquet file. Raises UsageError without pyarrow, DataError for a malformed file."""
    path = files.pairs or ""
    with open_parquet(path) as table:
        names = table.schema_arrow.names
        fields = find_fields(files, names)
        for field in fields:
            if field not in names:
                raise DataError(f"{path}: {_no_field(field, names)}")
        batches = (batch.to_pylist() for batch in table.iter_batches(columns=list(fields)))
        for number, record in enumerate(chain.from_iterable(batches), start=1):
            yield _pair_of(record, fields, f"{path}, row {number}")


def parquet_records(path: str | Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Every row of a Parquet file with its number. Raises as `read_parquet`."""
    with open_parquet(path) as table:
        batches = (batch.to_pylist() for batch in table.iter_batches())
        yield from enumerate(chain.from_iterable(batches), start=1)


def count_rows(path: str | Path) -> int:
    """The number of rows of a Parquet file."""
    with open_parquet(path) as table:
        return int(table.metadata.num_rows)


def _pair_of(record: dict[str, Any], fields: tuple[str, str], place: str) -> Pair:
    src, tgt = (_text_of(record, field, place) for field in fields)
    return src, tgt


def _no_field(field: str, names: Sequence[str]) -> str:
    has = ", ".join(map(repr, names)) or "none"
    return f"no field {field!r}; it has {has}. Name the fields: --src-column NAME --tgt-column NAME."


def _text_of(record: dict[str, Any], field: str, place: str) -> str:
    if field not in record:
        raise DataError(f"{place}: {_no_field(field, list(record))}")
    value = record[field]
    if not isinstance(value, str):
        raise DataError(f"{place}: field {field!r} is {kind_of(value)}; it must be a string.")
    return value


def kind_of(value: object) -> str:
    """What a value of a record is, in messages: "a list"."""
    name = type(value).__name__
    return JSON_KINDS.get(name, f"a {name}")


@contextmanager
def open_parquet(path: str | Path) -> Iterator[Any]:
    """A Parquet file of pyarrow. Raises UsageError without pyarrow, DataError for a malformed file."""
    with open_file(Path(path)) as file:
        try:
            import pyarrow
            import pyarrow.parquet
        except ImportError as error:
            raise UsageError(f"{path}: reading Parquet needs pyarrow. Install it with: pip install pyarrow") from error
        try:
            with pyarrow.parquet.ParquetFile(file) as table:
                yield table
        except (pyarrow.ArrowException, OSError) as error:
            raise DataError(f"{path}: not a readable Parquet file ({str(error).splitlines()[0]}).") from error
