"""How do lines and sentence pairs come out of the files that people have, and what is said about a bad file?

A line ends at "\\n" and nowhere else: U+2028, U+0085 and a lone carriage return are part of the text, so that line k
is the same line for heed, for `wc -l` and for the tool that made the file.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain, zip_longest
from pathlib import Path
from typing import Any, Literal, TypedDict

from heed.core.errors import DataError, UsageError
from heed.core.files import sha256_file
from heed.text.archives import COMPRESSIONS, DAMAGED, damage, open_bytes, open_file, shown_name

Errors = Literal["strict", "replace"]
"""What happens to bytes that are not UTF-8: an error, or U+FFFD in their place."""

Format = Literal["tsv", "jsonl", "parquet"]

FORMATS: dict[str, Format] = {
    ".tsv": "tsv",
    ".tab": "tsv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".parquet": "parquet",
}
JSON_KINDS = {
    "NoneType": "null",
    "bool": "true or false",
    "int": "a number",
    "float": "a number",
    "str": "a string",
    "list": "a list",
    "dict": "an object",
}
BYTE_ORDER_MARK = "\ufeff"


def read_lines(path: str | Path, errors: Errors = "strict") -> Iterator[str]:
    """The lines of a text file, without their ends; one line in memory at a time.

    The carriage return of a CRLF and one byte-order mark at the start of the file are taken off, nothing else is; a
    last line needs no line end. Raises what `open_bytes` raises, and DataError for bytes that are not UTF-8.
    """
    name = shown_name(path)
    number = 0
    with open_bytes(path) as file:
        try:
            for number, raw in enumerate(file, start=1):
                line = _decode(raw, name, number, errors)
                yield line.removeprefix(BYTE_ORDER_MARK) if number == 1 else line
        except DAMAGED as error:
            raise DataError(damage(name, error, number)) from error


def _decode(raw: bytes, name: str, number: int, errors: Errors) -> str:
    end = -2 if raw.endswith(b"\r\n") else -1 if raw.endswith(b"\n") else None
    try:
        return raw[:end].decode("utf-8", errors)
    except UnicodeDecodeError as error:
        message = f"{name}:{number}: byte {error.start + 1} is not valid UTF-8 (0x{raw[error.start]:02X})."
        encoding = ("UTF-16", "UTF-16") if raw[:2] in (b"\xff\xfe", b"\xfe\xff") else ("Latin-1", "LATIN1")
        advice = f"Is the file {encoding[0]}? Convert it with `iconv -f {encoding[1]} -t UTF-8`"
        raise DataError(f"{message} {advice}, or pass --errors replace.") from error


def read_text(path: str | Path, errors: Errors = "strict") -> Iterator[str]:
    """The segments of a monolingual text, one a line; as `read_lines`, but refuses a file of records (UsageError)."""
    if (kind := _format_of(Path(path))) in ("jsonl", "parquet"):
        raise UsageError(f"{path} is {kind}; give plain text with one sentence or paragraph a line.")
    return read_lines(path, errors)


def _format_of(path: Path) -> Format | None:
    plain = path.with_suffix("") if path.suffix.lower() in COMPRESSIONS else path
    return FORMATS.get(plain.suffix.lower())


@dataclass(frozen=True)
class CorpusFiles:
    """Where sentence pairs are: `src` and `tgt`, two files with as many lines; or `pairs`, one file of records.

    Raises UsageError when that is not what was given, or when the format cannot be told.
    """

    src: str | Path | None = None
    tgt: str | Path | None = None
    pairs: str | Path | None = None
    format: Format | None = None
    """Of `pairs`; None: by the name, `corpus.tsv.gz` being TSV."""
    src_column: int = 1
    """TSV: the source's column, counted from 1."""
    tgt_column: int = 2
    src_field: str = "src"
    """JSONL and Parquet: the source's field."""
    tgt_field: str = "tgt"

    def __post_init__(self) -> None:
        given = [self.src is not None, self.tgt is not None, self.pairs is not None]
        if given not in ([True, True, False], [False, False, True]):
            raise UsageError("Give two files, one for the source and one for the target, or one file of pairs.")
        if str(self.src) == "-" and str(self.tgt) == "-":
            raise UsageError("Standard input (-) can be the source or the target, not both.")
        if min(self.src_column, self.tgt_column) < 1 or self.src_column == self.tgt_column:
            raise UsageError(
                f"The columns of source and target are {self.src_column} and {self.tgt_column}; "
                "they must be two different numbers, counted from 1."
            )
        if self.pairs is not None and self.record_format == "parquet":
            if str(self.pairs) == "-":
                raise UsageError("Parquet cannot be read from standard input; give the file.")
            if Path(self.pairs).suffix.lower() in COMPRESSIONS:
                raise UsageError(f"{self.pairs}: Parquet is compressed inside; unpack the file first.")

    @property
    def record_format(self) -> Format:
        """The format of `pairs`."""
        found = self.format or _format_of(Path(self.pairs or ""))
        if found is None:
            raise UsageError(f"{self.pairs}: cannot tell the format by the name. Allowed are tsv, jsonl and parquet.")
        return found

    @property
    def paths(self) -> dict[str, str | Path]:
        """The files by their part: `src` and `tgt`, or `pairs`."""
        parts = {"src": self.src, "tgt": self.tgt, "pairs": self.pairs}
        return {part: path for part, path in parts.items() if path is not None}


