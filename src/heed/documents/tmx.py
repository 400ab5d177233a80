"""How do the units of a translation memory, TMX, get the translations that they lack?

A unit with a text in the source's language and none in the target's gets one, `<tuv xml:lang="de" creationid="heed">`,
beside its others; or in the segment that is there and empty, whose variant is then marked with `changeid="heed"`.
Everything else stays as it is written. A segment's formatting codes go with its words (`segments.py`).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from xml.sax.saxutils import quoteattr

from heed.core.errors import DataError, UsageError
from heed.documents.spans import Part, Stretch
from heed.documents.tables import Tell
from heed.documents.tmx_segments import START_TAG, behind_element, parse_segment
from heed.text.language.codes import same_tag
from heed.text.readers.tmx import UnitParser, tag_of, variant_of
from heed.text.readers.to_translate import Sides

Documents = Callable[[Sequence[Sequence[Part]]], list[str]]
"""Translates many marked-up texts at once."""

CREATOR = "heed"
"""Who is said to have made or changed a variant."""

_BLOCK = 1 << 16
_ATTRIBUTE = re.compile(rb"""\s([^\s=]+)\s*=\s*("[^"]*"|'[^']*')""")


@dataclass
class _Unit:
    """Where the parts of a unit are, in bytes of UTF-8."""

    variants: list[tuple[str, str]] = field(default_factory=list)
    """Language and text of each."""
    segments: list[tuple[int, int]] = field(default_factory=list)
    """From the first byte of `<seg>` to the one behind `</seg>`, of each."""
    attribute: str = "xml:lang"
    """What says a variant's language."""
    begins: list[int] = field(default_factory=list)
    """Of each variant with a segment."""
    begin: int = 0
    """Of the last variant."""
    end: int = 0
    """Behind the last variant."""


class _Places(UnitParser):
    """Units, and where they are."""

    def __init__(self, name: str, data: bytes) -> None:
        super().__init__(name)
        self.found: list[_Unit] = []
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
            end = behind_element(self._data, self._expat.CurrentByteIndex, element)
            self._place.segments.append((self._segment, end))
            self._place.begins.append(self._place.begin)
        elif not was_inside and element == "tuv":
            self._place.end = behind_element(self._data, self._expat.CurrentByteIndex, element)
        elif not was_inside and element == "tu" and self._place.end:  # or there is no variant, whatever else
            self._place.variants = self._unit
            self.found.append(self._place)


def translate_tmx(text: str, name: str, sides: Sides, translate: Documents, tell: Tell) -> str:
    """A memory with what its units lack. Raises DataError for what is no TMX, UsageError without both languages."""
    if not (sides.src_lang and sides.tgt_lang):
        raise UsageError(f"{name}: the model does not say its languages, by which the texts of a memory are found.")
    data = text.encode()
    parser = _Places(name, data)
    for begin in range(0, len(text), _BLOCK):
        parser.feed(text[begin : begin + _BLOCK])
    parser.feed("", is_last=True)
    src_tag, tgt_tag = tag_of(sides.src_lang), tag_of(sides.tgt_lang)
    units = [(unit, _Sides(unit, src_tag, tgt_tag)) for unit in parser.found]
    if units and all(variant_of(unit.variants, src_tag) is None for unit, _ in units):
        there = Counter(tag for unit, _ in units for tag, _ in unit.variants)
        raise DataError(f"{name}: no unit has {sides.src_lang}; its languages are {', '.join(there) or 'none'}.")
    without = [
        (unit, found, parse_segment(data[slice(*unit.segments[found.source])]))
        for unit, found in units
        if found.source is not None and found.target is None
    ]
    todo = [(unit, found, parts) for unit, found, parts in without if _has_text(parts)]
    tell(f"{len(todo):,} of {len(units):,} units have {sides.src_lang} and no {sides.tgt_lang}")
    outputs = translate([parts for _, _, parts in todo])
    used = Counter(
        unit.variants[at][0]
        for unit, found in units
        if found.source is not None and (at := found.target_or_empty) is not None
    )
    tag = used.most_common(1)[0][0] if used else tgt_tag
    out, done = [], 0
    for (unit, found, _), output in zip(todo, outputs, strict=True):
        segment = f"<seg>{output}</seg>".encode()
        if found.empty is None:
            says = f"{unit.attribute}={quoteattr(tag)} creationid={quoteattr(CREATOR)}"
            out += [
                data[done : unit.end],
                _space_before(data, unit.begin),
                f"<tuv {says}>".encode(),
                segment,
                b"</tuv>",
            ]
            done = unit.end
        else:
            start_tag = START_TAG.match(data, unit.begins[found.empty])
            assert start_tag is not None
            begin, end = unit.segments[found.empty]
            out += [data[done : start_tag.start()], _marked(start_tag[0]), data[start_tag.end() : begin], segment]
            done = end
    return b"".join([*out, data[done:]]).decode()


def _has_text(parts: Sequence[Part]) -> bool:
    """Whether there is something to translate outside of codes."""
    return any(isinstance(part, Stretch) and part.plain.strip() for part in parts)


class _Sides:
    """Which variants of a unit have the source, the target, and no text for the target (None: none has).

    Of two tags the longer is looked for first: beside `pt-BR`, `pt` is another variety.
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
        """Where the target is or might be."""
        return self.empty if self.target is None else self.target


def _marked(start_tag: bytes) -> bytes:
    """The tag of a variant that says who changed it."""
    by = quoteattr(CREATOR).encode()
    for attribute in _ATTRIBUTE.finditer(start_tag):
        if attribute[1] == b"changeid":
            return start_tag[: attribute.start(2)] + by + start_tag[attribute.end(2) :]
    return start_tag[:-1] + b" changeid=" + by + b">"


def _space_before(data: bytes, place: int) -> bytes:
    """The white space that ends at a place."""
    begin = place
    while begin and data[begin - 1] in b" \t\r\n":
        begin -= 1
    return data[begin:place]
