"""Markdown (CommonMark, tables, `markdown_blocks.py`): translates paragraphs, items, cells, texts of links and images.

| part | what happens to it |
| --- | --- |
| emphasis, `~struck words~`, links, images, inline HTML, footnote marks | inline tags, which move; addresses stay |
| `==marks==`, formulas (`$x$`, `\\(x\\)`), `:emoji:`, attributes (`{.class}`), tags of templates | inline tags, too |
| `[[wiki links]]`, subscripts with their word (`H~2~O`), superscripts (`^2^`) | inline tags, too |
| code (spans, fenced, indented), HTML blocks, front matter, definitions of links, references such as `[name]` | stay |
| `<br>` and other tags of lines and blocks in a text | separate texts, as in HTML |
| a paragraph of several lines | its line breaks move with the words that they precede |
| a character behind a backslash, an entity | the model gets the character; it is written in the same way again |

markdown-it-py, which follows CommonMark and which rich needs anyway, finds the blocks, as their nesting is what a
simple reader gets wrong. It gives the text of each block without the marks of lists and quotes around it; that text is
replaced where it is in the file, so that all else stays byte by byte. Writers of Markdown choose their own marks.
"""

from __future__ import annotations

import html
import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from markdown_it import MarkdownIt
from markdown_it.common.utils import normalizeReference

from heed.core.errors import DataError
from heed.documents.file_format import FileContext, TextFormat
from heed.documents.markdown_blocks import ATTRIBUTES, add_rules, is_prose
from heed.documents.messages import BLOCKS, escapes_of
from heed.documents.spans import Part, PartsBuilder, without_unclosed
from heed.documents.templates import BRACES, COMMENTS
from heed.documents.text_translator import TextTranslator
from heed.text.words import is_in_word

BREAK = "\0"
"""A line break that means no more than a space. Text with U+0000 stays as it is."""
_FRONT_MATTER = re.compile(r"\ufeff?(---|\+\+\+)[ \t]*\n")
_LINE_START = re.compile(
    r"(?:[-+*>]|#{1,6}|\d{1,9}[.)])(?:\s|$)|=+\s*$|-+\s*$|```|~~~|>|\||<|:(?:\s|::)|!!!|\?\?\?|===|///|\$\$"
)
"""What begins a block at the beginning of a line."""
_BLOCK_START = re.compile(r"\A(?:[-+*](?=\s|$)|#{1,6}(?=\s|$)|>|(\d{1,9})(?=[.)](?:\s|$)))")
"""What makes a paragraph an item, a heading or a quote."""
_ESCAPED = re.compile(r"\\[!-/:-@\[-`{-~]|&(?:#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z]\w{1,31});")
_FORMULA = re.compile(
    r"\$\$(?:\\[^\0]|[^\\$\0]){1,2000}+\$\$|(?<!\$)\$(?![\s$])(?:\\[^\0]|[^\\$\0]){0,1000}+(?<!\s)\$(?![\d$])"
    r"|\\\((?:(?!\\[()])[^\0]){1,1000}\\\)|\\\[(?:(?!\\[\[\]])[^\0]){1,1000}\\\]"
)
"""Between single dollars, it has no space inside of them and no digit behind, as in pandoc: not in "$5 or $6"."""
_SCRIPT = (
    r"(?:(?<![\w~])[A-Z][A-Za-z0-9]{0,3})?(?:(?<=[^\W_])|(?<=[)\]}>$])|(?<=[\w)][*_`]))"
    r"~(?![~\s])[^~\s\0]{1,20}~(?!~)(?:[A-Za-z0-9]{1,4}(?![\w~]))?"
    r"|(?<![\^\[\\])\^(?!\^)[^\^\s\[\]\0]{1,20}\^(?!\^)"
)
"""A formula of chemistry, or what is raised or lowered, as pandoc has it. A word with none before it is struck."""
_IN_URL = r"[^\s<>()\[\]{}\"`*~\\=\0]|=(?!=)|\([^\s<>()\[\]{}\"`*\\\0]{0,200}\)"
_URL = rf"https?://(?:{_IN_URL}){{0,2000}}(?:(?<=\))|(?<![_.,;:!?/]))"
"""An address in the text, whose underscores are none of emphasis."""
_TOKEN = re.compile(
    rf"(?P<url>{_URL})|(?P<formula>{_FORMULA.pattern})|(?P<escaped>{_ESCAPED.pattern})"
    r"|(?P<hard>(?: {2,}|\\)\n)|(?P<soft>[ \t]?\n)|(?P<code>`+)"
    r"|(?P<address><(?:[A-Za-z][\w.+-]{1,31}:[^\s<>]{0,2000}|[\w.+-]{1,64}@[\w.-]{1,255})>)"
    r"|(?P<comment><!--(?:(?!-->)[^\0]){0,2000}-->)|(?P<tag></?[A-Za-z][\w-]{0,40}(?:\s[^<>]{0,2000})?/?>)"
    rf"|(?P<wiki>!?\[\[[^\[\]\0\n]{{1,200}}\]\])|(?P<script>{_SCRIPT})"
    r"|(?P<note>\[\^[^\]\s]{1,200}\])|(?P<image>!\[)|(?P<bracket>\[)|(?P<end>\])"
    r"|(?P<marks>\*+|_+|~~?|==)|(?P<emoji>(?<![\w:]):(?:[+-]1|[\w+-]{0,40}[A-Za-z][\w+-]{0,40}):(?![\w:]))"
    rf"|(?P<template>{BRACES}|{COMMENTS})|(?P<attributes>{ATTRIBUTES})"
)
_MARKED = re.compile(
    r"(?<!=)==[^\s=](?:[^\0]{0,500}?[^\s=])??==(?!=)|(?<![\w~])~[^\s~](?:[^~\0]{0,500}[^\s~])?~(?![\w~])"
)
_ATTRIBUTES = re.compile(ATTRIBUTES)
_ADDRESS = re.compile(
    r"\(\s{0,99}(?:<[^<>\n]{0,2000}>|[^\s()<>]{0,2000}(?:\([^\s()]{0,2000}\)[^\s()]{0,2000}){0,9})"
    r"(?:\s{1,99}(?:\"[^\"]{0,1000}\"|'[^']{0,1000}'|\([^()]{0,1000}\)))?\s{0,99}\)"
)
_REFERENCE = re.compile(r"\[([^\[\]]{0,1000})\]")
_ITEM = re.compile(r"\[[ xX]\]\s+|\[\^[^\]\s]{1,200}\]:\s*|\[![A-Za-z]{1,20}\][+-]?[ \t]*\n?")
"""The box of a task, the mark of a footnote before its text, or the kind of a quote: `[!NOTE]`."""
_WORD = re.compile(r"[^ \t\r\n]+")
_SPECIAL = "*_`<[\\"
_AT_END = {"|": "\\|", '"': "&quot;", "]": "\\]"}
"""How a character is written that ends a text."""
_MARKDOWN = MarkdownIt("commonmark").enable(["table", "strikethrough"])
add_rules(_MARKDOWN)
_MARKDOWN.core.ruler.enableOnly(["normalize", "block"])