def read_pairs(files: CorpusFiles, errors: Errors = "strict") -> Iterator[tuple[str, str]]:
    """The sentence pairs, streamed: (source, target) in the order of the files.

    Raises MissingInputError for a file that cannot be read; DataError, with file and line, for a line that is not as
    it should be, and for two files whose numbers of lines differ (found at the end of the shorter one).
    """
    if files.src is not None and files.tgt is not None:
        return _from_two_files(files.src, files.tgt, errors)
    return RECORD_READERS[files.record_format](files, errors)


def _from_two_files(src: str | Path, tgt: str | Path, errors: Errors) -> Iterator[tuple[str, str]]:
    src_lines, tgt_lines = read_lines(src, errors), read_lines(tgt, errors)
    for number, (src_line, tgt_line) in enumerate(zip_longest(src_lines, tgt_lines), start=1):
        if src_line is None or tgt_line is None:
            rest = sum(1 for _ in src_lines) + sum(1 for _ in tgt_lines)
            counts = [number - 1, number + rest]
            src_count, tgt_count = counts if src_line is None else reversed(counts)
            raise DataError(
                f"{shown_name(src)} has {src_count:,} lines, {shown_name(tgt)} has {tgt_count:,}: line k of one must "
                "be the translation of line k of the other. Find where they part (`paste` shows both side by side) or "
                "export both again."
            )
        yield src_line, tgt_line


def _from_tsv(files: CorpusFiles, errors: Errors) -> Iterator[tuple[str, str]]:
    path = files.pairs or ""
    needed = max(files.src_column, files.tgt_column)
    for number, line in enumerate(read_lines(path, errors), start=1):
        columns = line.split("\t")
        if len(columns) < needed:
            raise DataError(
                f"{shown_name(path)}:{number}: {len(columns)} column{'s' * (len(columns) > 1)}, but the source is in "
                f"column {files.src_column} and the target in column {files.tgt_column}. Columns are parted by one tab "
                "each."
            )
        yield columns[files.src_column - 1], columns[files.tgt_column - 1]


def _from_jsonl(files: CorpusFiles, errors: Errors) -> Iterator[tuple[str, str]]:
    path = files.pairs or ""
    for number, line in enumerate(read_lines(path, errors), start=1):
        place = f"{shown_name(path)}:{number}"
        try:
            record = json.loads(line)
        except (ValueError, RecursionError) as error:
            reason = error.msg if isinstance(error, json.JSONDecodeError) else "nested too deeply or a number too long"
            raise DataError(f"{place}: not JSON ({reason}). Each line must be one JSON object.") from error
        if not isinstance(record, dict):
            raise DataError(f"{place}: this is {_kind(record)}; each line must be one JSON object.")
        yield _pair_of(record, files, place, errors)


