"""HTML as spans to translate and the markup between them.

Phrasing elements (b, a, span, ...) stay inside a span as inline tags; all others separate spans. Code, readings above
words (rt), and elements with `translate="no"`, with the class `notranslate` or in another language, stay as they are.
So do tags of templates.
"""

from __future__ import annotations

import html
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace

from heed.documents.html_language import SourceLanguage
from heed.documents.html_tokens import HtmlToken, html_tokens
from heed.documents.spans import Part, PartsBuilder, Span
from heed.documents.templates import BRANCH, OUTPUTS


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


_INLINE = _names(
    "a abbr b bdi bdo big cite data del dfn em font i img ins label mark q ruby rb rp rt s small span strike strong "
    "sub sup time tt u wbr"
)
_KEPT = _names("applet code iframe kbd math object pre rp rt samp script style svg template textarea var xmp")
_KEPT_INLINE = _names("code kbd samp var svg math")
_VOID = _names("area base br col embed hr img input link meta param source track wbr")
_ENDED_BY = {
    "p": _names(
        "address article aside blockquote details div dl fieldset figcaption figure footer form h1 h2 h3 h4 h5 h6 "
        "header hr main menu nav ol p pre section table ul"
    ),
    "li": _names("li"),
    "dt": _names("dt dd"),
    "dd": _names("dt dd"),
    "td": _names("td th tr tbody tfoot"),
    "th": _names("td th tr tbody tfoot"),
    "tr": _names("tr tbody tfoot"),
    "thead": _names("tbody tfoot"),
    "tbody": _names("tbody tfoot"),
    "option": _names("option optgroup"),
    "optgroup": _names("optgroup"),
    "rp": _names("rb rt rp"),
    "rt": _names("rb rt rp"),
}
"""Elements whose closing tag may be left out, and the opening tags that end them."""


class _Reader:
    """Splits HTML into markup and spans."""

    def __init__(self, written: Callable[[HtmlToken], str] | None, language: SourceLanguage) -> None:
        self._written = written
        self._language = language
        self._parts = PartsBuilder()
        self._open: list[tuple[str, int]] = []  # open tags of the span, and their pairs
        self._kept: list[str] = []  # open elements inside a kept one, the outermost first
        self._num_kept = Counter[str]()
        self._num_kept_blocks = 0  # open elements inside a kept one, and that one, that are not inline
        self._kept_text: list[str] = []

    def add(self, token: HtmlToken) -> None:
        """Read a token."""
        if self._kept and self._ends_kept(token):
            self._end_kept()
        if self._kept:
            self._add_kept(token)
        elif token.kind == "text":
            self._parts.add_text(html.unescape(token.text))
        elif token.kind == "open":
            self._start_tag(token)
        elif token.kind == "close":
            self._end_tag(token)
        elif token.kind == "template":
            self._template(token)
        elif token.kind == "aside" and self._parts.is_inside:  # it does not separate spans
            self._parts.single_tag(token.text)
        else:
            self._markup(token.text)

    def parts(self) -> list[Part]:
        """All parts so far. A kept element that is never closed stays as it is."""
        self._markup("".join(self._kept_text) if self._kept else "")
        return self._parts.parts()

    def _markup(self, text: str) -> None:
        """Markup that ends a span."""
        self._open = []
        self._parts.add_markup(text)

    def _template(self, token: HtmlToken) -> None:
        """A template's tag. One with its lines to itself separates spans, as does one that only controls others."""
        stands_alone = not self._parts.is_inside and not token.text.startswith(OUTPUTS)
        if stands_alone or (token.is_line and not self._open) or BRANCH.match(token.text):
            self._markup(token.text)
        else:
            self._parts.single_tag(token.text)

    def _start_tag(self, token: HtmlToken) -> None:
        is_single = token.tag in _VOID or token.is_empty
        values = token.attributes()
        is_kept = _is_not_for_translation(values) or self._language.excludes(token.tag, values)
        if self._written and not is_kept:
            token = replace(token, text=self._written(token))
        if not is_single and (token.tag in _KEPT or is_kept):
            self._keep(token)
        elif token.tag == "br":  # elements may go on behind it
            self._parts.add_markup(token.text)
        elif token.tag not in _INLINE:
            self._markup(token.text)
        elif is_single:
            self._parts.single_tag(token.text)
        else:
            self._open.append((token.tag, self._parts.open_tag(token.text)))

    def _end_tag(self, token: HtmlToken) -> None:
        """A closing tag. One without an opening tag stays where it is."""
        if token.tag not in _INLINE:
            self._markup(token.text)
        elif self._open and self._open[-1][0] == token.tag:
            pair = self._open.pop()[1]
            if self._parts.is_inside:
                self._parts.close_tag(token.text, pair)
            else:  # behind a line break
                self._parts.add_markup(token.text)
        else:
            self._parts.single_tag(token.text)

    def _keep(self, token: HtmlToken) -> None:
        """A tag of an element that is kept, or of one inside it."""
        self._kept.append(token.tag)
        self._num_kept[token.tag] += 1
        self._num_kept_blocks += token.tag not in _INLINE
        self._kept_text.append(token.text)

    def _add_kept(self, token: HtmlToken) -> None:
        if token.kind == "open" and token.tag not in _VOID and not token.is_empty:
            self._keep(token)
            return
        self._kept_text.append(token.text)
        if token.kind != "close" or not self._num_kept[token.tag]:
            return
        closed = ""
        while closed != token.tag:
            closed = self._kept.pop()
            self._num_kept[closed] -= 1
            self._num_kept_blocks -= closed not in _INLINE
        if not self._kept:
            self._write_kept(token.tag)

    def _ends_kept(self, token: HtmlToken) -> bool:
        """Whether a token ends the outermost kept element, whose closing tag is left out."""
        tag = self._kept[0]
        if self._num_kept_blocks > (tag not in _INLINE) or not (tag in _ENDED_BY or tag in _INLINE):
            return False
        if token.kind == "open":
            return token.tag in _ENDED_BY.get(tag, ())
        is_in_line = token.tag in _INLINE and token.tag != "ruby"
        is_of_parent = not is_in_line and token.tag != "br" and not self._num_kept[token.tag]
        return token.kind == "close" and is_of_parent and (token.tag != "p" or tag in _INLINE)

    def _end_kept(self) -> None:
        tag = self._kept[0]
        self._kept, self._num_kept, self._num_kept_blocks = [], Counter(), 0
        self._write_kept(tag)

    def _write_kept(self, tag: str) -> None:
        text, self._kept_text = "".join(self._kept_text), []
        if tag in _KEPT_INLINE or tag in _INLINE:
            self._parts.single_tag(text)
        else:
            self._markup(text)


def _is_not_for_translation(values: Mapping[str, str]) -> bool:
    return values.get("translate", "").lower() == "no" or "notranslate" in values.get("class", "").split()


def _go_on() -> None:
    """The default check: never stop."""


def parse(
    text: str, check: Callable[[], None] = _go_on, written: Callable[[HtmlToken], str] | None = None,
    language: SourceLanguage | None = None,
) -> list[Part]:  # fmt: skip
    """Markup and spans, in order. `check` is called at each token, and may raise to stop.

    `written` returns an opening tag as it is to be written. Elements in other languages than `language` stay.
    """
    reader = _Reader(written, language or SourceLanguage())
    for token in html_tokens(text):
        check()
        reader.add(token)
    return reader.parts()


def spoken_text(text: str, check: Callable[[], None] = _go_on) -> str:
    """The text to translate, without markup; a line for each span."""
    return "\n".join(part.plain for part in parse(text, check) if isinstance(part, Span))
