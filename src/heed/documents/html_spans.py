"""HTML as spans to translate and the markup between them.

Phrasing elements (b, a, span, ...) stay inside a span as inline tags; all others separate spans. Code, and elements
with `translate="no"` or the class `notranslate`, stay as they are.
"""

from __future__ import annotations

import html
import re
from collections.abc import Sequence
from html.parser import HTMLParser

from heed.documents.spans import Part, PartsBuilder, Span


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
    """Splits HTML into markup and spans.

    The base class loses text at some ampersands (`H&M`, `&# or <b>`). It therefore gets another character in their
    place, and entities are decoded here.
    """

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=False)
        self._ampersand = next(char for char in map(chr, range(0xE000, 0x110000)) if char not in text)
        self._text = text.replace("&", self._ampersand)
        self._parts = PartsBuilder()
        self._open: list[tuple[str, int]] = []  # open tags of the span, and their pairs
        self._kept: list[str] = []  # open elements inside a kept one, the outermost first
        self._kept_text: list[str] = []

    def read(self) -> list[Part]:
        """All parts of the text. What is never closed stays as it is."""
        self.feed(self._text)
        self.close()
        self._kept_text.append(self.rawdata)  # of a `<style>` that is never closed
        self._markup("".join(self._kept_text) if self._kept else "")
        return self._parts.parts()

    def _written(self, text: str) -> str:
        return text.replace(self._ampersand, "&")

    def _markup(self, text: str) -> None:
        """Markup that ends a span."""
        self._open = []
        self._parts.add_markup(self._written(text))

    def _single_tag(self, text: str) -> None:
        self._parts.single_tag(self._written(text))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        text = self.get_starttag_text() or ""
        if self._kept:
            self._kept_text.append(text)
            if tag not in _VOID:
                self._kept.append(tag)
        elif tag not in _VOID and (tag in _KEPT or _is_not_for_translation(attrs)):
            self._kept, self._kept_text = [tag], [text]
        elif tag not in _INLINE:
            self._markup(text)
        elif tag in _VOID:
            self._single_tag(text)
        else:
            self._open.append((tag, self._parts.open_tag(self._written(text))))

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """A tag without content: `<br/>`."""
        text = self.get_starttag_text() or ""
        if self._kept:
            self._kept_text.append(text)
        elif tag in _INLINE:
            self._single_tag(text)
        else:
            self._markup(text)

    def handle_endtag(self, tag: str) -> None:
        """A closing tag. One without an opening tag stays where it is."""
        text = f"</{tag}>"
        if self._kept:
            self._kept_text.append(text)
            if tag in self._kept:
                while self._kept.pop() != tag:
                    pass
            if not self._kept:
                self._end_kept(tag)
        elif tag not in _INLINE:
            self._markup(text)
        elif self._open and self._open[-1][0] == tag:
            self._parts.close_tag(text, self._open.pop()[1])
        else:
            self._single_tag(text)

    def _end_kept(self, tag: str) -> None:
        text, self._kept_text = "".join(self._kept_text), []
        if tag in _KEPT_INLINE or tag in _INLINE:
            self._single_tag(text)
        else:
            self._markup(text)

    def handle_data(self, data: str) -> None:
        """Text, maybe with entities: `&amp;`, `&#38;`; the `&T` of `AT&T` is not one."""
        if self._kept:
            self._kept_text.append(data)
        else:
            self._parts.add_text(html.unescape(self._written(data)))

    def handle_comment(self, data: str) -> None:
        """A comment does not separate spans."""
        self._aside(f"<!--{data}-->")

    def handle_decl(self, decl: str) -> None:
        """`<!doctype html>`"""
        self._markup(f"<!{decl}>")

    def handle_pi(self, data: str) -> None:
        """`<?xml ...>`"""
        self._markup(f"<?{data}>")

    def parse_html_declaration(self, i: int) -> int:
        """The declaration at a place of `rawdata`. What is not one, as in `<![image](x.png)`, is text."""
        if self.rawdata.startswith("<![CDATA[", i):
            at = self.rawdata.find("]]>", i)
            end = at + 3 if at >= 0 else len(self.rawdata)
            self._aside(self.rawdata[i:end])
            return end
        if self.rawdata.startswith("<![", i) and not _CONDITION.match(self.rawdata, i):
            self.handle_data("<![")
            return i + 3
        return super().parse_html_declaration(i)

    def unknown_decl(self, data: str) -> None:
        """`<![endif]>`"""
        self._aside(f"<![{data}]>")

    def _aside(self, text: str) -> None:
        if self._kept:
            self._kept_text.append(text)
        elif self._parts.is_inside:
            self._single_tag(text)
        else:
            self._markup(text)


def _is_not_for_translation(attrs: Sequence[tuple[str, str | None]]) -> bool:
    values = {name: value or "" for name, value in attrs}
    return values.get("translate", "").lower() == "no" or "notranslate" in values.get("class", "").split()


def parse(text: str) -> list[Part]:
    """Markup and spans, in order."""
    return _Reader(text).read()


def spoken_text(text: str) -> str:
    """The text to translate, without markup; a line for each span."""
    return "\n".join(part.plain for part in parse(text) if isinstance(part, Span))
