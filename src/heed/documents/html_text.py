"""Which stretches of an HTML text are to be translated, and which tags stand in them?

Elements of a line of text (b, a, span, ...) stay inside their stretch, as marks; all others separate stretches. What
is code, or says that it is not to be translated (`translate="no"`, class `notranslate`), stays as it is.
"""

from __future__ import annotations

import html
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from html.parser import HTMLParser

from heed.decoding.gaps import gaps
from heed.documents.marks import Links, Mark, carry
from heed.text.sentences import Piece


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


_INLINE = _names(
    "a abbr b bdi bdo big cite data del dfn em font i img ins label mark q ruby rb rp rt s small span strike strong "
    "sub sup time tt u wbr"
)
_KEPT = _names("applet code iframe kbd math object pre samp script style svg template textarea var")
_KEPT_INLINE = _names("code kbd samp var svg math")
_VOID = _names("area base br col embed hr img input link meta param source track wbr")
_CONDITION = re.compile(r"<!\[\s*(?:if\b[^\[\]<>]*|endif)\s*\]>", re.IGNORECASE)
_SPACE = re.compile("[ \t\n\r\f]+")
"""What HTML calls white space; a no-break space is none."""


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


class _Reader(HTMLParser):
    """Takes an HTML text apart: markup as it is written, and stretches.

    The parser does not get to see `&`, at some of which it loses what follows (`H&M`, `&# or <b>`): another character
    stands in its place, and references are read here.
    """

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=False)
        self._and = next(char for char in map(chr, range(0xE000, 0x110000)) if char not in text)
        self._text = text.replace("&", self._and)
        self.parts: list[Part] = []
        self._open: list[tuple[str, int]] = []  # tags of the stretch that are open, and their pairs
        self._num_pairs = 0
        self._space = ""  # seen, and not yet known to stand inside of a stretch or at its edge
        self._kept: list[str] = []  # open elements inside of what is kept, the outermost first
        self._kept_text = ""

    def _stretch(self) -> Stretch:
        """The stretch that goes on, or a new one; the space before either is written."""
        space, self._space = self._space, ""
        last = self.parts[-1] if self.parts else ""
        if isinstance(last, Stretch):
            if space:
                last.add_space()
            return last
        self.parts += [space, Stretch()] if space else [Stretch()]
        stretch = self.parts[-1]
        assert isinstance(stretch, Stretch)
        return stretch

    def _markup(self, text: str) -> None:
        """What ends a stretch."""
        self._open = []
        self.parts.append(self._space + text)
        self._space = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """A tag opens."""
        text = self.get_starttag_text() or ""
        if self._kept:
            self._kept_text += text
            if tag not in _VOID:
                self._kept.append(tag)
        elif tag not in _VOID and (tag in _KEPT or _is_not_for_translation(attrs)):
            self._kept, self._kept_text = [tag], text
        elif tag not in _INLINE:
            self._markup(text)
        elif tag in _VOID:
            self._stretch().add_mark(Mark(text, 0))
        else:
            self._open.append((tag, self._num_pairs))
            self._stretch().add_mark(Mark(text, 0, "open", self._num_pairs))
            self._num_pairs += 1

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """A tag without content: `<br/>`."""
        text = self.get_starttag_text() or ""
        if self._kept:
            self._kept_text += text
        elif tag in _INLINE:
            self._stretch().add_mark(Mark(text, 0))
        else:
            self._markup(text)

    def handle_endtag(self, tag: str) -> None:
        """A tag closes; one that nobody opened stays where it is."""
        text = f"</{tag}>"
        if self._kept:
            self._kept_text += text
            if tag in self._kept:
                del self._kept[len(self._kept) - 1 - self._kept[::-1].index(tag) :]
            if not self._kept:
                self._end_kept(tag)
        elif tag not in _INLINE:
            self._markup(text)
        elif self._open and self._open[-1][0] == tag:
            self._stretch().add_mark(Mark(text, 0, "close", self._open.pop()[1]))
        else:
            self._stretch().add_mark(Mark(text, 0))

    def _end_kept(self, tag: str) -> None:
        text, self._kept_text = self._kept_text, ""
        if tag in _KEPT_INLINE or tag in _INLINE:
            self._stretch().add_mark(Mark(text, 0))
        else:
            self._markup(text)

    def handle_data(self, data: str) -> None:
        """Text, in which a reference may stand: `&amp;`, `&#38;`; `&T` of `AT&T` is none."""
        if self._kept:
            self._kept_text += data
            return
        data = html.unescape(data.replace(self._and, "&"))
        words = data.strip(" \t\n\r\f")
        before, _, after = data.partition(words) if words else (data, "", "")
        self._space += before
        if words:
            self._stretch().plain += _SPACE.sub(" ", words)
            self._space = after

    def handle_comment(self, data: str) -> None:
        """A comment separates nothing."""
        self._aside(f"<!--{data}-->")

    def handle_decl(self, decl: str) -> None:
        """`<!doctype html>`"""
        self._markup(f"<!{decl}>")

    def handle_pi(self, data: str) -> None:
        """`<?xml ...>`"""
        self._markup(f"<?{data}>")

    def parse_html_declaration(self, i: int) -> int:
        """What begins with `<!`, up to where it ends; where it is no markup, as in `<![image](x.png)`, it is text."""
        rest = self.rawdata[i:]
        if rest.startswith("<![CDATA["):
            length = rest.find("]]>") + 3
            if length < 3:
                length = len(rest)
            self._aside(rest[:length])
            return i + length
        if rest.startswith("<![") and not _CONDITION.match(rest):
            self.handle_data("<![")
            return i + 3
        return super().parse_html_declaration(i)

    def unknown_decl(self, data: str) -> None:
        """`<![endif]>`"""
        self._aside(f"<![{data}]>")

    def _aside(self, text: str) -> None:
        if self._kept:
            self._kept_text += text
        elif self.parts and isinstance(self.parts[-1], Stretch):
            self._stretch().add_mark(Mark(text, 0))
        else:
            self._markup(text)

    def read(self) -> list[Part]:
        """All parts of the text, with what was never closed as it is."""
        self.feed(self._text)
        self.close()
        self._kept_text += self.rawdata  # of a `<style>` that was never closed
        self._markup(self._kept_text if self._kept else "")
        return [self._restored(part) for part in self.parts]

    def _restored(self, part: Part) -> Part:
        """As it was written; in the text of a stretch references were read."""
        if isinstance(part, str):
            return part.replace(self._and, "&")
        part.marks = [replace(mark, text=mark.text.replace(self._and, "&")) for mark in part.marks]
        return part


def _is_not_for_translation(attrs: Sequence[tuple[str, str | None]]) -> bool:
    found = {name: value or "" for name, value in attrs}
    return found.get("translate", "").lower() == "no" or "notranslate" in found.get("class", "").split()


def parse(text: str) -> list[Part]:
    """Markup, and the stretches to translate, in their order."""
    return _Reader(text).read()


def spoken_text(text: str) -> str:
    """What is to be translated, without the markup, a line for each stretch."""
    return "\n".join(part.plain for part in parse(text) if isinstance(part, Stretch))


def escape(text: str) -> str:
    """Text as HTML writes it."""
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
