"""Which stretches of an HTML text are to be translated, and which tags stand in them?

Elements of a line of text (b, a, span, ...) stay inside their stretch, as marks; all others separate stretches. What
is code, or says that it is not to be translated (`translate="no"`, class `notranslate`), stays as it is.
"""

from __future__ import annotations

import html
import re
from collections.abc import Sequence
from dataclasses import replace
from html.parser import HTMLParser

from heed.documents.inline_tags import Mark
from heed.documents.spans import Part, Parts, Stretch


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


class _Reader(HTMLParser):
    """Takes an HTML text apart: markup as it is written, and stretches.

    The parser does not get to see `&`, at some of which it loses what follows (`H&M`, `&# or <b>`): another character
    stands in its place, and references are read here.
    """

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=False)
        self._and = next(char for char in map(chr, range(0xE000, 0x110000)) if char not in text)
        self._text = text.replace("&", self._and)
        self._parts = Parts()
        self._open: list[tuple[str, int]] = []  # tags of the stretch that are open, and their pairs
        self._num_pairs = 0
        self._kept: list[str] = []  # open elements inside of what is kept, the outermost first
        self._kept_text = ""

    def _markup(self, text: str) -> None:
        """What ends a stretch."""
        self._open = []
        self._parts.add_between(text)

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
            self._parts.add_mark(Mark(text, 0))
        else:
            self._open.append((tag, self._num_pairs))
            self._parts.add_mark(Mark(text, 0, "open", self._num_pairs))
            self._num_pairs += 1

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """A tag without content: `<br/>`."""
        text = self.get_starttag_text() or ""
        if self._kept:
            self._kept_text += text
        elif tag in _INLINE:
            self._parts.add_mark(Mark(text, 0))
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
            self._parts.add_mark(Mark(text, 0, "close", self._open.pop()[1]))
        else:
            self._parts.add_mark(Mark(text, 0))

    def _end_kept(self, tag: str) -> None:
        text, self._kept_text = self._kept_text, ""
        if tag in _KEPT_INLINE or tag in _INLINE:
            self._parts.add_mark(Mark(text, 0))
        else:
            self._markup(text)

    def handle_data(self, data: str) -> None:
        """Text, in which a reference may stand: `&amp;`, `&#38;`; `&T` of `AT&T` is none."""
        if self._kept:
            self._kept_text += data
            return
        self._parts.add_text(html.unescape(data.replace(self._and, "&")))

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
        elif self._parts.is_inside:
            self._parts.add_mark(Mark(text, 0))
        else:
            self._markup(text)

    def read(self) -> list[Part]:
        """All parts of the text, with what was never closed as it is."""
        self.feed(self._text)
        self.close()
        self._kept_text += self.rawdata  # of a `<style>` that was never closed
        self._markup(self._kept_text if self._kept else "")
        return [self._restored(part) for part in self._parts.found]

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
