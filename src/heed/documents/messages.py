"""Messages: short texts of a program or of subtitles, with what they are made of besides words.

| in a message | what happens to it |
| --- | --- |
| tags: `<b>`, `</b>`, `<1>`, `<v Ann>`, `<00:01.500>` | they are inline tags, which move with their words |
| tags of lines and blocks: `<br>`, `<p>`, `<li>` | they separate texts, as in HTML |
| `{n, plural, one {# file} other {# files}}`, `select`, `selectordinal` (ICU) | a text for each case; the rest stays |
| placeholders: `{name}`, `%s`, `${x}`, `{{x}}` | they stay (`codes.py`) |
| entities: `&amp;`, `&eacute;` | the model gets the character; a character that was written so is written so again |
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Sequence

from heed.documents.nested_texts import NestedTexts
from heed.documents.spans import Part, PartsBuilder, without_unclosed
from heed.documents.text_translator import TextTranslator

MAX_DEPTH = 8
"""Of cases inside the texts of cases. Deeper ones stay as they are."""
BLOCKS = frozenset(
    re.findall(
        r"\w+", "blockquote br dd div dl dt h1 h2 h3 h4 h5 h6 hr li ol p pre table tbody td tfoot th thead tr ul"
    )
)
"""Tags that separate texts."""
TAG = re.compile(r"<(?P<close>/?)(?P<name>[\w:-]{1,40})[^<>]{0,1000}>")
_HEAD = re.compile(r"\{\s{0,9}[\w.-]{1,80}\s{0,9},\s{0,9}(?P<kind>plural|select|selectordinal)\s{0,9},")
_CASE = re.compile(r"\s*(?:offset:\d{1,9}\s+)?(?:=\d{1,9}|\w{1,40})\s*\{")
_CASES_END = re.compile(r"\s*\}")
_ENTITY = re.compile(r"&(?:#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z]\w{1,31});")
_NO_TEXT = re.compile("[\0\ud800-\udfff]")
_MARKUP = re.compile(r"(?<!%)<|[{#]")
"""Where markup may begin; `%<count>d` is a placeholder."""


def translate_messages(texts: Sequence[str], translator: TextTranslator) -> list[str]:
    """The translated messages. Those with U+0000 or half of a pair of UTF-16 are not text, and stay."""
    nested = NestedTexts()
    read = (text for text in translator.checked(texts) if not _NO_TEXT.search(text))
    parts = [_Reader(text, nested).parts(0, len(text)) for text in read]
    outputs = iter(nested.translated(parts, translator))
    return [text if _NO_TEXT.search(text) else next(outputs) for text in texts]


def escapes_of(text: str, written: re.Pattern[str], read: Callable[[str], str]) -> dict[int, str]:
    """How a text writes those characters that it writes in a special way, as a table for `str.translate`."""
    forms = {form: read(form) for form in dict.fromkeys(written.findall(text))}
    return {ord(char): form for form, char in forms.items() if len(char) == 1}


class _Reader:
    def __init__(self, text: str, nested: NestedTexts) -> None:
        self._text = text
        self._nested = nested
        self._escapes = escapes_of(text, _ENTITY, html.unescape)
        self._closing = _closing_braces(text)

    def parts(self, begin: int, end: int, is_counted: bool = False, depth: int = 0) -> list[Part]:
        """The parts of a range. `is_counted`: a `#` stands for a number."""
        text, builder = self._text, PartsBuilder(keeps_space=True, escape=lambda text: text.translate(self._escapes))
        opened: list[tuple[str, int]] = []
        done = at = begin
        while match := _MARKUP.search(text, at, end):
            at = match.start()
            stop = self._end_of_markup(at, end, is_counted)
            written = self._cases(at, stop, depth) if stop and text[at] == "{" else text[at:stop]
            if not stop or written is None:
                at += 1
                continue
            builder.add_text(self._read(text[done:at]))
            add_tag(builder, written, opened)
            done = at = stop
        builder.add_text(self._read(text[done:end]))
        builder.add_markup("")
        return without_unclosed(builder.parts())

    def _read(self, text: str) -> str:
        return html.unescape(text) if self._escapes else text

    def _end_of_markup(self, at: int, end: int, is_counted: bool) -> int:
        """The end of the markup that may begin at a sign; 0 for none."""
        if self._text[at] == "#":
            return at + 1 if is_counted else 0
        if self._text[at] == "<":
            tag = TAG.match(self._text, at, end)
            return tag.end() if tag else 0
        close = self._closing.get(at, end)
        return close + 1 if close < end else 0

    def _cases(self, begin: int, end: int, depth: int) -> str | None:
        """An argument with cases, with marks in place of their texts; None if it is something else."""
        head = _HEAD.match(self._text, begin, end)
        if head is None or depth == MAX_DEPTH:
            return None
        out, at = head[0], head.end()
        is_counted = head["kind"] != "select"
        while case := _CASE.match(self._text, at, end):
            close = self._closing.get(case.end() - 1, end)
            if close >= end:
                return None
            out += case[0] + self._nested.mark(self.parts(case.end(), close, is_counted, depth + 1)) + "}"
            at = close + 1
        last = _CASES_END.fullmatch(self._text, at, end)
        return out + last[0] if last else None


def add_tag(
    builder: PartsBuilder, read: str, opened: list[tuple[str, int]], escape: Callable[[str], str] = str
) -> None:
    """Add a tag. `opened`: the names and numbers of the open pairs. A tag without a partner is a single one."""
    tag, written = TAG.fullmatch(read), escape(read)
    if tag and tag["name"].lower() in BLOCKS:
        builder.add_markup(written)
    elif tag is None or read.endswith("/>"):
        builder.single_tag(written)
    elif not tag["close"]:
        opened.append((tag["name"], builder.open_tag(written)))
    elif opened and opened[-1][0] == tag["name"]:
        builder.close_tag(written, opened.pop()[1])
    else:
        builder.single_tag(written)


def _closing_braces(text: str) -> dict[int, int]:
    """The place of the closing brace of each opening one."""
    closing: dict[int, int] = {}
    opened: list[int] = []
    for match in re.finditer(r"[{}]", text):
        if match[0] == "{":
            opened.append(match.start())
        elif opened:
            closing[opened.pop()] = match.start()
    return closing
