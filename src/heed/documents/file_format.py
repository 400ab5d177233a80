"""Formats of files: what the table in `heed.documents.formats` has for each.

A format reads a file, gives its texts to a translator, and writes the file again with everything else as it was.
"""

from __future__ import annotations

import codecs
import io
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from heed.core.errors import DataError
from heed.documents.text_translator import TextTranslator
from heed.text.readers.columns import Sides
from heed.text.readers.lines import UTF_16_MARKS, Errors, LineDecoder, utf_16_of

Notify = Callable[[str], None]
"""Gets a message about what will be translated."""
SAMPLE = 100_000
"""Bytes of a file that are enough to detect its language."""
_MARKS = {"utf-8-sig": codecs.BOM_UTF8, "utf-16-le": codecs.BOM_UTF16_LE, "utf-16-be": codecs.BOM_UTF16_BE}


@dataclass(frozen=True)
class FileContext:
    """A file's name for messages, its languages and columns, and how it is read."""

    name: str
    sides: Sides
    errors: Errors = "strict"
    notify: Notify = lambda message: None
    most_unpacked: int = 256 << 20
    """Bytes to which the texts of a packed file may unpack."""


@dataclass(frozen=True)
class FileFormat(ABC):
    """A format. `is_markup`: its text has tags. `is_bilingual`: it may have texts in two languages.

    `has_columns`: it is a table. `is_packed`: it is not text, so a terminal cannot show it.
    """

    is_markup: bool = False
    is_bilingual: bool = False
    has_columns: bool = False
    is_packed: ClassVar[bool] = False

    @abstractmethod
    def translated(self, data: bytes, translator: TextTranslator, context: FileContext) -> bytes:
        """The translated file. Raises DataError and UsageError."""

    @abstractmethod
    def sample(self, data: bytes, name: str) -> str:
        """The beginning of the text, for language detection; undecodable bytes become U+FFFD."""


@dataclass(frozen=True)
class TextFormat(FileFormat):
    """A format of text. A file keeps its encoding, its byte-order mark and its line ends."""

    write: Callable[[str, TextTranslator, FileContext], str] = lambda text, translator, context: text
    """Translates the text of a file."""
    declared: Callable[[bytes, str], str] | None = None
    """The encoding that a file declares; without it, the encoding is UTF-8, or UTF-16 that is recognised."""
    mended: Callable[[str], str] = lambda text: text
    """Replaces what the format forbids, for `--errors replace`."""
    in_utf_8: Callable[[str], str] | None = None
    """Declares UTF-8 in a text with characters that its encoding lacks; without it, they become references."""

    def translated(self, data: bytes, translator: TextTranslator, context: FileContext) -> bytes:
        """The translated file, in its own encoding, or in UTF-8 if that lacks a character and has no references."""
        name, errors = context.name, context.errors
        encoding = self._encoding_of(data, name)
        mark = _MARKS.get(encoding, b"") if data.startswith(tuple(_MARKS.values())) else b""
        text = _decoded(data[len(mark) :], encoding, name, errors)
        text = self.write(self.mended(text) if errors == "replace" else text, translator, context)
        encoding = encoding.removesuffix("-sig")
        if self.in_utf_8 is None:
            return mark + text.encode(encoding, "xmlcharrefreplace")
        try:
            return mark + text.encode(encoding)
        except UnicodeEncodeError:
            return self.in_utf_8(text).encode()

    def sample(self, data: bytes, name: str) -> str:
        """The beginning of the text."""
        return data[:SAMPLE].decode(self._encoding_of(data, name), "replace")

    def _encoding_of(self, data: bytes, name: str) -> str:
        if self.declared and not data.startswith(UTF_16_MARKS):
            return self.declared(data, name)
        return recognised_encoding(data)


def recognised_encoding(data: bytes) -> str:
    """UTF-16, by its byte-order mark or its zeros, or else UTF-8, which may have a mark."""
    if data.startswith(UTF_16_MARKS):
        return "utf-16-le" if data.startswith(codecs.BOM_UTF16_LE) else "utf-16-be"
    start = data[:1000]
    return utf_16_of(start).lower().replace("utf-16", "utf-16-") if 4 * start.count(0) > len(start) else "utf-8-sig"


def _decoded(data: bytes, encoding: str, name: str, errors: Errors) -> str:
    try:
        return data.decode(encoding, errors)
    except UnicodeDecodeError as error:
        if encoding == "utf-8-sig":  # which line is wrong, and why
            return "".join(map(LineDecoder(name, errors).decode, io.BytesIO(data)))
        raise DataError(
            f"{name}: byte {error.start + 1} is not valid {encoding.upper()}. Save the file again."
        ) from error
