"""Tokens of HTML: text, tags, comments, declarations, and tags of templates, each as it is written.

Reading takes time proportional to the length of the text, whatever the text is: no part of it is searched again after
a search has failed there. What is never closed is text.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from heed.documents.templates import IN_TAG, TEMPLATE

Kind = Literal["text", "open", "close", "aside", "declaration", "template"]

_NAME = re.compile(r"[a-zA-Z][^\s/>\x00]*")
_CONDITION = re.compile(r"<!\[\s*(?:if\b[^\[\]<>]*|endif\s*)\]>", re.IGNORECASE)
_COMMENT_END = re.compile(r"--\s*>")
_BEGIN = re.compile(r"<|\{[{%#]")
"""Of what is not text."""
_DELIMITER = re.compile(rf">|=\s*[\"']|{IN_TAG}")
"""Of a tag: its end, or the beginning of a value in quotes. A template's tag inside it is neither."""
_ATTRIBUTE = re.compile(
    rf"{IN_TAG}|([^\s/>=]+)(?:\s*=\s*(?:\"((?:[^\"{{<]++|(?>{IN_TAG})|[{{<])*+)\"|'((?:[^'{{<]++|(?>{IN_TAG})|[{{<])*+)'"
    rf"|((?:(?>{IN_TAG})|[^\s>\"'])(?:(?>{IN_TAG})|[^\s>])*+)))?"
)
"""An attribute, or a template's tag between attributes."""
_RAW = frozenset(("script", "style"))
"""Elements whose content is not HTML."""


@dataclass(frozen=True)
class HtmlToken:
    """A token. An aside is a comment or a section, which does not separate texts."""

    kind: Kind
    text: str
    """As it is written."""
    tag: str = ""
    """Name of an opening or closing tag, in lower case."""
    is_line: bool = False
    """Whether a template's tag has its line, or its lines, to itself."""

    @property
    def is_empty(self) -> bool:
        """Whether a tag has no content: `<br/>`."""
        return self.text.endswith("/>")

    def place_of(self, attribute: str) -> tuple[int, int] | None:
        """The place of an attribute's value in the text, with its quotes; None without a value."""
        for match in _ATTRIBUTE.finditer(self.text, len(self.tag) + 1):
            if match[1] and match[1].lower() == attribute:
                group = match.lastindex or 1
                return (match.start(group) - (group < 4), match.end()) if group > 1 else None
        return None

    def attributes(self) -> dict[str, str]:
        """The attributes of an opening tag, by their names in lower case."""
        attributes: dict[str, str] = {}
        for match in _ATTRIBUTE.finditer(self.text, len(self.tag) + 1):
            if match[1]:
                attributes.setdefault(match[1].lower(), match[2] or match[3] or match[4] or "")
        return attributes


def html_tokens(text: str) -> Iterator[HtmlToken]:
    """The tokens of HTML, in order. Their texts together are the text."""
    return _Lexer(text).tokens()


