"""Reader of the lines of text files, with advice for bytes that are not UTF-8."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from heed.core.errors import DataError
from heed.text.archives import COMPRESSIONS, raw_lines, shown_name

Errors = Literal["strict", "replace"]
"""For bytes that are not UTF-8, and in TMX characters that XML forbids: raise an error, or put U+FFFD instead."""

BYTE_ORDER_MARK = "\ufeff"
UTF_16_MARKS = (b"\xff\xfe", b"\xfe\xff")
UTF_16_LE = "UTF-16LE"
UTF_16_BE = "UTF-16BE"

_NOT_TEXT = {
    b"\x1f\x8b": "a .gz archive: give it a name that ends in .gz, and heed decompresses it",
    b"\xfd7zXZ\x00": "an .xz archive: give it a name that ends in .xz, and heed decompresses it",
    b"\x28\xb5\x2f\xfd": "a .zst archive: give it a name that ends in .zst, and heed decompresses it",
    b"PK\x03\x04": 'a zip archive or a spreadsheet: unzip it, or save the sheet as "CSV UTF-8"',
    b"\xd0\xcf\x11\xe0": 'an Office document: save it as plain text, or the sheet as "CSV UTF-8"',
    b"%PDF-": "a PDF: export the text first",
    b"BZh": "a .bz2 archive: decompress it first",
}
"""File types by their first bytes, with advice."""


def read_lines(path: str | Path, errors: Errors = "strict", offset: int = 0, num_before: int = 0) -> Iterator[str]:
    """The lines of a text file without their line ends, one in memory at a time.

    Only the carriage return of a CRLF and a byte-order mark at the start of the file are removed. The last line needs
    no line end. `offset`: of a plain file, the byte to begin at, after `num_before` lines. Raises what `open_bytes`
    raises, and DataError for bytes that are not UTF-8.
    """
    decoder = LineDecoder(shown_name(path), errors, num_before)
    for raw in raw_lines(path, offset, num_before):
        end = -2 if raw.endswith(b"\r\n") else -1 if raw.endswith(b"\n") else None
        yield decoder.decode(raw[:end])


def utf_16_of(first: bytes) -> str:
    """The UTF-16 of a first line, by its NUL bytes, which come first in UTF-16BE; empty if it has none."""
    if b"\0" not in first:
        return ""
    return UTF_16_BE if first[::2].count(0) > first[1::2].count(0) else UTF_16_LE


class LineDecoder:
    """Decodes the lines of a file in order, without the byte-order mark at its start."""

    def __init__(self, name: str, errors: Errors, num_before: int = 0) -> None:
        """`name`: the file's name in messages; `num_before`: the number of lines before the first one."""
        self._name = name
        self._errors = errors
        self._number = num_before
        self._utf_16 = UTF_16_LE
        """The variety, if the file is UTF-16."""
        self._is_utf_8 = False
        """Whether a line was valid UTF-8 with characters other than ASCII, which rarely happens by chance."""

    def decode(self, raw: bytes) -> str:
        """The text of the next line. Raises DataError, with the line number, for bytes that are not UTF-8."""
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
        what = next((what for magic, what in _NOT_TEXT.items() if start.startswith(magic)), "")
        if what:
            return f"{self._name} is not text but {what}."
        message = f"{self._name}:{self._number}: byte {at + 1} is not valid UTF-8 (0x{raw[at]:02X})"
        return f"{message}{self._advice(raw, start.startswith(UTF_16_MARKS))}"

    def _advice(self, raw: bytes, has_mark: bool) -> str:
        """The likely cause of a byte that is not UTF-8, and what to do."""
        suffixes = Path(self._name).suffixes
        unpack = "decompress it and " if suffixes[-1:] and suffixes[-1].lower() in COMPRESSIONS else ""
        if has_mark:
            tsv = " Or give it a name that ends in .csv: heed reads CSV in UTF-16 too." if ".tsv" in suffixes else ""
            return f". The file is UTF-16: {unpack}convert it with `iconv -f UTF-16 -t UTF-8`.{tsv}"
        if b"\0" in raw:
            return f". NUL bytes mean UTF-16: {unpack}convert it with `iconv -f {self._utf_16} -t UTF-8`."
        if self._is_utf_8:
            return (
                ", but earlier lines are. If files in two encodings were joined, "
                f"{unpack}convert only the rest, `tail -n +{self._number} F | iconv -f WINDOWS-1252 -t UTF-8`, and "
                "append it to the lines before. If only a few lines are damaged, fix them or pass --errors replace."
            )
        if ".csv" in suffixes:
            return '. Save the sheet as "CSV UTF-8", or pass --errors replace.'
        return (
            f". If the file is Windows-1252, {unpack}convert it with `iconv -f WINDOWS-1252 -t UTF-8`; otherwise pass "
            "--errors replace."
        )
