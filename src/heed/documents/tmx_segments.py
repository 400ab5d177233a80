"""Segments of translation memories (TMX) as spans.

Paired codes (`bpt` and the `ept` with the same `i`; `hi`) and single codes (`ph`, `it`, `ut`) are inline tags. A code
for a line break or a tab separates two spans. The content of a code, including subflows (`sub`), stays as it is.
"""

from __future__ import annotations

import re
from dataclasses import replace
from xml.parsers import expat

from heed.documents.inline_tags import InlineTag
from heed.documents.spans import Part, PartsBuilder, Span
from heed.text.readers.tmx_parser import CODES, is_break

START_TAG = re.compile(rb"""<(?:[^>"']|"[^"]*"|'[^']*')*>""")
"""A tag. An attribute may contain a `>`."""


def after_element(data: bytes, at: int, element: str) -> int:
    """The place after an element that ends at `at`. For `<seg/>` the parser reports that place itself."""
    return data.index(b">", at) + 1 if data.startswith(f"</{element}".encode(), at) else at


def parse_segment(segment: bytes) -> list[Part]:
    """Markup and spans, in order.

    `segment`: `<seg>...</seg>`, well-formed and in UTF-8.
    """
    return _Reader(segment).read()


class _Reader:
    """Splits a segment into markup and spans."""

    def __init__(self, segment: bytes) -> None:
        self._segment = segment
        self._parts = PartsBuilder()
        self._expat = expat.ParserCreate("utf-8")
        self._expat.buffer_text = True
        self._expat.StartElementHandler = self._start
        self._expat.EndElementHandler = self._end
        self._expat.CharacterDataHandler = self._characters
        self._open: list[int] = []
        """The pair of each open `hi`; -1 for `<hi/>`."""
        self._num_pairs = 0
        self._paired: dict[str, int] = {}
        """The pair of each `bpt` by its `i`."""
        self._code: tuple[str, dict[str, str], int] | None = None
        """Name, attributes and place of the open code; None in text."""
        self._depth = 0
        """Open elements in the code, including itself."""
        self._is_break = False

    def read(self) -> list[Part]:
        """All parts of the segment."""
        self._expat.Parse(self._segment, True)
        self._parts.add_markup("")
        return _without_unclosed(self._parts.parts())

    def _start(self, element: str, attributes: dict[str, str]) -> None:
        at = self._expat.CurrentByteIndex
        if self._code:
            self._depth += 1
        elif element in CODES:
            self._code, self._depth = (element, attributes, at), 1
            self._is_break = is_break(element, attributes.get("type", ""))
        elif at:  # not `seg` itself
            tag = START_TAG.match(self._segment, at)
            assert tag is not None
            is_empty = tag[0].endswith(b"/>")
            self._open.append(-1 if is_empty else self._next_pair())
            self._parts.add_tag(InlineTag(tag[0].decode(), 0, "single" if is_empty else "open", self._open[-1]))

    def _end(self, element: str) -> None:
        if self._code:
            self._depth -= 1
            if not self._depth:
                self._end_code(*self._code)
                self._code = None
        elif self._open and (pair := self._open.pop()) >= 0:
            self._parts.add_tag(InlineTag(f"</{element}>", 0, "close", pair))

    def _end_code(self, element: str, attributes: dict[str, str], begin: int) -> None:
        text = self._segment[begin : after_element(self._segment, self._expat.CurrentByteIndex, element)].decode()
        number = attributes.get("i", "")
        if self._is_break:
            self._parts.add_markup(text)
        elif element == "bpt":
            self._paired[number] = self._next_pair()
            self._parts.add_tag(InlineTag(text, 0, "open", self._paired[number]))
        elif element == "ept" and number in self._paired:
            self._parts.add_tag(InlineTag(text, 0, "close", self._paired.pop(number)))
        else:
            self._parts.add_tag(InlineTag(text, 0))

    def _characters(self, text: str) -> None:
        if self._code is None:
            self._parts.add_text(text)
        elif self._depth == 1:
            self._is_break |= is_break(self._code[0], text=text)

    def _next_pair(self) -> int:
        self._num_pairs += 1
        return self._num_pairs - 1


def _without_unclosed(parts: list[Part]) -> list[Part]:
    """The parts, with every code that is never closed as a single one."""
    closed = {tag.pair for part in parts if isinstance(part, Span) for tag in part.tags if tag.kind == "close"}
    return [
        Span(part.plain, [tag if tag.pair in closed else replace(tag, kind="single", pair=-1) for tag in part.tags])
        if isinstance(part, Span)
        else part
        for part in parts
    ]
