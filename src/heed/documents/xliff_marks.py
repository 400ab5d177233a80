"""Marked parts of an XLIFF 1.2 source: `<mrk mtype="seg" mid="1">`, and those that a target lacks."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

_MARK = re.compile(r"""<(/?)(?:[\w.-]+:)?mrk\b((?:[^<>"']|"[^"]*"|'[^']*')*)>""")
_NUMBER = re.compile(r"""\smid\s*=\s*["']([^"']*)["']""")
_IS_SEGMENT = re.compile(r"""\smtype\s*=\s*["']seg["']""")
_MARKUP = re.compile(r"<[^<>]*>")


@dataclass(frozen=True)
class Marked:
    """A marked part: its number, its content, and the place of the content."""

    number: str
    inner: str
    begin: int
    end: int

    @property
    def is_empty(self) -> bool:
        """Whether it has no text."""
        return is_blank(self.inner)


def is_blank(text: str) -> bool:
    """Whether there is no text outside of markup."""
    return not _MARKUP.sub("", text).strip()


def marked(text: str) -> list[Marked]:
    """The marked parts that are not inside others."""
    found: list[Marked] = []
    opened: list[tuple[str, int]] = []
    num_around = 0
    for mark in _MARK.finditer(text):
        number = _NUMBER.search(mark[2]) if _IS_SEGMENT.search(mark[2]) else None
        if mark[1]:
            name, begin = opened.pop() if opened else ("", 0)
            num_around -= bool(name)
            if name and not num_around:
                found.append(Marked(name, text[begin : mark.start()], begin, mark.start()))
        elif not mark[2].endswith("/"):
            opened.append((number[1] if number else "", mark.end()))
            num_around += bool(opened[-1][0])
    return found


def missing(source: str, target: str) -> list[Marked]:
    """The parts of a source that a target with others of them lacks; none if it has none, or parts of its own."""
    parts = marked(source)
    filled = {each.number for each in marked(target) if not each.is_empty}
    numbers = [each.number for each in parts]
    if not filled or not filled <= {*numbers} or len({*numbers}) < len(numbers):
        return []
    return [each for each in parts if each.number not in filled and not each.is_empty]


def completed(source: str, target: str, gaps: Sequence[Marked], translations: Sequence[str]) -> str:
    """A target with the translations of the parts that it lacked, marked and separated as in the source."""
    content = {each.number: each.inner for each in marked(target) if not each.is_empty}
    content |= {gap.number: text for gap, text in zip(gaps, translations, strict=True)}
    out, done = "", 0
    for each in marked(source):
        out += source[done : each.begin] + content.get(each.number, each.inner)
        done = each.end
    return out + source[done:]
