"""How do lines come out of a text file, and what is said about bytes that are no text?"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from heed.core.errors import DataError
from heed.text.archives import DAMAGED, damage, open_bytes, shown_name

Errors = Literal["strict", "replace"]
"""What happens to bytes that are not UTF-8, and in TMX to what XML forbids: an error, or U+FFFD in their place."""

BYTE_ORDER_MARK = "\ufeff"
UTF_16_MARKS = (b"\xff\xfe", b"\xfe\xff")

_NO_TEXT = {
    b"\x1f\x8b": "a .gz archive: let its name end in .gz, and heed unpacks it",
    b"\xfd7zXZ\x00": "an .xz archive: let its name end in .xz, and heed unpacks it",
    b"\x28\xb5\x2f\xfd": "a .zst archive: let its name end in .zst, and heed unpacks it",
    b"PK\x03\x04": 'a zip archive or a spreadsheet: unpack it, or save the sheet as "CSV UTF-8"',
    b"\xd0\xcf\x11\xe0": 'an Office document: save it as plain text, or the sheet as "CSV UTF-8"',
    b"%PDF-": "a PDF: export the text first",
    b"BZh": "a .bz2 archive: unpack it",
}
"""What a file is that begins with these bytes, and what to do."""


def read_lines(path: str | Path, errors: Errors = "strict") -> Iterator[str]:
    """The lines of a text file, without their ends; one line in memory at a time.

    The carriage return of a CRLF and one byte-order mark at the start of the file are taken off, nothing else is; a
    last line needs no line end. Raises what `open_bytes` raises, and DataError for bytes that are not UTF-8.
    """
    name = shown_name(path)
    for number, raw in enumerate(raw_lines(path), start=1):
        end = -2 if raw.endswith(b"\r\n") else -1 if raw.endswith(b"\n") else None
        line = decode(raw[:end], name, number, errors)
        yield line.removeprefix(BYTE_ORDER_MARK) if number == 1 else line


def raw_lines(path: str | Path) -> Iterator[bytes]:
    """The bytes of each line with its end; raises what `open_bytes` raises."""
    number = 0
    with open_bytes(path) as file:
        try:
            for raw in file:
                yield raw
                number += 1
        except DAMAGED as error:
            raise DataError(damage(shown_name(path), error, number)) from error


def decode(raw: bytes, name: str, number: int, errors: Errors) -> str:
    """The text of line `number` of the file that messages call `name`; raises DataError for bytes that are no UTF-8."""
    try:
        return raw.decode("utf-8", errors)
    except UnicodeDecodeError as error:
        start = raw if number == 1 else b""
        what = next((what for magic, what in _NO_TEXT.items() if start.startswith(magic)), "")
        if what:
            raise DataError(f"{name} is no text but {what}.") from error
        message = f"{name}:{number}: byte {error.start + 1} is not valid UTF-8 (0x{raw[error.start]:02X})."
        if start.startswith(UTF_16_MARKS):
            tsv = " Or let its name end in .csv, where heed takes UTF-16 too." if ".tsv" in Path(name).suffixes else ""
            advice = f"The file is UTF-16: convert it with `iconv -f UTF-16 -t UTF-8`.{tsv}"
        elif ".csv" in Path(name).suffixes:
            advice = 'Save the sheet as "CSV UTF-8", or pass --errors replace.'
        else:
            advice = "Is the file Latin-1? Convert it with `iconv -f LATIN1 -t UTF-8`, or pass --errors replace."
        raise DataError(f"{message} {advice}") from error
