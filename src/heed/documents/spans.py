"""What of a marked-up text is translated in one piece, and how is it written again?

A *stretch* is text with marks in it, the codes of HTML or of a translation memory's segment; what is between two
stretches stays as it is written.
"""

from __future__ import annotations

import html
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from heed.decoding.gaps import gaps
from heed.documents.inline_tags import Links, Mark, carry
from heed.text.sentences import Piece

_BLANKS = " \t\n\r\f"
"""What HTML and XML call white space; a no-break space is none."""
_SPACE = re.compile(f"[{_BLANKS}]+")


@dataclass
class Stretch:
    """Text in one piece, its entities read and its white space made single spaces, and the marks in it."""

    plain: str = ""
    marks: list[Mark] = field(default_factory=list)

    def add_space(self) -> None:
        """A space; behind another one it is dropped, but for the marks between them, which remember it."""
        if self.plain and not self.plain.endswith(" "):
            self.plain += " "
            return
        end = len(self.plain)
        self.marks = [replace(m, glued_right=False) if m.place == end else m for m in self.marks]

    def add_mark(self, mark: Mark) -> None:
        """A mark at the end of what is there."""
        is_word = mark.kind == "alone" and not mark.text.startswith("<!--")  # the spaces beside it count
        glued_left = not is_word or not self.plain.endswith(" ")
        self.marks.append(replace(mark, place=len(self.plain), glued_left=glued_left))


Part = str | Stretch


class Parts:
    """Puts stretches and what is between them together, as a reader comes upon them."""

    def __init__(self) -> None:
        self.found: list[Part] = []
        self._space = ""  # seen, and not yet known to stand inside of a stretch or at its edge

    @property
    def is_inside(self) -> bool:
        """Whether a stretch goes on."""
        return bool(self.found) and isinstance(self.found[-1], Stretch)

    def add_text(self, text: str) -> None:
        """Text, its references read."""
        words = text.strip(_BLANKS)
        before, _, after = text.partition(words) if words else (text, "", "")
        self._space += before
        if words:
            self._stretch().plain += _SPACE.sub(" ", words)
            self._space = after

    def add_mark(self, mark: Mark) -> None:
        """A mark, which begins a stretch where there is none."""
        self._stretch().add_mark(mark)

    def add_between(self, text: str) -> None:
        """What ends a stretch, as it is written."""
        self.found.append(self._space + text)
        self._space = ""

    def _stretch(self) -> Stretch:
        """The stretch that goes on, or a new one; the space before either is written."""
        space, self._space = self._space, ""
        last = self.found[-1] if self.found else ""
        if isinstance(last, Stretch):
            if space:
                last.add_space()
            return last
        self.found += [space, stretch := Stretch()] if space else [stretch := Stretch()]
        return stretch


def escape(text: str) -> str:
    """Text as HTML and XML write it."""
    return html.escape(text, quote=False)


def write_stretch(
    stretch: Stretch, pieces: Sequence[Piece], translations: Sequence[str], links: Sequence[Links]
) -> str:
    """A stretch translated: `pieces` of its plain text, and for each sentence a translation and its links."""
    out, start, number, marks = "", 0, 0, list(stretch.marks)
    for piece, gap in zip(pieces, gaps(pieces, translations), strict=True):
        end = start + len(piece.text)
        inside = _taken(marks, start, end, piece.is_sentence)
        local = [replace(mark, place=mark.place - start) for mark in inside]
        if piece.is_sentence:
            out += gap + carry(local, piece.text, translations[number], links[number], escape)
            number += 1
        else:
            out += _spelled(local, gap)
        start = end
    return out + "".join(mark.text for mark in marks)


def _taken(marks: list[Mark], start: int, end: int, is_sentence: bool) -> list[Mark]:
    """Take from the marks those of a piece: at its end, a sentence has those that close or stand alone."""
    taken = []
    while marks and (marks[0].place < end or (is_sentence and marks[0].place == end and marks[0].kind != "open")):
        taken.append(marks.pop(0))
    return taken


def _spelled(marks: Sequence[Mark], space: str) -> str:
    """White space with the marks in it."""
    out, done = "", 0
    for mark in marks:
        out += escape(space[done : mark.place]) + mark.text
        done = mark.place
    return out + escape(space[done:])