@dataclass(frozen=True)
class _Block:
    """The text of a block, and the places of its lines in the file."""

    text: str
    places: Sequence[tuple[int, int]]
    end: str
    """The character that ends it: that of a cell, or of a title."""


def translate_markdown(text: str, translator: TextTranslator, context: FileContext) -> str:
    """The translated file. Raises DataError for blocks that are nested too deeply."""
    begin = _end_of_front_matter(text)
    found, references = _blocks(text[begin:], context.name)
    blocks = [
        _Block(each.text, [(first + begin, last + begin) for first, last in each.places], each.end)
        for each in translator.checked(found)
    ]
    outputs = translator.documents([_Inline(block.text, references, block.end).parts() for block in blocks])
    out, done = [], 0
    for block, output in zip(blocks, outputs, strict=True):
        out += [text[done : block.places[0][0]], _written(output.text, block, text)]
        done = block.places[-1][1]
    return "".join([*out, text[done:]])


MARKDOWN = TextFormat(write=translate_markdown)


def _end_of_front_matter(text: str) -> int:
    """The end of the metadata before the text; 0 without any."""
    first = _FRONT_MATTER.match(text.replace("\r\n", " \n", 1))
    if first is None:
        return 0
    end = re.compile(rf"^{re.escape(first[1])}[ \t]*\r?$", re.MULTILINE).search(text, first.end())
    return end.end() if end else 0


def _blocks(text: str, name: str) -> tuple[list[_Block], frozenset[str]]:
    """The blocks with text, in order, and the names of the references."""
    environment: dict[str, dict[str, object]] = {}
    try:
        tokens = _MARKDOWN.parse(text, environment)
    except RecursionError as error:
        raise DataError(f"{name}: its blocks are nested too deeply.") from error
    lines = re.split("(?<=\n)|(?<=\r)(?!\n)", text)
    starts, total = [], 0
    for line in lines:
        starts.append(total)
        total += len(line)
    blocks: list[_Block] = []
    done = 0
    is_cell = False
    for token in tokens:
        if token.type in ("th_open", "td_open", "paragraph_open", "heading_open"):
            is_cell = token.type[0] == "t"
        if token.type != "inline" or token.map is None or not token.content:
            continue
        done = max(done, starts[token.map[0]] + token.meta.get("column", 0))
        places = _places(token.content, lines, starts, token.map[0], done, is_cell)
        if places:
            done = places[-1][1]
            end_sign = "|" if is_cell else token.meta.get("end", "")
            blocks.append(_Block("\n".join(text[begin:end] for begin, end in places), places, end_sign))
    return blocks, frozenset(environment.get("references", {}))


