"""How do lines come out of a text file, and what is said about bytes that are no text?"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from heed.core.errors import DataError
from heed.text.archives import COMPRESSIONS, DAMAGED, damage, open_bytes, shown_name

Errors = Literal["strict", "replace"]
"""What happens to bytes that are not UTF-8, and in TMX to what XML forbids: an error, or U+FFFD in their place."""

BYTE_ORDER_MARK = "\ufeff"
UTF_16_MARKS = (b"\xff\xfe", b"\xfe\xff")
UTF_16_LE = "UTF-16LE"
UTF_16_BE = "UTF-16BE"

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
    decoder = LineDecoder(shown_name(path), errors)
    for raw in raw_lines(path):
        end = -2 if raw.endswith(b"\r\n") else -1 if raw.endswith(b"\n") else None
        yield decoder.decode(raw[:end])


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


def utf_16_of(first: bytes) -> str:
    """Which UTF-16 a first line is in, by its NUL bytes: those of Latin text come first in UTF-16BE. Empty: no NUL."""
    if b"\0" not in first:
        return ""
    return UTF_16_BE if first[::2].count(0) > first[1::2].count(0) else UTF_16_LE


class LineDecoder:
    """The text of a file's lines, one after the other, without the byte-order mark at its start."""

    def __init__(self, name: str, errors: Errors) -> None:
        """`name`: what messages call the file."""
        self._name = name
        self._errors = errors
        self._number = 0
        self._utf_16 = UTF_16_LE
        """Which one it is, if it is any."""
        self._is_utf_8 = False
        """Whether a line had more than ASCII, which hardly ever is valid UTF-8 by chance."""

    def decode(self, raw: bytes) -> str:
        """The text of the next line; raises DataError, with the line's number, for bytes that are no UTF-8."""
        self._number += 1
        if self._number == 1:
            self._utf_16 = utf_16_of(raw) or UTF_16_LE
        try:
            line = raw.decode("utf-8", self._errors)
        except UnicodeDecodeError as error:
            raise DataError(self._refusal(raw, error.start)) from error
        self._is_utf_8 = self._is_utf_8 or not line.isascii()
        return line.removeprefix(BYTE_ORDER_MARK) if self._number == 1 else line

    def _refusal(self, raw: bytes, at: int) -> str:
        start = raw if self._number == 1 else b""
        what = next((what for magic, what in _NO_TEXT.items() if start.startswith(magic)), "")
        if what:
            return f"{self._name} is no text but {what}."
        message = f"{self._name}:{self._number}: byte {at + 1} is not valid UTF-8 (0x{raw[at]:02X})"
        return f"{message}{self._advice(raw, start.startswith(UTF_16_MARKS))}"

    def _advice(self, raw: bytes, has_mark: bool) -> str:
        """What follows the place of a byte that is no UTF-8: why that may be, and what to do."""
        suffixes = Path(self._name).suffixes
        unpack = "unpack it and " if suffixes[-1:] and suffixes[-1].lower() in COMPRESSIONS else ""
        if has_mark:
            tsv = " Or let its name end in .csv, where heed takes UTF-16 too." if ".tsv" in suffixes else ""
            return f". The file is UTF-16: {unpack}convert it with `iconv -f UTF-16 -t UTF-8`.{tsv}"
        if b"\0" in raw:
            return f". NUL bytes as here are in UTF-16: {unpack}convert it with `iconv -f {self._utf_16} -t UTF-8`."
        if self._is_utf_8:
            return (
                ", but lines before it are: were files in two encodings joined? Then "
                f"{unpack}convert only the rest, `tail -n +{self._number} F | iconv -f WINDOWS-1252 -t UTF-8`, and put "
                "it behind the lines before. If only a few lines are damaged, mend them or pass --errors replace."
            )
        if ".csv" in suffixes:
            return '. Save the sheet as "CSV UTF-8", or pass --errors replace.'
        return (
            f". Is the file Windows-1252? Then {unpack}convert it with `iconv -f WINDOWS-1252 -t UTF-8`, or pass "
            "--errors replace."
        )
