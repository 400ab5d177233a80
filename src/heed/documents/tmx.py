"""Translation memories (TMX): fills in missing translations.

A unit with a source text and no target text gets a variant `<tuv xml:lang="de" creationid="heed">`, or a text in its
empty target segment, whose variant then gets `changeid="heed"`. Everything else stays as it is written. The formatting
codes of a segment move with its words (`tmx_segments.py`).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from xml.sax.saxutils import quoteattr

from heed.core.errors import DataError, UsageError
from heed.documents.spans import Part, Span
from heed.documents.tables import Tell
from heed.documents.tmx_segments import START_TAG, after_element, parse_segment
from heed.text.language.codes import same_tag
from heed.text.readers.columns import Sides
from heed.text.readers.tmx import tag_of, variant_of
from heed.text.readers.tmx_parser import UnitParser

Documents = Callable[[Sequence[Sequence[Part]]], list[str]]
"""Translates many marked-up texts at once."""

CREATOR = "heed"
"""Recorded as the creator of new variants and of changes."""

_BLOCK = 1 << 16
_ATTRIBUTE = re.compile(rb"""\s([^\s=]+)\s*=\s*("[^"]*"|'[^']*')""")


@dataclass
class _Unit:
    """A translation unit. Places are in bytes of UTF-8."""

    variants: list[tuple[str, str]] = field(default_factory=list)
    """Language and text of each variant."""
    segments: list[tuple[int, int]] = field(default_factory=list)
    """Range of each variant's segment, from `<seg>` to `</seg>`."""
    attribute: str = "xml:lang"
    """The attribute that names a variant's language."""
    begins: list[int] = field(default_factory=list)
    """Place of each variant with a segment."""
    begin: int = 0
    """Place of the last variant."""
    end: int = 0
    """Place after the last variant."""


class _PlaceParser(UnitParser):
    """A parser of units that records their places."""

    def __init__(self, name: str, data: bytes) -> None:
        super().__init__(name)
        self.units: list[_Unit] = []
        self._data = data
        self._place = _Unit()
        self._segment = 0

    def _start(self, element: str, attributes: dict[str, str]) -> None:
        at = self._expat.CurrentByteIndex
        if not self._codes and element == "tu":
            self._place = _Unit()
        elif not self._codes and element == "tuv":
            self._place.begin = at
            self._place.attribute = "xml:lang" if "xml:lang" in attributes or "lang" not in attributes else "lang"
        elif not self._codes and element == "seg":
            self._segment = at
        super()._start(element, attributes)

    def _end(self, element: str) -> None:
        was_inside = bool(self._codes)
        super()._end(element)
        if was_inside and not self._codes:
            end = after_element(self._data, self._expat.CurrentByteIndex, element)
            self._place.segments.append((self._segment, end))
            self._place.begins.append(self._place.begin)
        elif not was_inside and element == "tuv":
            self._place.end = after_element(self._data, self._expat.CurrentByteIndex, element)
        elif not was_inside and element == "tu" and self._place.end:  # else it has no variant
            self._place.variants = self._unit
            self.units.append(self._place)


def translate_tmx(text: str, name: str, sides: Sides, translate: Documents, tell: Tell) -> str:
    """The memory with its missing translations. Raises DataError for invalid TMX, UsageError without both languages."""
    if not (sides.src_lang and sides.tgt_lang):
        raise UsageError(
            f"{name}: the model does not name its languages, which are needed to read a translation memory."
        )
    data = text.encode()
    parser = _PlaceParser(name, data)
    for begin in range(0, len(text), _BLOCK):
        parser.feed(text[begin : begin + _BLOCK])
    parser.feed("", is_last=True)
    src_tag, tgt_tag = tag_of(sides.src_lang), tag_of(sides.tgt_lang)
    units = [(unit, _Sides(unit, src_tag, tgt_tag)) for unit in parser.units]
    if units and all(variant_of(unit.variants, src_tag) is None for unit, _ in units):
        there = Counter(tag for unit, _ in units for tag, _ in unit.variants)
        raise DataError(f"{name}: no unit has {sides.src_lang}; its units are in {', '.join(there) or 'no language'}.")
    without = [
        (unit, its, parse_segment(data[slice(*unit.segments[its.source])]))
        for unit, its in units
        if its.source is not None and its.target is None
    ]
    todo = [(unit, its, parts) for unit, its, parts in without if _has_text(parts)]
    tell(f"{len(todo):,} of {len(units):,} units have {sides.src_lang} and no {sides.tgt_lang}")
    outputs = translate([parts for _, _, parts in todo])
    used = Counter(
        unit.variants[at][0]
        for unit, its in units
        if its.source is not None and (at := its.target_or_empty) is not None
    )
    tag = used.most_common(1)[0][0] if used else tgt_tag
    out, done = [], 0
    for (unit, its, _), output in zip(todo, outputs, strict=True):
        segment = f"<seg>{output}</seg>".encode()
        if its.empty is None:
            attributes = f"{unit.attribute}={quoteattr(tag)} creationid={quoteattr(CREATOR)}"
            out += [
                data[done : unit.end],
                _space_before(data, unit.begin),
                f"<tuv {attributes}>".encode(),
                segment,
                b"</tuv>",
            ]
            done = unit.end
        else:
            start_tag = START_TAG.match(data, unit.begins[its.empty])
            assert start_tag is not None
            begin, end = unit.segments[its.empty]
            out += [
                data[done : start_tag.start()],
                _with_changeid(start_tag[0]),
                data[start_tag.end() : begin],
                segment,
            ]
            done = end
    return b"".join([*out, data[done:]]).decode()


def _has_text(parts: Sequence[Part]) -> bool:
    """Whether there is text outside of codes."""
    return any(isinstance(part, Span) and part.plain.strip() for part in parts)


class _Sides:
    """The variants of a unit with the source, the target, and an empty target; None where there is none.

    The longer tag is looked up first: next to `pt-BR`, `pt` is another variety.
    """

    def __init__(self, unit: _Unit, src_tag: str, tgt_tag: str) -> None:
        full = [at for at, (_, text) in enumerate(unit.variants) if text]
        variants = [unit.variants[at] for at in full]
        if len(tgt_tag) > len(src_tag):
            target = variant_of(variants, tgt_tag)
            source = variant_of(variants, src_tag, taken=target)
        else:
            source = variant_of(variants, src_tag)
            target = variant_of(variants, tgt_tag, taken=source)
        self.source = None if source is None else full[source]
        self.target = None if target is None else full[target]
        vacant = [
            at
            for at, (tag, text) in enumerate(unit.variants)
            if not text and not (len(src_tag) > len(tgt_tag) and same_tag(src_tag, tag))
        ]
        empty = variant_of([unit.variants[at] for at in vacant], tgt_tag)
        self.empty = None if empty is None else vacant[empty]

    @property
    def target_or_empty(self) -> int | None:
        """The variant of the target, with or without text."""
        return self.empty if self.target is None else self.target


def _with_changeid(start_tag: bytes) -> bytes:
    """The start tag of a variant that heed has changed."""
    creator = quoteattr(CREATOR).encode()
    for attribute in _ATTRIBUTE.finditer(start_tag):
        if attribute[1] == b"changeid":
            return start_tag[: attribute.start(2)] + creator + start_tag[attribute.end(2) :]
    return start_tag[:-1] + b" changeid=" + creator + b">"


def _space_before(data: bytes, place: int) -> bytes:
    """The white space before a place."""
    begin = place
    while begin and data[begin - 1] in b" \t\r\n":
        begin -= 1
    return data[begin:place]
