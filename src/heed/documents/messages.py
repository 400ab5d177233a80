"""Messages: short texts of a program or of subtitles, with what they are made of besides words.

| in a message | what happens to it |
| --- | --- |
| tags: `<b>`, `</b>`, `<1>`, `<v Ann>`, `<00:01.500>` | they are inline tags, which move with their words |
| tags of lines and blocks: `<br>`, `<p>`, `<li>` | they separate texts, as in HTML |
| `{n, plural, one {# file} other {# files}}`, `select`, `selectordinal` (ICU) | a text for each case; the rest stays |
| `''` and quoted text (`'{'`) next to cases (ICU) | the model gets `'`; quoted text is an inline tag |
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
_NEXT_CASE = re.compile(r"\}\s{0,99}(?:=\d{1,9}|\w{1,40})\s{0,99}\{")
_CASES_END = re.compile(r"\s*\}")
_ENTITY = re.compile(r"&(?:#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z]\w{1,31});")
_NO_TEXT = re.compile("[\0\ud800-\udfff]")
_MARKUP = re.compile(r"(?<!%)<|[{#']")
"""Where markup may begin; `%<count>d` is a placeholder."""
_QUOTED_OR_BRACE = re.compile(r"''|'[{}#](?:[^']++|'')*+(?P<end>'|\Z)|[{}]")
"""What counts for the pairs of braces of an ICU message: a `'` before a sign of its syntax quotes text."""
_BRACE = re.compile("[{}]")
_WORD = re.compile(r"\S+")
_LONE_AT_END = re.compile(r"\A'(?!['#])|(?<!')'\Z")
_PENDING = "\0'"
"""An apostrophe of a translation until it is known what follows it."""


def translate_messages(texts: Sequence[str], translator: TextTranslator) -> list[str]:
    """The translated messages. Those with U+0000 or half of a pair of UTF-16 are not text, and stay."""
    nested = NestedTexts()
    readers = [_Reader(text, nested) for text in translator.checked(texts) if not _NO_TEXT.search(text)]
    translated = nested.translated([reader.parts() for reader in readers], translator)
    outputs = iter([reader.whole(output) for reader, output in zip(readers, translated, strict=True)])
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
        heads = [head.start() for head in _HEAD.finditer(text)]
        self._closing, self._quoted = _closing_braces(text, has_quotes=bool(heads))
        self._has_quotes = bool(heads) and all(head in self._closing for head in heads)
        """Whether apostrophes quote. Where that would hide cases, the program of the message has no quotes."""
        if heads and not self._has_quotes:
            self._closing, self._quoted = _closing_braces(text, has_quotes=False)
        self._apostrophe = _PENDING
        """How new words are written with apostrophes: doubled if the source doubles some."""

    def parts(self) -> list[Part]:
        """The parts of the message."""
        return self._parts(0, len(self._text))

    def whole(self, output: str) -> str:
        """The message, given the translation of its parts and of its cases.

        An apostrophe is doubled where it would quote what follows. Some programs take it for a quote before a tag, too.
        """
        if not self._has_quotes:
            return output
        signs = "{}#" if re.search("'[<>]", self._text) else "{}#<>"
        return re.sub(f"(?<=')\0'|\0'(?=[{signs}'\0])", "''", output).replace(_PENDING, "'")

    def _parts(self, begin: int, end: int, is_counted: bool = False, depth: int = 0) -> list[Part]:
        """The parts of a range. `is_counted`: a `#` stands for a number."""
        words: dict[str, str] = {}  # with apostrophes, and how the source writes them
        text, builder = self._text, PartsBuilder(keeps_space=True, escape=lambda text: self._escape(text, words))
        opened: list[tuple[str, int]] = []
        done = at = begin
        while match := _MARKUP.search(text, at, end):
            at = match.start()
            stop = self._end_of_markup(at, end, is_counted)
            written = self._cases(at, stop, depth) if stop and text[at] == "{" else text[at:stop]
            if not stop or written is None:
                at += 1
                continue
            builder.add_text(self._read(text[done:at], words))
            add_tag(builder, written, opened)
            done = at = stop
        builder.add_text(self._read(text[done:end], words))
        builder.add_markup("")
        return without_unclosed(builder.parts())

    def _read(self, written: str, words: dict[str, str]) -> str:
        if self._has_quotes and "'" in written:
            self._apostrophe = "''" if "''" in written else self._apostrophe
            for word in _WORD.findall(written):
                if "'" in word:
                    words[self._unescaped(word.replace("''", "'"))] = _LONE_AT_END.sub(_PENDING, word)
            written = written.replace("''", "'")
        return self._unescaped(written)

    def _unescaped(self, text: str) -> str:
        return html.unescape(text) if self._escapes else text

    def _escape(self, text: str, words: dict[str, str]) -> str:
        """Text as the message writes it: words with apostrophes as the source has them."""

        def written(word: re.Match[str]) -> str:
            return words.get(word[0]) or word[0].translate(self._escapes).replace("'", self._apostrophe)

        return _WORD.sub(written, text) if self._has_quotes else text.translate(self._escapes)

    def _end_of_markup(self, at: int, end: int, is_counted: bool) -> int:
        """The end of the markup that may begin at a sign; 0 for none."""
        if self._text[at] == "#":
            return at + 1 if is_counted else 0
        if self._text[at] == "'":
            return self._quoted.get(at, 0)
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
            out += case[0] + self._nested.mark(self._parts(case.end(), close, is_counted, depth + 1)) + "}"
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


def _closing_braces(text: str, has_quotes: bool) -> tuple[dict[int, int], dict[int, int]]:
    """The place of the closing brace of each opening one, and the end of each quoted text by its beginning.

    Both are empty if a quoted text has no end, or would end inside another case.
    """
    closing: dict[int, int] = {}
    quoted: dict[int, int] = {}
    opened: list[tuple[int, bool]] = []  # and whether it begins an argument in whose cases `#` is a number
    at, pattern = 0, _QUOTED_OR_BRACE if has_quotes else _BRACE
    while match := pattern.search(text, at):
        begin, at = match.span()
        if match[0] == "{":
            head = _HEAD.match(text, begin)
            opened.append((begin, head is not None and head["kind"] != "select"))
        elif match[0] == "}":
            if opened:
                closing[opened.pop()[0]] = begin
        elif match[0][1] == "#" and not any(is_counted for _, is_counted in opened[-2:-1]):
            at = begin + 1
        elif match["end"] == "" or _NEXT_CASE.search(text, begin, at):
            return {}, {}
        elif match["end"]:
            quoted[begin] = at
    return closing, quoted
