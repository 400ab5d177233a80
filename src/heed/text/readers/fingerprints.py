"""What was a file when it was read, so that it can be told later whether another one is the same?"""

from __future__ import annotations

from pathlib import Path
from typing import TypedDict

from heed.core.errors import UsageError
from heed.core.files import sha256_file
from heed.text.archives import is_stream, open_bytes, open_file, shown_name
from heed.text.readers.corpus import CorpusFiles, Format
from heed.text.readers.records import count_rows


class FileFingerprint(TypedDict):
    """What a file was when it was read: enough to tell later whether another is the same."""

    name: str
    bytes: int
    sha256: str
    lines: int
    crlf_lines: int


def fingerprint(files: CorpusFiles) -> dict[str, FileFingerprint]:
    """The fingerprint of each file of a corpus, by its part: `src` and `tgt`, or `pairs`."""
    records = files.record_format if files.pairs is not None else None
    return {part: fingerprint_file(path, records) for part, path in files.paths.items()}


def fingerprint_file(path: str | Path, records: Format | None = None) -> FileFingerprint:
    """Size and SHA-256 of the file as it lies on the disk, and its lines (a Parquet file: its rows) once unpacked.

    `records` is the format of a file of pairs: CSV and TMX have line ends of any kind, which are not counted.

    Raises UsageError for standard input and pipes, which can be read only once, and what `open_bytes` raises.
    """
    if is_stream(path):
        raise UsageError(f"{shown_name(path)} cannot be read twice: write it to a file first.")
    with open_file(Path(path)):  # its errors are the plain ones
        sha256 = sha256_file(path)
    lines, crlf_lines = (count_rows(path), 0) if records == "parquet" else _count_lines(path)
    crlf_lines = 0 if records in ("csv", "tmx") else crlf_lines
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
