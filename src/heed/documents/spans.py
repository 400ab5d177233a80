"""Spans: the parts of a marked-up text that are translated in one piece.

A span is plain text with inline tags: those of HTML, codes of a translation memory, runs of formatting of a document.
The markup between two spans stays as it is. Markup may contain texts of its own (`nested_texts.py`).
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate
from typing import Literal

from heed.documents.inline_tags import InlineTag, Links, insert_tags
from heed.inference.sentences import whitespace
from heed.text.language.scripts import is_unseparated
from heed.text.sentences import Piece
from heed.text.words import is_in_word

_SPACES = " \t\n\r\f"
"""White space of HTML and XML, which a no-break space is not."""
_SPACE = re.compile(f"[{_SPACES}]+")
_LINE_BREAK = re.compile("[\n\r\f]")
_MARKUP = re.compile(r"<!--.*?-->|<[^<>]*>", re.DOTALL)
_MARK = re.compile(r"(?P<bracket>[(\[])?(?:\d{1,3}(?:[-–,] ?\d{1,3}){0,4}|[*†‡§¶]{1,3})(?(bracket)[)\]])")
"""The text of a reference to a note."""
_RAISED = re.compile(r"^<(?:sup|a)\b|\bvertAlign\b[^<>]*superscript|\bbaseline=[\"']\d", re.IGNORECASE)
"""Tags of HTML, Word and PowerPoint that raise a text, or link it."""
_CLOSING = tuple('.,;:!?)]"”“’»।॥،؛؟۔።、。，；：！？）」』】》')


def escape(text: str) -> str:
    """Text as HTML and XML write it."""
    return html.escape(text, quote=False)


def escape_xml(text: str) -> str:
    """Text as XML writes it: a bare carriage return would be read as a line feed."""
    return escape(text).replace("\r", "&#13;")


@dataclass(frozen=True)
class Span:
    """Text with its entities decoded, and its inline tags in order."""

    plain: str = ""
    tags: Sequence[InlineTag] = field(default_factory=list)
    escape: Callable[[str], str] = escape
    """Writes text as the format writes it."""


Part = str | Span
"""Markup as it is written, or a span."""


def has_text(parts: Sequence[Part]) -> bool:
    """Whether there is text outside of codes."""
    return any(isinstance(part, Span) and part.plain.strip() for part in parts)


class PartsBuilder:
    """Collects the spans of a text and the markup between them, in the order of reading, each in constant time.

    White space inside a span is reduced to single spaces, unless it counts in this format.
    """

    def __init__(self, keeps_space: bool = False, escape: Callable[[str], str] = escape) -> None:
        self._keeps_space = keeps_space
        self._escape = escape
        self.is_inside = False
        """Whether a span is open."""
        self._parts: list[Part] = []
        self._space = ""  # read, and not yet known to be inside a span
        self._num_pairs = 0
        self._chunks: list[str] = []  # of the open span: words, and single spaces
        self._length = 0
        self._tags: list[InlineTag] = []
        self._num_settled = 0  # tags before the last character of the text, or known to be followed by a space

    def add_text(self, text: str) -> None:
        """Add text with its entities decoded."""
        words = text.strip(_SPACES)
        before, _, after = text.partition(words) if words else (text, "", "")
        self._space += before
        if words:
            self._open_span()
            self._append(words if self._keeps_space else _SPACE.sub(" ", words))
            self._space = after

    def open_tag(self, text: str) -> int:
        """Add the first tag of a pair, and return the number of the pair."""
        self._num_pairs += 1
        self._add_tag(text, "open", self._num_pairs - 1)
        return self._num_pairs - 1

    def close_tag(self, text: str, pair: int) -> None:
        """Add the second tag of a pair."""
        self._add_tag(text, "close", pair)

    def single_tag(self, text: str) -> None:
        """Add a tag without a partner."""
        self._add_tag(text, "single", -1)

    def add_markup(self, text: str) -> None:
        """Add markup that ends a span, as it is written."""
        self._close_span()
        self._parts.append(self._escape(self._space) + text)
        self._space = ""

    def parts(self) -> list[Part]:
        """All parts so far."""
        self._close_span()
        return self._parts

    def _append(self, text: str) -> None:
        self._chunks.append(text)
        self._length += len(text)
        self._num_settled = len(self._tags)

    def _add_tag(self, text: str, kind: Literal["open", "close", "single"], pair: int) -> None:
        self._open_span()
        stands_for_word = kind == "single" and not text.startswith("<!--")  # the spaces around it count
        is_after_text = bool(self._chunks) and self._num_settled == len(self._tags)
        follows_space = is_after_text and self._chunks[-1].isspace()
        is_text = kind == "single" and bool(_MARKUP.sub("", text).strip())
        glued_left = not (stands_for_word and follows_space)
        self._tags.append(InlineTag(text, self._length, kind, pair, glued_left, is_text=is_text))

    def _open_span(self) -> None:
        """Open a span if none is open, after the space that was read before."""
        space, self._space = self._space, ""
        if self.is_inside:
            if space:
                self._add_space(space if self._keeps_space else " ")
            return
        self._parts += [self._escape(space)] if space else []
        self.is_inside = True
        self._chunks, self._length, self._tags, self._num_settled = [], 0, [], 0

    def _add_space(self, space: str) -> None:
        """Add a space. After another space, or at the beginning, only the tag before it remembers it.

        A line break always stays in the text, where it ends a sentence.
        """
        if (self._chunks and not self._chunks[-1].isspace()) or _LINE_BREAK.search(space):
            self._append(space)
            return
        if self._num_settled < len(self._tags):
            self._tags[-1] = replace(self._tags[-1], glued_right=False, space=space)
        self._num_settled = len(self._tags)

    def _close_span(self) -> None:
        if self.is_inside:
            plain, tags = _with_marks_joined("".join(self._chunks), self._tags, self._escape)
            self._parts.append(Span(plain, _with_empty_pairs_joined(plain, tags), self._escape))
            self.is_inside = False


def _with_marks_joined(
    plain: str, tags: Sequence[InlineTag], escape: Callable[[str], str]
) -> tuple[str, list[InlineTag]]:
    """The text without the marks that refer to notes, which become single tags.

    These are raised numbers and signs after a word (`<sup>1</sup>`), and raised or linked numbers in brackets
    (`<a>[2]</a>`).
    """
    joined: list[InlineTag] = []
    kept, done, number = "", 0, 0
    closes = {tag.pair: place for place, tag in enumerate(tags) if tag.kind == "close"}
    num_raised = [*accumulate((_RAISED.search(tag.text) is not None for tag in tags), initial=0)]
    while number < len(tags):
        tag = tags[number]
        last = closes.get(tag.pair, number) if tag.kind == "open" else number
        begin, end = tag.place, tags[last].place
        kept += plain[done:begin]
        done = begin
        is_raised = num_raised[last + 1] > num_raised[number]
        if last > number and is_raised and _is_mark(plain, begin, end):
            written = ""
            for each in tags[number : last + 1]:
                written += escape(plain[done : each.place]) + each.text
                done = each.place
            is_followed = any(each.place == end and each.kind == "single" for each in tags[last + 1 : last + 2])
            spaced = [
                begin == 0 or plain[begin - 1].isspace(),
                (end == len(plain) or plain[end].isspace()) and not is_followed,
            ]
            is_dropped = all(spaced) and end < len(plain) and not _LINE_BREAK.match(plain, end)  # of two, one stays
            space = plain[end] if is_dropped else " "
            joined.append(InlineTag(written, len(kept), "single", -1, not spaced[0], not spaced[1], space=space))
            done += is_dropped
            number = last + 1
        else:
            joined.append(replace(tag, place=len(kept)))
            number += 1
    return kept + plain[done:], joined


def _is_mark(plain: str, begin: int, end: int) -> bool:
    """Whether a range refers to a note: in brackets, or a number or sign next to a word without a space.

    Another word may follow without a space in scripts that write none, and a particle in Korean.
    """
    match = _MARK.fullmatch(plain, begin, end)
    before, after = plain[max(begin - 1, 0) : begin], plain[end : end + 1]
    follows_letter = before.isalpha() or (is_in_word(before) and not before.isalnum())
    is_symbol = begin == 0 and after.isupper()  # of a footnote, in what LibreOffice writes
    is_inside_word = is_in_word(after) and not is_unseparated(after)
    is_after_word = (follows_letter or plain.endswith(_CLOSING, 0, begin)) and not is_inside_word
    return match is not None and (match["bracket"] is not None or is_after_word or is_symbol)


def _with_empty_pairs_joined(plain: str, tags: Sequence[InlineTag]) -> list[InlineTag]:
    """The tags, with a pair that has no text inside as one single tag: a link around an image."""
    joined: list[InlineTag] = []
    opened: dict[int, int] = {}
    for tag in tags:
        joined.append(tag)
        if tag.kind == "open":
            opened[tag.pair] = len(joined) - 1
        elif tag.kind == "close" and (first := opened.get(tag.pair, len(joined))) < len(joined):
            some = joined[first:]
            if some[0].pair == tag.pair and some[0].place == tag.place:
                follows_tag = first > 0 and joined[first - 1].place == tag.place
                stands_for_word = any(each.kind == "single" and not each.text.startswith("<!--") for each in some)
                follows_space = stands_for_word and not follows_tag and plain[: tag.place][-1:].isspace()
                glued = not follows_space and all(each.glued_left for each in some), tag.glued_right
                text = "".join(each.text + ("" if each.glued_right else each.space) for each in some[:-1]) + tag.text
                joined[first:] = [InlineTag(text, tag.place, "single", -1, *glued, space=tag.space)]
    return joined


def without_unclosed(parts: list[Part]) -> list[Part]:
    """The parts, with every tag that is opened and never closed as a single one."""
    closed = {tag.pair for part in parts if isinstance(part, Span) for tag in part.tags if tag.kind == "close"}
    return [
        replace(part, tags=[tag if tag.pair in closed else replace(tag, kind="single", pair=-1) for tag in part.tags])
        if isinstance(part, Span)
        else part
        for part in parts
    ]


def write_span(span: Span, pieces: Sequence[Piece], translations: Sequence[str], links: Sequence[Links]) -> str:
    """A translated span. `pieces`: of its plain text; each sentence among them has a translation and word links."""
    out, start, number, first = "", 0, 0, 0
    for piece, gap in zip(pieces, whitespace(pieces, translations), strict=True):
        end = start + len(piece.text)
        last = _end_of_tags(span.tags, first, end, piece.is_sentence)
        tags = [replace(tag, place=tag.place - start) for tag in span.tags[first:last]]
        if piece.is_sentence:
            out += span.escape(gap) + insert_tags(tags, piece.text, translations[number], links[number], span.escape)
            number += 1
        else:
            out += _with_tags(gap, tags, span.escape)
        start, first = end, last
    return out + _with_tags("", span.tags[first:], span.escape)


def _end_of_tags(tags: Sequence[InlineTag], first: int, end: int, is_sentence: bool) -> int:
    """The index after the last tag of a piece. A tag at its end belongs to a sentence if it closes or is single."""
    while first < len(tags) and (
        tags[first].place < end or (is_sentence and tags[first].place == end and tags[first].kind != "open")
    ):
        first += 1
    return first


def _with_tags(space: str, tags: Sequence[InlineTag], escape: Callable[[str], str]) -> str:
    """White space with tags in it."""
    out, done = "", 0
    for number, tag in enumerate(tags):
        out += escape(space[done : tag.place]) + tag.text
        done = tag.place
        if not tag.glued_right and any(each.place == done for each in tags[number + 1 : number + 2]):
            out += tag.space
    return out + escape(space[done:])
