"""Which text of a segment of a translation memory is to be translated, and which codes stand in it?

Codes in pairs (`bpt` and the `ept` with the same `i`; `hi`) and codes that stand alone (`ph`, `it`, `ut`) are marks.
One that stands for a line break or a tab separates what is before it from what is behind it. What is inside a code,
a text of its own (`sub`) included, stays as it is.
"""

from __future__ import annotations

import re
from dataclasses import replace
from xml.parsers import expat

from heed.documents.inline_tags import Mark
from heed.documents.spans import Part, Parts, Stretch
from heed.text.readers.tmx import CODES, is_break

START_TAG = re.compile(rb"""<(?:[^>"']|"[^"]*"|'[^']*')*>""")
"""A tag as it is written; a value may hold what looks like its end."""


def behind_element(data: bytes, at: int, element: str) -> int:
    """The place behind an element that ends; the parser tells it itself where one tag is all, `<seg/>`."""
    return data.index(b">", at) + 1 if data.startswith(f"</{element}".encode(), at) else at


def parse_segment(segment: bytes) -> list[Part]:
    """The stretches to translate and what is between them, in their order.

    `segment`: `<seg>...</seg>`, well-formed and in UTF-8.
    """
    return _Reader(segment).read()


class _Reader:
    """Takes a segment apart."""

    def __init__(self, segment: bytes) -> None:
        self._segment = segment
        self._parts = Parts()
        self._expat = expat.ParserCreate("utf-8")
        self._expat.buffer_text = True
        self._expat.StartElementHandler = self._start
        self._expat.EndElementHandler = self._end
        self._expat.CharacterDataHandler = self._characters
        self._open: list[int] = []
        """The pair of each open `hi`; -1: one tag is all of it."""
        self._num_pairs = 0
        self._paired: dict[str, int] = {}
        """The pair of each `bpt` by its `i`."""
        self._code: tuple[str, dict[str, str], int] | None = None
        """The element that holds a code, its attributes and where it begins; None: this is text."""
        self._depth = 0
        """Elements that are open in the code, itself included."""
        self._is_break = False

    def read(self) -> list[Part]:
        """All parts of the segment."""
        self._expat.Parse(self._segment, True)
        self._parts.add_between("")
        return _without_singles(self._parts.found)

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
            is_whole = tag[0].endswith(b"/>")
            self._open.append(-1 if is_whole else self._next_pair())
            self._parts.add_mark(Mark(tag[0].decode(), 0, "alone" if is_whole else "open", self._open[-1]))

    def _end(self, element: str) -> None:
        if self._code:
            self._depth -= 1
            if not self._depth:
                self._end_code(*self._code)
                self._code = None
        elif self._open and (pair := self._open.pop()) >= 0:
            self._parts.add_mark(Mark(f"</{element}>", 0, "close", pair))

    def _end_code(self, element: str, attributes: dict[str, str], begin: int) -> None:
        text = self._segment[begin : behind_element(self._segment, self._expat.CurrentByteIndex, element)].decode()
        number = attributes.get("i", "")
        if self._is_break:
            self._parts.add_between(text)
        elif element == "bpt":
            self._paired[number] = self._next_pair()
            self._parts.add_mark(Mark(text, 0, "open", self._paired[number]))
        elif element == "ept" and number in self._paired:
            self._parts.add_mark(Mark(text, 0, "close", self._paired.pop(number)))
        else:
            self._parts.add_mark(Mark(text, 0))

    def _characters(self, text: str) -> None:
        if self._code is None:
            self._parts.add_text(text)
        elif self._depth == 1:
            self._is_break |= is_break(self._code[0], text=text)

    def _next_pair(self) -> int:
        self._num_pairs += 1
        return self._num_pairs - 1


def _without_singles(parts: list[Part]) -> list[Part]:
    """The parts, in which a code that nothing ends stands alone."""
    stretches = [part for part in parts if isinstance(part, Stretch)]
    closed = {mark.pair for stretch in stretches for mark in stretch.marks if mark.kind == "close"}
    for stretch in stretches:
        stretch.marks = [
            mark if mark.pair in closed else replace(mark, kind="alone", pair=-1) for mark in stretch.marks
        ]
    return parts
