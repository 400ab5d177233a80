"""Reader of translation memories, TMX (LISA, versions 1.1 to 1.4b).

    <tu>
      <tuv xml:lang="en-US"><seg>A <bpt i="1">{b}</bpt>dog</seg></tuv>
      <tuv xml:lang="de"><seg>Ein Hund</seg></tuv>
    </tu>

A unit is a pair when it has both languages. `en` accepts `en-US`, unless that is the other side, and `eng` if neither
exists. The file is streamed.

The inline codes of other formats (`bpt`, `ept`, `it`, `ph`, `ut`) are left out; text that is marked up (`hi`), or that
is text of its own inside a code (`sub`), stays. A space replaces a line break or a tab in a code that is not paired,
and separates a `sub` from its surroundings. Entities that the file declares are refused and nothing outside it is
opened, so an untrusted memory can neither grow without end nor read other files.
"""

from __future__ import annotations

import codecs
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from xml.parsers import expat

from heed.core.errors import DataError, UsageError
from heed.core.files import format_bytes
from heed.text.archives import MAX_LINE_BYTES, open_bytes, shown_name
from heed.text.language.codes import code_of, same_tag, with_code
from heed.text.readers.corpus import CorpusFiles, Pair
from heed.text.readers.lines import UTF_16_MARKS, Errors
from heed.text.readers.tables import one_line

CODES = frozenset({"bpt", "ept", "it", "ph", "ut"})
"""Elements that hold inline codes of the original format."""

_STANDALONE = frozenset({"it", "ph", "ut"})
"""Codes that may be a line break; the others start and end formatting."""

_BLOCK = 1 << 16
_DECLARED = re.compile(rb"""^\s*<\?xml[^>]*?encoding\s*=\s*["']([A-Za-z0-9._-]+)""")
_EIGHT_BIT = re.compile("ascii|iso8859|cp[0-9]|koi8|mac|shift_jis|euc|gb|big5")
"""Text encodings; Python also has others."""

_BREAK = re.compile(r"[\n\r\t]|<(?:\w+:)?br\b|\\(?:n|r|t|line|par|tab)\b", re.IGNORECASE)
"""A line break or a tab in a code: the character, or its form in HTML, Word, RTF and string literals."""
_BREAK_TYPES = ("lb", "pb", "cb")
"""The standard's names of line, page and column breaks."""
_GAP = "\0"
"""Keeps words apart; XML text never contains this character."""
_GAPS = re.compile(r"\0*(\s)\0*|\0+")

