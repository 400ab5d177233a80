"""Spans: the parts of a marked-up text that are translated in one piece.

A span is plain text with inline tags, of HTML or of a segment of a translation memory. The markup between two spans
stays as it is.
"""

from __future__ import annotations

import html
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from heed.decoding.sentences import whitespace
from heed.documents.inline_tags import InlineTag, Links, insert_tags
from heed.text.sentences import Piece

_SPACES = " \t\n\r\f"
"""White space of HTML and XML, which a no-break space is not."""
_SPACE = re.compile(f"[{_SPACES}]+")


@dataclass(frozen=True)
class Span:
    """Text with its entities decoded and its white space reduced to single spaces, and its inline tags in order."""

    plain: str = ""
    tags: Sequence[InlineTag] = field(default_factory=list)


Part = str | Span
"""Markup as it is written, or a span."""


class _OpenSpan:
    """A span that is being read. Each step takes constant time."""

    def __init__(self) -> None:
        self._chunks: list[str] = []
        self._length = 0
        self._tags: list[InlineTag] = []
        self._num_settled = 0
        """Tags before the last character of the text, or known to be followed by a space."""

    @property
    def _ends_with_space(self) -> bool:
        return bool(self._chunks) and self._chunks[-1] == " "

    def add_text(self, text: str) -> None:
        """Text without white space at its ends, or a space."""
        self._chunks.append(text)
        self._length += len(text)
        self._num_settled = len(self._tags)

    def add_space(self) -> None:
        """A space. After another space, or at the beginning, only the tags in between remember it."""
        if self._chunks and not self._ends_with_space:
            self.add_text(" ")
            return
        for number in range(self._num_settled, len(self._tags)):
            self._tags[number] = replace(self._tags[number], glued_right=False)
        self._num_settled = len(self._tags)

    def add_tag(self, tag: InlineTag) -> None:
        """A tag at the end of the text so far."""
        stands_for_word = tag.kind == "single" and not tag.text.startswith("<!--")  # the spaces around it count
        glued_left = not stands_for_word or not self._ends_with_space
        self._tags.append(replace(tag, place=self._length, glued_left=glued_left))

    def closed(self) -> Span:
        return Span("".join(self._chunks), self._tags)


class PartsBuilder:
    """Collects the spans of a text and the markup between them, in the order of reading."""

    def __init__(self) -> None:
        self._parts: list[Part] = []
        self._span: _OpenSpan | None = None
        self._space = ""  # read, and not yet known to be inside a span

    @property
    def is_inside(self) -> bool:
        """Whether a span is open."""
        return self._span is not None

    def add_text(self, text: str) -> None:
        """Text with its entities decoded."""
        words = text.strip(_SPACES)
        before, _, after = text.partition(words) if words else (text, "", "")
        self._space += before
        if words:
            self._open_span().add_text(_SPACE.sub(" ", words))
            self._space = after

    def add_tag(self, tag: InlineTag) -> None:
        """An inline tag, which opens a span if none is open."""
        self._open_span().add_tag(tag)

    def add_markup(self, text: str) -> None:
        """Markup that ends a span, as it is written."""
        self._close_span()
        self._parts.append(self._space + text)
        self._space = ""

    def parts(self) -> list[Part]:
        """All parts so far."""
        self._close_span()
        return self._parts

    def _open_span(self) -> _OpenSpan:
        """The open span or a new one, after the space that was read before."""
        space, self._space = self._space, ""
        if self._span is None:
            self._parts += [space] if space else []
            self._span = _OpenSpan()
        elif space:
            self._span.add_space()
        return self._span

    def _close_span(self) -> None:
        if self._span is not None:
            self._parts.append(self._span.closed())
            self._span = None


def escape(text: str) -> str:
    """Text as HTML and XML write it."""
    return html.escape(text, quote=False)


def write_span(span: Span, pieces: Sequence[Piece], translations: Sequence[str], links: Sequence[Links]) -> str:
    """A translated span. `pieces`: of its plain text; each sentence among them has a translation and word links."""
    out, start, number, first = "", 0, 0, 0
    for piece, gap in zip(pieces, whitespace(pieces, translations), strict=True):
        end = start + len(piece.text)
        last = _end_of_tags(span.tags, first, end, piece.is_sentence)
        tags = [replace(tag, place=tag.place - start) for tag in span.tags[first:last]]
        if piece.is_sentence:
            out += gap + insert_tags(tags, piece.text, translations[number], links[number], escape)
            number += 1
        else:
            out += _with_tags(gap, tags)
        start, first = end, last
    return out + "".join(tag.text for tag in span.tags[first:])


def _end_of_tags(tags: Sequence[InlineTag], first: int, end: int, is_sentence: bool) -> int:
    """The index after the last tag of a piece. A tag at its end belongs to a sentence if it closes or is single."""
    while first < len(tags) and (
        tags[first].place < end or (is_sentence and tags[first].place == end and tags[first].kind != "open")
    ):
        first += 1
    return first


def _with_tags(space: str, tags: Sequence[InlineTag]) -> str:
    """White space with tags in it."""
    out, done = "", 0
    for tag in tags:
        out += escape(space[done : tag.place]) + tag.text
        done = tag.place
    return out + escape(space[done:])
