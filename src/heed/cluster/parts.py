"""Parts of a corpus: consecutive rows of one file, the units of work that are done, lost and done again as a whole.

Files are cut by their rows alone, so a corpus always has the same parts. A worker reads its part in groups of rows, the
same ones each time, so neither the number of workers nor a repetition changes a result.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any, Literal

from heed.core.errors import DataError, MissingInputError
from heed.core.progress import watched
from heed.text.archives import COMPRESSIONS, open_file, raw_lines
from heed.text.readers.corpus import format_of
from heed.text.readers.lines import Errors, read_lines
from heed.text.readers.records import FieldKinds, jsonl_records, open_parquet

GROUP_ROWS = 4096
"""Rows that are computed and held in memory together."""
STEP_ROWS = 500
"""Parts of plain files have a multiple of this number of rows."""
MAX_STEPS = 40
"""Steps of the longest part: minutes of work, which is what a lost worker loses."""
NUM_PARTS = 256
"""Parts that a smaller corpus is cut into, if it has the rows."""
TEXT = "text"
"""The column of a text file."""
KINDS = {"parquet": "Parquet", "jsonl": "JSON lines", None: "plain text"}
"""Kinds of files in messages."""
_ENDS = 1 << 16
"""Bytes at the beginning and at the end, where its statistics are, of a Parquet file that its fingerprint covers."""


@dataclass(frozen=True)
class InputFile:
    """A file of the corpus, with where it can be cut."""

    path: Path
    num_rows: int
    offsets: tuple[int, ...]
    """Plain text: the bytes at which every `STEP_ROWS`-th line begins. Empty for others."""
    size: int
    fingerprint: str
    crlf_lines: int = 0
    """Lines with Windows line ends."""
    kinds: tuple[tuple[str, str], ...] = ()
    """JSON lines: the fields of the objects of all files, and their kinds."""

    @property
    def can_be_cut(self) -> bool:
        """Whether reading can start in the middle: not in a compressed text."""
        return self.path.suffix.lower() not in COMPRESSIONS


@dataclass(frozen=True)
class Part:
    """Consecutive rows of a file."""

    number: int
    path: str
    first_row: int
    num_rows: int
    offset: int
    """Of plain text: the byte at which the first row begins."""
    num_skipped: int = 0
    """Lines before the first row that are headings."""
    kinds: tuple[tuple[str, str], ...] = ()
    """As in `InputFile`."""

    @property
    def name(self) -> str:
        """The name of the file with the results."""
        return f"part-{self.number:06}.parquet"

    @property
    def title(self) -> str:
        """The part in messages."""
        return f"{self.path}, part {self.number:,}"

    def require_rows(self, number: int) -> None:
        """Raise DataError unless so many rows were read."""
        if number != self.num_rows:
            raise DataError(f"{self.path} changed while it was being read. Name another --output and begin again.")


def input_files(patterns: Sequence[str], column: str | None, quiet: bool = False) -> tuple[list[InputFile], str]:
    """The files that match the patterns, in the order of their names, and the column of their texts.

    `column`: None for the one called `text`, or the only one of text. Raises MissingInputError if nothing matches, and
    DataError for a file without the column.
    """
    paths = matching_paths(patterns)
    if kind_of(paths[0]) is None:
        require_only_column(paths[0], column)
    files = open_files(paths, quiet)
    for file in files:
        column = text_column(file, column)
    return files, column or TEXT


def matching_paths(patterns: Sequence[str]) -> list[Path]:
    """The files that match the patterns, all of one kind, in the order of their names. Raises as `input_files`."""
    matching = (path.absolute() for pattern in patterns for path in _matching(Path(pattern)) if path.is_file())
    by_file: dict[Path, Path] = {}  # each file once, by the first of its names
    for path in sorted(matching):
        by_file.setdefault(path.resolve(), path)
    paths = [*by_file.values()]
    if not paths:
        raise MissingInputError(f"no file matches {' or '.join(patterns)}. Put patterns in quotes: 'corpus/*.parquet'.")
    first, *others = (KINDS[kind_of(path)] for path in paths)
    for path, kind in zip(paths[1:], others, strict=True):
        if kind != first:
            raise DataError(f"{path} is {kind}, but {paths[0]} is {first}. Give one kind in a call.")
    return paths


def open_files(paths: Sequence[Path], quiet: bool = False) -> list[InputFile]:
    """The files of a corpus, with where they can be cut and their fingerprints."""
    kinds = FieldKinds()
    files = [_opened(path, kinds) for path in watched(paths, "reading the list of files", "files", quiet)]
    return [replace(file, kinds=tuple(kinds.of.items())) for file in files]


def _matching(pattern: Path) -> Iterator[Path]:
    """The paths that match a pattern, or the path itself: its name, and that of this folder, may have brackets."""
    if pattern.exists():
        yield pattern
    else:
        yield from Path(pattern.anchor).glob(str(pattern.relative_to(pattern.anchor)))


def require_only_column(path: Path, given: str | None) -> None:
    """Raise DataError if another column of a plain text is given than its only one."""
    if given not in (None, TEXT):
        raise DataError(f"{path} is plain text: its only column is {TEXT!r}, got {given!r}.")


def text_column(file: InputFile, given: str | None) -> str:
    """The column of the texts of a file. Raises DataError if it does not exist, has no text, or has to be given."""
    path = file.path
    if kind_of(path) is None:
        require_only_column(path, given)
        return TEXT
    kinds, text = _parquet_columns(path) if is_parquet(path) else _json_columns(file)
    names = ", ".join(map(repr, kinds)) or "none"
    if given is None and TEXT not in text and len(text) != 1:
        raise DataError(f"{path}: which column has the texts? Give --column NAME; it has {names}.")
    name = given or (TEXT if TEXT in text else text[0])
    if name not in kinds:
        raise DataError(f"{path}: no column {name!r}; it has {names}. Give --column NAME.")
    if name not in text:
        raise DataError(f"{path}: column {name!r} is {kinds[name]}; it must be text. It has {names}.")
    return name


def _parquet_columns(path: Path) -> tuple[dict[str, Any], list[str]]:
    """The kinds of the columns of a Parquet file, and those of text."""
    import pyarrow

    with open_parquet(path) as table:
        kinds = {field.name: field.type for field in table.schema_arrow}
    return kinds, [name for name, kind in kinds.items() if _is_text(pyarrow, kind)]


def _json_columns(file: InputFile) -> tuple[dict[str, Any], list[str]]:
    kinds = dict(file.kinds)
    return kinds, [name for name, kind in kinds.items() if kind in ("string", "null")]


def cut(files: Sequence[InputFile]) -> list[Part]:
    """The parts of a corpus in the order of its rows."""
    total = sum(file.num_rows for file in files)
    steps = min(max(total // NUM_PARTS // STEP_ROWS, 1), MAX_STEPS)
    parts: list[Part] = []
    for file in files:
        size = steps * STEP_ROWS if file.can_be_cut else max(file.num_rows, 1)
        for first in range(0, file.num_rows, size):
            offset = file.offsets[first // STEP_ROWS] if file.offsets else 0
            rows = min(size, file.num_rows - first)
            parts.append(Part(len(parts), str(file.path), first, rows, offset, kinds=file.kinds))
    return parts


def read_part(part: Part, errors: Errors = "strict", columns: Sequence[str] | None = None) -> Iterator[Any]:
    """The rows of a part, as Arrow tables of up to `GROUP_ROWS` rows, with these columns, or all."""
    path = Path(part.path)
    if is_parquet(path):
        return _parquet_groups(path, part, columns)
    return _text_groups(path, part, errors) if kind_of(path) is None else _json_groups(path, part, errors, columns)


def kind_of(path: Path) -> Literal["parquet", "jsonl"] | None:
    """The kind of a file by its name; None for a text."""
    kind = format_of(path)
    return kind if kind == "parquet" or kind == "jsonl" else None


def is_parquet(path: Path) -> bool:
    """Whether a file is Parquet, by its name."""
    return kind_of(path) == "parquet"


def _is_text(pyarrow: Any, kind: Any) -> bool:
    types = pyarrow.types
    kind = kind.value_type if types.is_dictionary(kind) else kind
    return bool(types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind))


def _opened(path: Path, kinds: FieldKinds) -> InputFile:
    """A file. Adds the kinds of the fields of its JSON objects."""
    if kind_of(path) == "jsonl":
        of_file = FieldKinds()
        for number, record in jsonl_records(path, "replace", skip_blank=False):
            of_file.add(record, f"{path}:{number}")
        kinds.merge(of_file, str(path))
    return _opened_parquet(path) if is_parquet(path) else _opened_text(path)


def _opened_parquet(path: Path) -> InputFile:
    with open_parquet(path) as table:
        num_rows = int(table.metadata.num_rows)
    with open_file(path) as file:
        size = file.seek(0, 2)
        digest = hashlib.sha256(str(size).encode())
        for place in (0, max(0, size - _ENDS)):
            file.seek(place)
            digest.update(file.read(_ENDS))
    return InputFile(path, num_rows, (), size, digest.hexdigest())


def _opened_text(path: Path) -> InputFile:
    """A text, with where a part could begin, and the fingerprint of all its lines."""
    offsets: list[int] = []
    number = position = crlf_lines = 0
    digest = hashlib.sha256()
    for raw in raw_lines(path):
        if number % STEP_ROWS == 0:
            offsets.append(position)
        digest.update(raw)
        position += len(raw)
        number += 1
        crlf_lines += raw.endswith(b"\r\n")
    is_compressed = path.suffix.lower() in COMPRESSIONS
    size = path.stat().st_size
    return InputFile(path, number, () if is_compressed else tuple(offsets), size, digest.hexdigest(), crlf_lines)


def _text_groups(path: Path, part: Part, errors: Errors) -> Iterator[Any]:
    import pyarrow

    lines = read_lines(path, errors, part.offset, part.first_row)
    lines = islice(lines, part.num_skipped, part.num_skipped + part.num_rows)
    while group := list(islice(lines, GROUP_ROWS)):
        yield pyarrow.table({TEXT: pyarrow.array(group, pyarrow.string())})


def _json_groups(path: Path, part: Part, errors: Errors, columns: Sequence[str] | None) -> Iterator[Any]:
    """Groups of objects; fields that one does not have are null."""
    import pyarrow

    arrow = {"int64": pyarrow.int64(), "double": pyarrow.float64(), "bool": pyarrow.bool_()}
    kinds = {name: kind for name, kind in part.kinds if columns is None or name in columns}
    records = islice(jsonl_records(path, errors, part.offset, part.first_row, skip_blank=False), part.num_rows)
    while group := [record for _, record in islice(records, GROUP_ROWS)]:
        cells = {name: [record.get(name) for record in group] for name in kinds}
        yield pyarrow.table({
            name: pyarrow.array(
                [cell if cell is None else float(cell) for cell in cells[name]] if kind == "double" else cells[name],
                arrow.get(kind, pyarrow.string()),
            )
            for name, kind in kinds.items()
        })  # fmt: skip


def _parquet_groups(path: Path, part: Part, columns: Sequence[str] | None) -> Iterator[Any]:
    import pyarrow

    with open_parquet(path) as table:
        groups, begin = _row_groups(table.metadata, part)
        end = part.first_row + part.num_rows
        for batch in table.iter_batches(GROUP_ROWS, row_groups=groups, columns=columns):
            first = max(part.first_row - begin, 0)
            last = min(end - begin, batch.num_rows)
            begin += batch.num_rows
            if first < last:
                yield pyarrow.Table.from_batches([batch.slice(first, last - first)])
            if begin >= end:
                return


def _row_groups(metadata: Any, part: Part) -> tuple[list[int], int]:
    """The row groups that a part has rows of, and the number of the first row of the first."""
    groups: list[int] = []
    begin = start = 0
    for number in range(metadata.num_row_groups):
        end = begin + metadata.row_group(number).num_rows
        if begin < part.first_row + part.num_rows and end > part.first_row:
            start = start if groups else begin
            groups.append(number)
        begin = end
    return groups, start