CREATOR = "heed"
"""What heed writes as the `creationid` or `changeid` of its translations."""
_FORBIDDEN = re.compile(r"[\0-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
_REFERENCE = re.compile(r"&#(?:x(?P<hex>[0-9a-fA-F]{1,12})|(?P<decimal>[0-9]{1,12}));")
_LONGEST_REFERENCE = 16


@dataclass(slots=True)
class Variant:
    """The text of a unit in one language. Positions are in bytes of UTF-8."""

    language: str
    text: str
    begin: int
    """Position of its `<tuv>`."""
    segment: tuple[int, int]
    """Positions of its `<seg>` and `</seg>`."""
    is_ours: bool = False
    """Whether heed was the last to change it: nobody has checked this translation."""


@dataclass(slots=True)
class Unit:
    """A translation unit: its variants that have a segment, and where another one can be inserted."""

    variants: list[Variant] = field(default_factory=list)
    begin: int = 0
    """Position of the last `<tuv>`."""
    end: int | None = None
    """Position of the last `</tuv>`; None without any."""
    language_attribute: str = "xml:lang"

    @property
    def languages(self) -> set[str]:
        """The language tags of its variants."""
        return {variant.language for variant in self.variants}


def read_tmx(files: CorpusFiles, errors: Errors, left_out: Counter[str]) -> Iterator[Pair]:
    """The units that have both languages, one of which heed did not write; the others are counted in `left_out`.

    Raises UsageError, with the languages of the file, when the languages were not given; DataError, with file and line,
    for a malformed file, and when no unit has both languages.
    """
    name = shown_name(files.pairs or "")
    units = read_units(files.pairs or "", errors)
    languages: Counter[str] = Counter()
    if not (files.src_lang and files.tgt_lang):
        languages.update(chain.from_iterable(unit.languages for unit in units))
        advice = "Give the source and the target, such as --src-lang en --tgt-lang de."
        raise UsageError(f"{name}: its units are in {_listed(languages)}. {advice}")
    num_pairs = num_ours = 0
    src_tag, tgt_tag = tag_of(files.src_lang), tag_of(files.tgt_lang)
    for unit in units:
        languages.update(unit.languages)
        src, tgt = sides_of(unit.variants, src_tag, tgt_tag)
        if src and tgt and (src.is_ours or tgt.is_ours):
            num_ours += 1
            left_out["unit translated by heed"] += 1
        elif src and tgt:
            num_pairs += 1
            yield src.text, tgt.text
        else:
            missing = [tag for tag, side in ((files.src_lang, src), (files.tgt_lang, tgt)) if side is None]
            left_out[f"unit without {' and '.join(missing)}"] += 1
    if not languages:
        raise DataError(f"{name}: it has no unit (<tu>) with text. Export the memory again.")
    if num_ours and not num_pairs:
        raise DataError(
            f"{name}: all of its translations were made by heed, and nobody has checked them. Have a person review "
            "them first."
        )
    if not num_pairs:
        raise DataError(
            f"{name}: no unit has both {files.src_lang} and {files.tgt_lang}; its units are in {_listed(languages)}."
        )


def _listed(languages: Counter[str]) -> str:
    """The ten most frequent languages; of equally frequent ones, the first by name."""
    ranked = sorted(languages.items(), key=lambda item: (-item[1], item[0]))
    return ", ".join(f"{tag} ({count:,})" for tag, count in ranked[:10]) or "no language"


def tag_of(language: str) -> str:
    """The tag of a language given by name, `en` for `English`; a tag such as `en-US` or `eng` is returned as it is."""
    return language if len(language) <= 3 or "-" in language or "_" in language else code_of(language) or language


def sides_of(variants: Sequence[Variant], src_lang: str, tgt_lang: str) -> tuple[Variant | None, Variant | None]:
    """The variants in two languages, never the same one: next to `pt-BR`, `pt` is another variety."""
    if len(tgt_lang) > len(src_lang):
        tgt, src = sides_of(variants, tgt_lang, src_lang)
        return src, tgt
    narrow = variant_of(variants, src_lang)
    return narrow, variant_of([variant for variant in variants if variant is not narrow], tgt_lang)


def variant_of(variants: Sequence[Variant], language: str) -> Variant | None:
    """The variant in a language: with exactly its tag, else its first variety, else by language code.

    The codes are compared because another file of the corpus may write `en` where this one has `eng`.
    """
    exact = (variant for variant in variants if variant.language.lower() == language.lower())
    varieties = (variant for variant in variants if same_tag(language, variant.language))
    by_code = (variant for variant in variants if same_tag(with_code(language), with_code(variant.language)))
    return next(chain(exact, varieties, by_code), None)


def is_break(element: str, kind: str = "", text: str = "") -> bool:
    """Whether a code with this `type`, or with this text in it, is a line break or a tab."""
    return element in _STANDALONE and (kind in _BREAK_TYPES or _BREAK.search(text) is not None)


def read_units(path: str | Path, errors: Errors = "strict") -> Iterator[Unit]:
    """The units of a memory, streamed. Raises what `open_bytes` raises, and DataError with file and line."""
    name = shown_name(path)
    parser = UnitParser(name)
    texts = _text(path, name, errors)
    for text in texts if errors == "strict" else mended(texts):
        yield from parser.feed(text)
    yield from parser.feed("", is_last=True)


def _text(path: str | Path, name: str, errors: Errors) -> Iterator[str]:
    """The file as text: UTF-8, UTF-16 by its byte-order mark, or what the XML declaration says."""
    number = 1
    with open_bytes(path) as file:
        try:
            block = file.read(_BLOCK)
            encoding = encoding_of(block, name)
            decoder = codecs.getincrementaldecoder(encoding)(errors)
            while block:
                text = decoder.decode(block)
                yield text
                number += text.count("\n")
                block = file.read(_BLOCK)
            yield decoder.decode(b"", final=True)
        except UnicodeDecodeError as error:
            number += error.object.count(b"\n", 0, error.start)
            what = f"not valid {encoding.upper().removesuffix('-SIG')} (0x{error.object[error.start]:02X})"
            raise DataError(f"{name}:{number}: {what}. Export the memory again, or pass --errors replace.") from error


def mended(texts: Iterable[str]) -> Iterator[str]:
    """The text with U+FFFD in place of every character that XML forbids and every reference to one."""
    rest = ""
    for text in texts:
        whole = rest + text
        at = whole.rfind("&", -_LONGEST_REFERENCE)  # it may end in the next piece
        end = at if at >= 0 and ";" not in whole[at:] else len(whole)
        references = _REFERENCE.sub(lambda match: "\ufffd" if _is_forbidden(match) else match[0], whole[:end])
        yield _FORBIDDEN.sub("\ufffd", references)
        rest = whole[end:]
    yield _FORBIDDEN.sub("\ufffd", rest)


def _is_forbidden(reference: re.Match[str]) -> bool:
    number = int(reference["hex"], 16) if reference["hex"] else int(reference["decimal"])
    return number > sys.maxunicode or _FORBIDDEN.match(chr(number)) is not None


def encoding_of(start: bytes, name: str) -> str:
    """The encoding, by the first bytes and then the XML declaration; a UTF-16 that is only declared is a mistake."""
    if start.startswith(UTF_16_MARKS):
        return "utf-16"
    if start[:2] in (b"<\0", b"\0<"):
        return "utf-16-le" if start[0] else "utf-16-be"
    declared = _DECLARED.match(start)
    encoding = declared[1].decode().lower() if declared else "utf-8"
    if encoding.startswith("utf"):
        return "utf-8-sig"
    try:
        is_supported = _EIGHT_BIT.match(codecs.lookup(encoding).name) is not None
    except LookupError:
        is_supported = False
    if not is_supported:
        raise DataError(f"{name}: unsupported encoding {encoding}. Export the memory as UTF-8.")
    return encoding


class UnitParser:
    """Turns the text of a file, given in pieces, into units."""

    def __init__(self, name: str) -> None:
        """`name`: the file's name in messages."""
        self._name = name
        self._expat = expat.ParserCreate("utf-8")
        self._expat.buffer_text = True
        self._expat.StartElementHandler = self._start
        self._expat.EndElementHandler = self._end
        self._expat.CharacterDataHandler = self._characters
        self._expat.EntityDeclHandler = self._refuse_declaration
        self._expat.SkippedEntityHandler = self._refuse_entity
        self._units: list[Unit] = []
        self._unit = Unit()
        self._language = ""
        self._is_ours = False
        self._segment = 0
        self._text: list[str] = []
        self._codes: list[str] = []
        """For each open element from `seg` on, the inline code that its text belongs to; empty: the sentence."""
        self._is_root = True
        self._num_fed = 0
        self._last_end = 0
        """Where the last unit ended."""
        self._last = b""
        """The end of the text parsed so far, for messages."""

    def feed(self, text: str, is_last: bool = False) -> list[Unit]:
        """The units that end in this piece."""
        data = text.encode()
        self._num_fed += len(data)
        self._last = self._last[-_BLOCK:] + data
        try:
            self._expat.Parse(data, is_last)
        except expat.ExpatError as error:
            if forbidden := self._forbidden():
                what = f"XML does not allow {forbidden}. Export the memory again, or pass --errors replace"
                raise self._error(what, error.lineno) from error
            reason = expat.ErrorString(error.code)
            raise self._error(f"not well-formed XML ({reason}). Export the memory again", error.lineno) from error
        if self._num_fed - self._last_end > MAX_LINE_BYTES:
            most = format_bytes(MAX_LINE_BYTES)
            raise self._error(f"more than {most} without the end of a unit (</tu>), the most that heed reads")
        units, self._units = self._units, []
        return units

    def _forbidden(self) -> str:
        """The forbidden character that the parser stopped at, in words; empty if it stopped at something else."""
        at = self._expat.ErrorByteIndex - self._num_fed + len(self._last)
        text = self._last[at : at + _LONGEST_REFERENCE].decode(errors="ignore") if at >= 0 else ""
        if _FORBIDDEN.match(text):
            return f"the character U+{ord(text[0]):04X}"
        reference = _REFERENCE.match(text)
        return f"the reference {reference[0]}" if reference and _is_forbidden(reference) else ""

    def _start(self, element: str, attributes: dict[str, str]) -> None:
        if self._is_root and element != "tmx":
            raise self._error(f"the file starts with <{element}>, but a translation memory starts with <tmx>")
        self._is_root = False
        if self._codes:
            around = self._codes[-1]
            self._codes.append("" if element == "sub" else around or (element if element in CODES else ""))
            if element == "sub" or is_break(element, attributes.get("type", "")):
                self._text.append(_GAP)
        elif element == "tu":
            self._unit = Unit()
        elif element == "tuv":
            self._language = attributes.get("xml:lang") or attributes.get("lang") or ""
            self._is_ours = (attributes.get("changeid") or attributes.get("creationid")) == CREATOR
            self._unit.begin = self._expat.CurrentByteIndex
            is_old = "lang" in attributes and "xml:lang" not in attributes
            self._unit.language_attribute = "lang" if is_old else "xml:lang"
        elif element == "seg":
            self._text, self._codes, self._segment = [], [""], self._expat.CurrentByteIndex

    def _end(self, element: str) -> None:
        if self._codes:
            self._codes.pop()
            if element == "sub":
                self._text.append(_GAP)
            if not self._codes:
                self._end_segment()
        elif element == "tuv":
            self._unit.end = self._expat.CurrentByteIndex
        elif element == "tu":
            self._units.append(self._unit)
            self._last_end = self._expat.CurrentByteIndex

    def _end_segment(self) -> None:
        text = "".join(self._text)
        if _GAP in text:
            text = _GAPS.sub(lambda gap: gap[1] or " ", text)
        segment = self._segment, self._expat.CurrentByteIndex
        variant = Variant(self._language, one_line(text).strip(), self._unit.begin, segment, self._is_ours)
        self._unit.variants.append(variant)

    def _characters(self, text: str) -> None:
        if self._codes and not self._codes[-1]:
            self._text.append(text)
        elif self._codes and is_break(self._codes[-1], text=text):
            self._text.append(_GAP)

    def _refuse_declaration(self, entity: str, *_: object) -> None:
        raise self._error(f"the file declares the entity {entity}, which heed does not expand. Export the memory again")

    def _refuse_entity(self, entity: str, is_parameter: bool) -> None:
        if not is_parameter:
            raise self._error(f"the entity &{entity}; is not defined. Export the memory again")

    def _error(self, message: str, line: int | None = None) -> DataError:
        return DataError(f"{self._name}:{line or self._expat.CurrentLineNumber}: {message}.")