def _places(
    content: str, lines: Sequence[str], starts: Sequence[int], first: int, done: int, is_cell: bool
) -> list[tuple[int, int]]:
    """The places of the lines of a block's text; none if they cannot be found, and the block is left alone."""
    places = []
    for number, line in enumerate(content.split("\n"), start=first):
        if number >= len(lines):
            return []
        line = line.lstrip(" \t") if line.endswith("  ") else line.strip(" \t")
        written = line.replace("|", "\\|") if is_cell else line
        at = lines[number].find(written, max(0, done - starts[number]))
        if at < 0:
            return []
        places.append((starts[number] + at, starts[number] + at + len(written)))
        done = places[-1][1]
    return places


def _written(output: str, block: _Block, text: str) -> str:
    """The text of a block with the line ends and the marks that were between its lines."""
    between = iter([text[end:begin] for (_, end), (begin, _) in zip(block.places, block.places[1:], strict=False)])
    begins = {text[begin:end].partition(" ")[0] for begin, end in block.places}
    out = ""
    for sign, line in _broken(output):
        is_new = sign == "\n" and line.partition(" ")[0] not in begins
        if is_new or not (sign or block.end or _BLOCK_START.match(block.text)):
            line = _BLOCK_START.sub(lambda start: f"{start[1]}\\" if start[1] else f"\\{start[0]}", line)
        gap = next(between, " ") if sign else ""
        if sign == BREAK and _LINE_START.match(line) and line.partition(" ")[0] not in begins:
            gap = " "
        out += gap + line
    return out


def _broken(output: str) -> Iterator[tuple[str, str]]:
    """The lines of a translation, each after the sign that begins it: a soft break, or a hard one behind its marks."""
    first, *others = re.split(f"([{BREAK}\n])", output)
    lines = [("", first)]
    for sign, line in zip(others[::2], others[1::2], strict=True):
        if sign == BREAK and not lines[-1][1].strip():  # no empty line, which would end the block
            lines[-1] = lines[-1][0], line.lstrip(" ")
            continue
        if sign == BREAK:
            lines[-1] = lines[-1][0], lines[-1][1].rstrip(" ")
        lines.append((sign, line.lstrip(" ") if sign == BREAK else line))
    if len(lines) > 1 and lines[-1][0] == BREAK and not lines[-1][1]:
        lines.pop()
    yield from lines