def _pair_of(record: dict[str, Any], files: CorpusFiles, place: str, errors: Errors) -> tuple[str, str]:
    return _text_of(record, files.src_field, place, errors), _text_of(record, files.tgt_field, place, errors)


def _text_of(record: dict[str, Any], field: str, place: str, errors: Errors) -> str:
    if field not in record:
        raise DataError(f"{place}: no field {field!r}; it has {', '.join(map(repr, record)) or 'none'}.")
    value = record[field]
    if not isinstance(value, str):
        raise DataError(f"{place}: field {field!r} is {_kind(value)}; it must be a string.")
    try:
        value.encode("utf-8")
    except UnicodeEncodeError as error:  # JSON can spell half of a surrogate pair, which is no character
        if errors == "strict":
            code = ord(value[error.start])
            advice = "Repair the line or pass --errors replace."
            raise DataError(f"{place}: field {field!r} holds \\u{code:04x}, half a character. {advice}") from error
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return value


def _kind(value: object) -> str:
    name = type(value).__name__
    return JSON_KINDS.get(name, f"a {name}")


def _from_parquet(files: CorpusFiles, errors: Errors) -> Iterator[tuple[str, str]]:
    path = files.pairs or ""
    fields = [files.src_field, files.tgt_field]
    with _open_parquet(path) as table:
        names = table.schema_arrow.names
        for field in fields:
            if field not in names:
                raise DataError(f"{path}: no field {field!r}; it has {', '.join(map(repr, names)) or 'none'}.")
        batches = (batch.to_pylist() for batch in table.iter_batches(columns=fields))
        for number, record in enumerate(chain.from_iterable(batches), start=1):
            yield _pair_of(record, files, f"{path}, row {number}", errors)


@contextmanager
def _open_parquet(path: str | Path) -> Iterator[Any]:
    with open_file(Path(path)) as file:
        try:
            import pyarrow
            import pyarrow.parquet
        except ImportError as error:
            raise UsageError(
                f"{path}: reading Parquet needs pyarrow. Install it with: pip install heed[parquet]"
            ) from error
        try:
            with pyarrow.parquet.ParquetFile(file) as table:
                yield table
        except (pyarrow.ArrowException, OSError) as error:
            raise DataError(f"{path}: not a readable Parquet file ({str(error).splitlines()[0]}).") from error


RECORD_READERS: dict[Format, Callable[[CorpusFiles, Errors], Iterator[tuple[str, str]]]] = {
    "tsv": _from_tsv,
    "jsonl": _from_jsonl,
    "parquet": _from_parquet,
}


class FileFingerprint(TypedDict):
    """What a file was when it was read: enough to tell later whether another is the same."""

    name: str
    bytes: int
    sha256: str
    lines: int
    crlf_lines: int


def fingerprint(files: CorpusFiles) -> dict[str, FileFingerprint]:
    """The fingerprint of each file of a corpus, by its part: `src` and `tgt`, or `pairs`."""
    parquet = files.pairs is not None and files.record_format == "parquet"
    return {part: fingerprint_file(path, parquet) for part, path in files.paths.items()}


def fingerprint_file(path: str | Path, parquet: bool = False) -> FileFingerprint:
    """Size and SHA-256 of the file as it lies on the disk, and its lines (a Parquet file: its rows) once unpacked.

    Raises UsageError for standard input, which can be read only once, and what `open_bytes` raises.
    """
    if str(path) == "-":
        raise UsageError("Standard input cannot be read twice; write it to a file first.")
    with open_file(Path(path)):  # its errors are the plain ones
        sha256 = sha256_file(path)
    lines, crlf_lines = _count_rows(path) if parquet else _count_lines(path)
    return FileFingerprint(
        name=Path(path).name, bytes=Path(path).stat().st_size, sha256=sha256, lines=lines, crlf_lines=crlf_lines
    )


def _count_lines(path: str | Path) -> tuple[int, int]:
    lines = crlf_lines = 0
    with open_bytes(path) as file:
        for raw in file:
            lines += 1
            crlf_lines += raw.endswith(b"\r\n")
    return lines, crlf_lines


def _count_rows(path: str | Path) -> tuple[int, int]:
    with _open_parquet(path) as table:
        return table.metadata.num_rows, 0
