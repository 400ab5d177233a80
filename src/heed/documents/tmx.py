"""Translation memories (TMX): fills in missing translations.

A unit with a source text and no target text gets a variant `<tuv xml:lang="de" creationid="heed">`, or a text in its
empty target segment, whose variant then gets `changeid="heed"`. Everything else stays as it is written.

Paired codes of a segment (`bpt` and the `ept` with the same `i`; `hi`) and single codes (`ph`, `it`, `ut`) are inline
tags, which move with their words. A code for a line break or a tab separates two spans. The content of a code,
including subflows (`sub`), stays as it is.
"""

from __future__ import annotations

import re
from collections import Counter
from xml.parsers import expat
from xml.sax.saxutils import quoteattr

from heed.core.errors import DataError, UsageError
from heed.documents.file_format import FileContext, TextFormat
from heed.documents.messages import TAG, add_tag
from heed.documents.spans import Part, PartsBuilder, escape_xml, has_text, without_unclosed
from heed.documents.text_translator import TextTranslator
from heed.text.language.codes import same_tag
from heed.text.readers.tmx import (
    CODES,
    CREATOR,
    Unit,
    UnitParser,
    Variant,
    encoding_of,
    is_break,
    mended,
    sides_of,
    tag_of,
    variant_of,
)

_CREATOR = quoteattr(CREATOR)
"""Recorded as the creator of new variants and of changes."""

_BLOCK = 1 << 13
"""Characters that are parsed at once."""
_START_TAG = re.compile(rb"""<(?:[^>"']|"[^"]*"|'[^']*')*>""")
"""A tag. An attribute may contain a `>`."""
_ATTRIBUTE = re.compile(rb"""\s([^\s=]+)\s*=\s*("[^"]*"|'[^']*')""")


def translate_tmx(text: str, translator: TextTranslator, context: FileContext) -> str:
    """The memory with its missing translations. Raises DataError for invalid TMX, UsageError without both languages."""
    name, sides = context.name, context.sides
    if not (sides.src_lang and sides.tgt_lang):
        raise UsageError(
            f"{name}: the model does not name its languages, which are needed to read a translation memory. Train it "
            "with --data.src_lang=L --data.tgt_lang=L."
        )
    src_tag, tgt_tag = tag_of(sides.src_lang), tag_of(sides.tgt_lang)
    units = [_UnitSides(unit, src_tag, tgt_tag) for unit in _parsed(text, name, translator) if unit.end is not None]
    if units and all(variant_of(each.unit.variants, src_tag) is None for each in units):
        tags = dict.fromkeys(variant.language for each in units for variant in each.unit.variants)
        raise DataError(f"{name}: no unit has {sides.src_lang}; its units are in {', '.join(tags) or 'no language'}.")
    data = text.encode()
    segments = [
        (each, parse_segment(_segment(data, each.source)))
        for each in translator.checked(units)
        if each.source is not None and each.target is None
    ]
    todo = [(each, parts) for each, parts in segments if has_text(parts)]
    context.notify(f"{len(todo):,} of {len(units):,} units have {sides.src_lang} and no {sides.tgt_lang}")
    outputs = translator.documents([parts for _, parts in todo])
    targets = [each.target or each.empty for each in units if each.source]
    used = Counter(variant.language for variant in targets if variant)
    new_tag = used.most_common(1)[0][0] if used else tgt_tag
    out, done = [], 0
    for (each, _), output in zip(todo, outputs, strict=True):
        begin, end, filled = each.filled(data, f"<seg>{output.text}</seg>".encode(), new_tag)
        out += [data[done:begin], filled]
        done = end
    return b"".join([*out, data[done:]]).decode()


TMX = TextFormat(
    is_markup=True,
    is_bilingual=True,
    write=translate_tmx,
    declared=encoding_of,
    mended=lambda text: "".join(mended([text])),
)


def _parsed(text: str, name: str, translator: TextTranslator) -> list[Unit]:
    parser = UnitParser(name)
    begins = translator.checked(range(0, len(text), _BLOCK))
    units = [unit for begin in begins for unit in parser.feed(text[begin : begin + _BLOCK])]
    return units + parser.feed("", is_last=True)


class _UnitSides:
    """A unit with its variants of the source, of the target, and of an empty target; None where it lacks one.

    An empty variant of the source is never filled as a variety of the target: next to `pt-BR`, `pt` is another one.
    """

    def __init__(self, unit: Unit, src_tag: str, tgt_tag: str) -> None:
        self.unit = unit
        self.source, self.target = sides_of([each for each in unit.variants if each.text], src_tag, tgt_tag)
        is_narrow = len(src_tag) > len(tgt_tag)
        empty = [each for each in unit.variants if not each.text]
        vacant = [each for each in empty if not (is_narrow and same_tag(src_tag, each.language))]
        self.empty = variant_of(vacant, tgt_tag)

    def filled(self, data: bytes, segment: bytes, tag: str) -> tuple[int, int, bytes]:
        """The range of the file to replace and what replaces it: the empty variant, or a new one after the others."""
        empty = self.empty
        if empty is None:
            assert self.unit.end is not None
            end = _end_of_element(data, self.unit.end, "tuv")
            attributes = f"{self.unit.language_attribute}={quoteattr(tag)} creationid={_CREATOR}"
            before = data[data.rfind(b">", 0, self.unit.begin) + 1 : self.unit.begin]
            space = before[len(before.rstrip()) :]
            return end, end, space + f"<tuv {attributes}>".encode() + segment + b"</tuv>"
        start_tag = _start_tag(data, empty.begin)
        end = _end_of_element(data, empty.segment[1], "seg")
        between = data[empty.begin + len(start_tag) : empty.segment[0]]
        return empty.begin, end, _with_changeid(start_tag) + between + segment