class _Inline:
    """Reads the text of a block."""

    def __init__(self, text: str, references: frozenset[str], end: str) -> None:
        self._text = text
        self._references = references
        around = _FORMULA.sub(lambda formula: formula[0] if _is_escaped(formula[0]) else "", text)
        self._escapes = escapes_of(around, _ESCAPED, _read)
        literal = _ESCAPED.sub("", around)
        self._escapes |= {ord(sign): f"\\{sign}" for sign in _SPECIAL if sign not in literal}
        if end:
            self._escapes[ord(end)] = _AT_END[end]
        self._builder = PartsBuilder(keeps_space=True, escape=lambda text: _WORD.sub(self._written_word, text))
        self._words: dict[str, str] = {}
        """How the words of the text are written in it; empty for one that is written in two ways."""
        self._open: list[tuple[str, int]] = []
        """Kind and pair of each tag that may be closed."""
        self._num_open = Counter[str]()
        self._fences = _fences(text)

    def parts(self) -> list[Part]:
        """Markup and spans."""
        text, builder = self._text, self._builder
        if BREAK in text:
            return [text]
        item = _ITEM.match(text)
        done = at = item.end() if item else 0
        builder.add_markup(text[:done])
        while match := _TOKEN.search(text, at):
            end = self._markup_end(match)
            at = max(end, match.start() + 2 if match.lastgroup == "formula" else match.end())
            if not end:
                continue
            kind = match.lastgroup or ""
            self._add_text(text[done : match.start()])
            self._add(kind, text[match.start() : end], match.start())
            done = end
        self._add_text(text[done:])
        builder.add_markup("")
        return without_unclosed(builder.parts())

    def _add_text(self, written: str) -> None:
        for word in _WORD.findall(written):
            plain = _unescaped(word)
            self._words[plain] = word if self._words.get(plain, word) == word else ""
        self._builder.add_text(_unescaped(written))

    def _written_word(self, word: re.Match[str]) -> str:
        """A word as the source has it, or else with a backslash where one is needed."""
        return self._words.get(word[0]) or word[0].translate(self._escapes)

    def _markup_end(self, match: re.Match[str]) -> int:
        """The end of the markup that begins here; 0 if it is text."""
        text, kind = self._text, match.lastgroup
        if kind in ("escaped", "url"):
            return 0
        if kind == "formula":
            return 0 if _is_escaped(match[0]) else match.end()
        if kind == "code":
            return self._with_attributes(self._end_of_code(match))
        if kind == "marks":
            return self._end_of_marks(match)
        if kind in ("bracket", "image"):
            label = _REFERENCE.match(text, match.end() - 1)
            if label is None or not self._is_reference(label[1]):
                return match.end()
            if text.startswith("[]", label.end()):
                return self._with_attributes(label.end() + 2)
            is_name = not text.startswith(("(", "["), label.end())  # it must be equal to the name in the definition
            return self._with_attributes(label.end()) if is_name else match.end()
        if kind == "end":
            return self._with_attributes(self._end_of_link(match.end()))
        return match.end()

    def _with_attributes(self, end: int) -> int:
        """The end of markup together with the attributes behind it."""
        attributes = _ATTRIBUTES.match(self._text, end) if end else None
        return attributes.end() if attributes else end

    def _end_of_marks(self, match: re.Match[str]) -> int:
        """The end of marks that begin or end something; 0 for others."""
        before, after = self._text[match.start() - 1 : match.start()], self._text[match.end() : match.end() + 1]
        closes = self._num_open[match[0]] > 0 and bool(before.strip())
        is_inside = match[0][0] == "_" and is_in_word(before) and is_in_word(after)
        if is_inside or not (before.strip() or after.strip()):
            return 0
        if match[0] in ("==", "~") and not closes and not _MARKED.match(self._text, match.start()):
            return 0
        return self._with_attributes(match.end()) if closes else match.end()

    def _is_reference(self, label: str) -> bool:
        return bool(self._references) and normalizeReference(label) in self._references

    def _end_of_link(self, at: int) -> int:
        """The end of what belongs to a closing bracket: an address, the name of a reference, or nothing."""
        if not self._num_open["["]:
            return 0
        if address := _ADDRESS.match(self._text, at):
            return address.end()
        label = _REFERENCE.match(self._text, at)
        if label and self._is_reference(label[1]):
            return label.end()
        return at

    def _end_of_code(self, match: re.Match[str]) -> int:
        """The end of a code span: after the next run of as many backticks; 0 if there is none."""
        places = self._fences[len(match[0])]
        following = bisect_right(places, match.start())
        return places[following] + len(match[0]) if following < len(places) else 0

    def _add(self, kind: str, written: str, at: int) -> None:
        if kind == "hard":
            self._builder.add_markup(written)
        elif kind == "soft":
            self._builder.add_text(" ")
            self._builder.single_tag(BREAK)
        elif kind in ("bracket", "image") and written.endswith("["):
            self._begin("[", written)
        elif kind == "end":
            self._end("[", written)
        elif kind == "marks":
            after = self._text[at + len(written) : at + len(written) + 1]
            mark = written.partition("{")[0]
            if self._num_open[mark] and self._text[at - 1 : at].strip():
                self._end(mark, written)
            elif after.strip():
                self._begin(written, written)
            else:
                self._builder.single_tag(written)
        elif kind == "tag":
            name = re.split(r"[\s/>]", written.lstrip("</"), maxsplit=1)[0].lower()
            if name in BLOCKS:
                self._builder.add_markup(written)
            elif written.endswith("/>"):
                self._builder.single_tag(written)
            elif written.startswith("</"):
                self._end(f"<{name}", written)
            else:
                self._begin(f"<{name}", written)
        else:
            self._builder.single_tag(written)

    def _begin(self, kind: str, written: str) -> None:
        self._open.append((kind, self._builder.open_tag(written)))
        self._num_open[kind] += 1

    def _end(self, kind: str, written: str) -> None:
        """Close a pair; those that were opened inside it are never closed."""
        if not self._num_open[kind]:
            self._builder.single_tag(written)
            return
        while True:
            opened, pair = self._open.pop()
            self._num_open[opened] -= 1
            if opened == kind:
                self._builder.close_tag(written, pair)
                return


def _fences(text: str) -> dict[int, list[int]]:
    """The places of the runs of backticks, by their length."""
    places: dict[int, list[int]] = {}
    for match in re.finditer("`+", text):
        places.setdefault(len(match[0]), []).append(match.start())
    return places


def _is_escaped(formula: str) -> bool:
    """Whether what looks like a formula is text in escaped brackets."""
    return formula.startswith("\\") and is_prose(formula[2:-2])


def _read(form: str) -> str:
    return form[1:] if form.startswith("\\") else html.unescape(form)


def _unescaped(text: str) -> str:
    return _ESCAPED.sub(lambda match: _read(match[0]), text)
