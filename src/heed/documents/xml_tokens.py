"""Tokens of XML, each as it is written, so that what is not translated can be written again byte by byte.

The parser is the standard library's expat. A document type is refused, so entities can neither be declared nor lead to
other files. XML libraries that build a tree write all of it anew, with other prefixes, quotes and line ends.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Literal
from xml.parsers import expat

from heed.core.errors import DataError
from heed.text.readers.tmx import encoding_of

MAX_DEPTH = 400
"""Of elements inside elements. Word's deepest documents have some sixty."""
_BLOCK = 1 << 14
_SEPARATOR = " "
Kind = Literal["open", "close", "text", "other"]


@dataclass(frozen=True, slots=True)
class XmlToken:
    """A token. Of an empty element, such as `<a/>`, the closing one has no text of its own."""

    kind: Kind
    raw: str
    """As it is written."""
    name: str = ""
    """Of an element: its namespace, a space, its name; only the name without a namespace."""
    attributes: dict[str, str] = field(default_factory=dict)
    text: str = ""
    """Of text: as it is read."""

    @property
    def is_empty(self) -> bool:
        """Whether an opening tag is that of an empty element."""
        return self.raw.endswith("/>")


def decoded_xml(data: bytes, name: str) -> tuple[str, str]:
    """The text of a file of XML with its byte-order mark, and its encoding."""
    encoding = encoding_of(data, name).removesuffix("-sig")
    try:
        return data.decode(encoding), encoding
    except UnicodeDecodeError as error:
        raise DataError(f"{name}: byte {error.start + 1} is not valid {encoding}. Save the file again.") from error


def xml_tokens(text: str, name: str, checked: Callable[[Iterator[int]], Iterator[int]] = iter) -> Iterator[XmlToken]:
    """The tokens of a text, in order. Their raw texts together are the text. Raises DataError."""
    return _Tokenizer(text.encode(), name).tokens(checked)


class _Tokenizer:
    def __init__(self, data: bytes, name: str) -> None:
        self._data = data
        self._name = name
        self._depth = 0
        self._found: list[XmlToken] = []
        self._last: tuple[int, Kind, str, dict[str, str], str] = (0, "other", "", {}, "")
        self._expat = parser = expat.ParserCreate("utf-8", _SEPARATOR)
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = lambda text: self._add("text", text=text)
        parser.DefaultHandler = lambda text: self._add("other")
        parser.StartDoctypeDeclHandler = self._refuse

    def tokens(self, checked: Callable[[Iterator[int]], Iterator[int]]) -> Iterator[XmlToken]:
        try:
            for begin in checked(iter(range(0, len(self._data), _BLOCK))):
                self._expat.Parse(self._data[begin : begin + _BLOCK], False)
                yield from self._found
                self._found = []
            self._expat.Parse(b"", True)
        except expat.ExpatError as error:
            reason = expat.ErrorString(error.code)
            raise DataError(f"{self._name}:{error.lineno}: not well-formed XML ({reason}).") from error
        self._flush(len(self._data))
        yield from self._found

    def _flush(self, end: int) -> None:
        begin, kind, name, attributes, text = self._last
        raw = self._data[begin:end].decode()
        if raw or kind == "close":
            self._found.append(XmlToken(kind, raw, name, attributes, text))

    def _add(self, kind: Kind, name: str = "", attributes: dict[str, str] | None = None, text: str = "") -> None:
        at = self._expat.CurrentByteIndex
        self._flush(at)
        self._last = at, kind, name, attributes or {}, text

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise DataError(f"{self._name}: its elements are nested more than {MAX_DEPTH} deep.")
        self._add("open", name, attributes)

    def _end(self, name: str) -> None:
        self._depth -= 1
        self._add("close", name)

    def _refuse(self, *_: object) -> None:
        raise DataError(f"{self._name}: it has a document type (<!DOCTYPE>), which heed does not read. Remove it.")