def _segment(data: bytes, variant: Variant) -> bytes:
    begin, end = variant.segment
    return data[begin : _end_of_element(data, end, "seg")]


def _start_tag(data: bytes, at: int) -> bytes:
    match = _START_TAG.match(data, at)
    assert match is not None
    return match[0]


def _end_of_element(data: bytes, at: int, element: str) -> int:
    """The end of an element whose end tag is at `at`. For `<seg/>` the parser reports the end itself."""
    return data.index(b">", at) + 1 if data.startswith(f"</{element}".encode(), at) else at


def _with_changeid(start_tag: bytes) -> bytes:
    """The start tag of a variant that heed has changed."""
    creator = _CREATOR.encode()
    for attribute in _ATTRIBUTE.finditer(start_tag):
        if attribute[1] == b"changeid":
            return start_tag[: attribute.start(2)] + creator + start_tag[attribute.end(2) :]
    return start_tag[:-1] + b" changeid=" + creator + b">"


def parse_segment(segment: bytes, is_xliff: bool = False) -> list[Part]:
    """Markup and spans of `<seg>...</seg>`, which is well-formed and in UTF-8, in order.

    Reads the codes of XLIFF, too: `bx` and `ex`, `sc` and `ec` are pairs, and what is marked as protected is a code.
    In XLIFF, space counts, and so do tags in the text, which programs take over from messages: `&lt;b&gt;`.
    """
    return _SegmentReader(segment, is_xliff).read()


class _SegmentReader:
    def __init__(self, segment: bytes, is_xliff: bool) -> None:
        self._segment = segment
        self._is_xliff = is_xliff
        self._parts = PartsBuilder(is_xliff, escape_xml)
        self._tags: list[tuple[str, int]] = []
        """The names and pairs of the open tags in the text."""
        self._expat = expat.ParserCreate("utf-8")
        self._expat.buffer_text = True
        self._expat.StartElementHandler = self._start
        self._expat.EndElementHandler = self._end
        self._expat.CharacterDataHandler = self._characters
        self._open: list[int] = []
        """The pair of each open `hi`; -1 for `<hi/>`."""
        self._paired: dict[str, int] = {}
        """The pair of each `bpt` by its `i`."""
        self._code: tuple[str, dict[str, str], int] | None = None
        """Name, attributes and position of the open code; None in text."""
        self._depth = 0
        """Open elements in the code, including itself."""
        self._is_break = False

    def read(self) -> list[Part]:
        self._expat.Parse(self._segment, True)
        self._parts.add_markup("")
        return without_unclosed(self._parts.parts())

    def _start(self, element: str, attributes: dict[str, str]) -> None:
        at = self._expat.CurrentByteIndex
        if self._code:
            self._depth += 1
        elif at and (element in CODES or _is_protected(attributes)):
            self._code, self._depth = (element, attributes, at), 1
            is_line_break = self._is_xliff and _is_line_break(attributes)
            self._is_break = is_line_break or is_break(element, attributes.get("type", ""))
        elif at:  # not `seg` itself
            tag = _start_tag(self._segment, at).decode()
            if tag.endswith("/>"):
                self._open.append(-1)
                if self._is_xliff and _is_line_break(attributes):
                    self._parts.add_markup(tag)
                else:
                    self._add_code(element, attributes, tag)
            else:
                self._open.append(self._parts.open_tag(tag))

    def _end(self, element: str) -> None:
        if self._code:
            self._depth -= 1
            if not self._depth:
                self._end_code(*self._code)
                self._code = None
        elif self._open and (pair := self._open.pop()) >= 0:
            self._parts.close_tag(f"</{element}>", pair)

    def _end_code(self, element: str, attributes: dict[str, str], begin: int) -> None:
        text = self._segment[begin : _end_of_element(self._segment, self._expat.CurrentByteIndex, element)].decode()
        if self._is_break:
            self._parts.add_markup(text)
        else:
            self._add_code(element, attributes, text)

    def _add_code(self, element: str, attributes: dict[str, str], text: str) -> None:
        """Add a code. Two of a pair have the same number: `i` in TMX; `rid`, `id` or `startRef` in XLIFF."""
        number = next((attributes[name] for name in ("i", "startRef", "rid", "id") if name in attributes), "")
        name = element.rpartition(":")[2]
        if name in ("bpt", "bx", "sc"):
            self._paired[number] = self._parts.open_tag(text)
        elif name in ("ept", "ex", "ec") and number in self._paired:
            self._parts.close_tag(text, self._paired.pop(number))
        else:
            self._parts.single_tag(text)

    def _characters(self, text: str) -> None:
        if self._code is None:
            done = 0
            for tag in TAG.finditer(text) if self._is_xliff else ():
                self._parts.add_text(text[done : tag.start()])
                add_tag(self._parts, tag[0], self._tags, escape_xml)
                done = tag.end()
            self._parts.add_text(text[done:])
        elif self._depth == 1:
            self._is_break |= is_break(self._code[0], text=text)


def _is_line_break(attributes: dict[str, str]) -> bool:
    """Whether a code of XLIFF 1.2 (`ctype`) or 2 (`subType`) is a line break."""
    return attributes.get("ctype") == "lb" or attributes.get("subType") == "xlf:lb"


def _is_protected(attributes: dict[str, str]) -> bool:
    return attributes.get("translate") == "no" or attributes.get("mtype") == "protected"