class _Lexer:
    def __init__(self, text: str) -> None:
        self._text = text
        self._delimiters: list[tuple[int, int]] = []
        self._templates: list[tuple[int, int]] = []  # in tags: the first character, and the one after the last
        for match in _DELIMITER.finditer(text):
            start, end = match.span()
            if text[start] in ">=":
                self._delimiters.append((start, end - 1))
            else:
                self._templates.append((start, end))
        self._ends: dict[int, int] = {}  # end of the tag whose next delimiter has this number; -1 if there is none
        self._last_end = text.rfind(">")
        self._has_comment_end = True  # in the rest of the text

    def tokens(self) -> Iterator[HtmlToken]:
        """All tokens."""
        text, begin = self._text, 0
        found = _BEGIN.search(text)
        while found:
            at = found.start()
            token = self._markup(at)
            end = at + 1
            if token is not None:
                if begin < at:
                    yield HtmlToken("text", text[begin:at])
                yield token
                begin = end = at + len(token.text)
            if token is not None and token.kind == "open" and token.tag in _RAW and not token.is_empty:
                end = self._end_of_raw(token.tag, end)
            found = _BEGIN.search(text, end)
        if begin < len(text):
            yield HtmlToken("text", text[begin:])

    def _end_of_raw(self, tag: str, at: int) -> int:
        match = re.compile(rf"</{tag}(?=[\s/>])", re.IGNORECASE).search(self._text, at)
        return match.start() if match else len(self._text)

    def _markup(self, at: int) -> HtmlToken | None:
        """The markup at a `<` or `{`, if it is the beginning of some that is closed."""
        text = self._text
        if template := TEMPLATE.match(text, at):
            return HtmlToken("template", template[0], is_line=self._is_line(*template.span()))
        if text[at] == "{":
            return None
        if text.startswith("<![CDATA[", at):
            end = text.find("]]>", at)
            return HtmlToken("aside", text[at : end + 3 if end >= 0 else len(text)])
        if at > self._last_end:
            return None
        if text.startswith("<!--", at):
            return self._comment(at)
        if text.startswith("<![", at):
            condition = _CONDITION.match(text, at)
            return HtmlToken("aside", condition[0]) if condition else None
        if text.startswith("<?", at) or text[at : at + 9].lower() == "<!doctype":
            return HtmlToken("declaration", self._through(at))
        if text.startswith("<!", at):
            return HtmlToken("aside", self._through(at))
        if text.startswith("</", at):
            written = self._through(at)
            name = _NAME.match(written, 2)
            return HtmlToken("close", written, name[0].lower()) if name else HtmlToken("aside", written)
        end = self._end_of_tag(at + 1) if text[at + 1].isalpha() and text[at + 1].isascii() else -1
        if end < 0:
            return None
        name = _NAME.match(text, at + 1)
        assert name is not None
        return HtmlToken("open", text[at : end + 1], name[0].lower())

    def _is_line(self, begin: int, end: int) -> bool:
        """Whether there is nothing but white space before and after a range in its first and last line."""
        text = self._text
        while begin > 0 and text[begin - 1] in " \t":
            begin -= 1
        while end < len(text) and text[end] in " \t\r":
            end += 1
        return text[begin - 1 : begin] in ("", "\n") and text[end : end + 1] in ("", "\n")

    def _through(self, at: int) -> str:
        """The text up to and with the next `>`, of which there is one."""
        return self._text[at : self._text.index(">", at) + 1]

    def _comment(self, at: int) -> HtmlToken | None:
        end = _COMMENT_END.search(self._text, at + 4) if self._has_comment_end else None
        self._has_comment_end = end is not None
        return HtmlToken("aside", self._text[at : end.end()]) if end else None

    def _end_of_tag(self, at: int) -> int:
        """Position of the first `>` from here that is not in quotes. A quote that is never closed is a character."""
        number = bisect_left(self._delimiters, (at, 0))
        passed = []
        while number not in self._ends:
            passed.append(number)
            if number == len(self._delimiters):
                self._ends[number] = -1
                break
            start, last = self._delimiters[number]
            if start == last and self._text[start] == ">":
                self._ends[number] = start
                break
            close = self._end_of_value(last)
            number = bisect_left(self._delimiters, (close + 1, 0)) if close >= 0 else number + 1
        end = self._ends[number]
        self._ends.update(dict.fromkeys(passed, end))
        return end

    def _end_of_value(self, at: int) -> int:
        """Position of the quote that closes the one here, and is in no template's tag; -1 if there is none."""
        close = self._text.find(self._text[at], at + 1)
        while close >= 0:
            number = bisect_left(self._templates, (close, 0)) - 1
            if number < 0 or self._templates[number][1] <= close or self._templates[number][0] < at:
                break
            close = self._text.find(self._text[at], self._templates[number][1])
        return close
