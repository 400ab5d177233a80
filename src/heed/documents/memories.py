"""How do the units of a translation memory, TMX, get the translations that they lack?

A unit with a text in the source's language and none in the target's gets one, `<tuv xml:lang="de" creationid="heed">`,
beside its others, or in the segment that is there and empty. Everything else stays as it is written. The text of a
segment is what a reader sees (`heed.text.readers.tmx`): formatting codes inside it are not carried over.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from xml.sax.saxutils import escape, quoteattr

from heed.core.errors import DataError, UsageError
from heed.documents.tables import Lines, Sides
from heed.text.languages import same_tag
from heed.text.readers.tmx import UnitParser, tag_of, variant_of

CREATOR = "heed"
"""Who is said to have made a variant."""


@dataclass
class _Unit:
    """Where the parts of a unit are, in bytes of UTF-8."""

    variants: list[tuple[str, str]] = field(default_factory=list)
    """Language and text of each."""
    segments: list[tuple[int, int]] = field(default_factory=list)
    """From the first byte of `<seg>` to the one behind `</seg>`, of each."""
    attribute: str = "xml:lang"
    """What says a variant's language."""
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
            self._place.attribute = "lang" if "lang" in attributes else "xml:lang"
        elif not self._codes and element == "seg":
            self._segment = at
        super()._start(element, attributes)

    def _end(self, element: str) -> None:
        was_inside = bool(self._codes)
        super()._end(element)
        if was_inside and not self._codes:
            self._place.segments.append((self._segment, self._behind(self._segment)))
        elif not was_inside and element == "tuv":
            self._place.end = self._behind(self._place.begin)
        elif not was_inside and element == "tu":
            self._place.variants = self._unit
            self.found.append(self._place)

    def _behind(self, begin: int) -> int:
        """The place behind the tag that ends what began there; it may be the one that begins it, `<seg/>`."""
        first = self._data.index(b">", begin)
        is_empty = self._data[first - 1 : first] == b"/"
        return (first if is_empty else self._data.index(b">", self._expat.CurrentByteIndex)) + 1


def translate_tmx(text: str, name: str, sides: Sides, translate: Lines) -> str:
    """A memory with what its units lack. Raises DataError for what is no TMX, UsageError without both languages."""
    if not (sides.src_lang and sides.tgt_lang):
        raise UsageError(f"{name}: the model does not say its languages, by which the texts of a memory are found.")
    data = text.encode()
    parser = _Places(name, data)
    parser.feed(text)
    parser.feed("", is_last=True)
    src_tag, tgt_tag = tag_of(sides.src_lang), tag_of(sides.tgt_lang)
    if parser.found and all(variant_of(unit.variants, src_tag) is None for unit in parser.found):
        there = Counter(tag for unit in parser.found for tag, _ in unit.variants)
        raise DataError(f"{name}: no unit has {sides.src_lang}; its languages are {', '.join(there) or 'none'}.")
    todo = [(unit, *_lacking(unit, src_tag, tgt_tag)) for unit in parser.found]
    wanted = [(unit, source, empty) for unit, source, empty in todo if source is not None]
    outputs = translate([unit.variants[source][1] for unit, source, _ in wanted])
    tag = _tag_used(parser.found, tgt_tag)
    out, done = [], 0
    for (unit, _, empty), output in zip(wanted, outputs, strict=True):
        segment = f"<seg>{escape(output)}</seg>"
        if empty is not None:
            begin, end = unit.segments[empty]
            new = segment
        else:
            begin = end = unit.end
            says = f"{unit.attribute}={quoteattr(tag)} creationid={quoteattr(CREATOR)}"
            new = f"{_indent(data, unit.begin)}<tuv {says}>{segment}</tuv>"
        out += [data[done:begin], new.encode()]
        done = end
    return b"".join([*out, data[done:]]).decode()


def _lacking(unit: _Unit, src_tag: str, tgt_tag: str) -> tuple[int | None, int | None]:
    """Which variant is to be translated (None: there is none, or it is), and which empty one takes it, if one does."""
    if len(tgt_tag) > len(src_tag):
        target = variant_of(unit.variants, tgt_tag)
        source = variant_of(unit.variants, src_tag, taken=target)
    else:
        source = variant_of(unit.variants, src_tag)
        target = variant_of(unit.variants, tgt_tag, taken=source)
    if source is None or not unit.variants[source][1] or (target is not None and unit.variants[target][1]):
        return None, None
    return source, target


def _tag_used(units: Sequence[_Unit], tgt_tag: str) -> str:
    """How the memory calls the target's language; as the model does, where it has none of it yet."""
    used = Counter(tag for unit in units for tag, _ in unit.variants if same_tag(tgt_tag, tag))
    return used.most_common(1)[0][0] if used else tgt_tag


def _indent(data: bytes, begin: int) -> str:
    """The white space before a variant."""
    before = data[:begin]
    return before[len(before.rstrip()) :].decode()
