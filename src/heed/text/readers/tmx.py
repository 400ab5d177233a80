"""How do sentence pairs come out of a translation memory, TMX (LISA, versions 1.1 to 1.4b)?

    <tu>
      <tuv xml:lang="en-US"><seg>A <bpt i="1">{b}</bpt>dog</seg></tuv>
      <tuv xml:lang="de"><seg>Ein Hund</seg></tuv>
    </tu>

A unit is a pair when it has both languages; `en` takes `en-US`, unless that is the other side, and where neither is
there, `eng`. The text of a segment is what a reader sees: the codes of other formats (`bpt`, `ept`, `it`, `ph`, `ut`)
are left out, what is marked up (`hi`) or stands inside a code as text of its own (`sub`) stays. A space parts what a
line break or a tab in a code that stands alone has parted, and a `sub` from what is beside it. The file is streamed.
Entities that the file declares are refused, and nothing outside it is opened: a memory from a stranger can neither grow
without end nor read other files.
"""

from __future__ import annotations

import codecs
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import chain, islice
from pathlib import Path
from xml.parsers import expat

from heed.core.errors import DataError, UsageError
from heed.text.archives import DAMAGED, damage, open_bytes, shown_name
from heed.text.language.codes import code_of, same_tag, with_code
from heed.text.readers.corpus import CorpusFiles, Pair
from heed.text.readers.lines import UTF_16_MARKS, Errors
from heed.text.readers.tables import one_line

CODES = frozenset({"bpt", "ept", "it", "ph", "ut"})
"""Elements that hold codes of the format that the text came from."""

_STANDALONE = frozenset({"it", "ph", "ut"})
"""Codes that may stand for a line break; the others begin and end formatting."""

UNITS_TO_ASK = 1000
"""Units whose languages are told to somebody who has not said which ones are wanted."""

_BLOCK = 1 << 16
_DECLARED = re.compile(rb"""^\s*<\?xml[^>]*?encoding\s*=\s*["']([A-Za-z0-9._-]+)""")
_EIGHT_BIT = re.compile("ascii|iso8859|cp[0-9]|koi8|mac|shift_jis|euc|gb|big5")
"""Encodings that are text; Python also knows others."""

_BREAK = re.compile(r"[\n\r\t]|<(?:\w+:)?br\b|\\(?:n|r|t|line|par|tab)\b", re.IGNORECASE)
"""A line break or a tab in a code: itself, or in HTML, Word, RTF and the strings of programs."""
_BREAK_TYPES = ("lb", "pb", "cb")
"""The standard's names for breaks of lines, pages and columns."""
_GAP = "\0"
"""Where words must not grow together; no text of XML holds this character."""
_GAPS = re.compile(r"\0*(\s)\0*|\0+")

_FORBIDDEN = re.compile(r"[\0-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
_REFERENCE = re.compile(r"&#(?:x(?P<hex>[0-9a-fA-F]{1,12})|(?P<decimal>[0-9]{1,12}));")
_LONGEST_REFERENCE = 16

Unit = list[tuple[str, str]]
"""Language and text of each variant of a unit, in the order of the file."""


def read_tmx(files: CorpusFiles, errors: Errors, left_out: Counter[str]) -> Iterator[Pair]:
    """The units that have both languages; the others are counted in `left_out`.

    Raises UsageError when the languages were not said, with those that are there; DataError, with file and line, for
    what is no TMX, and when no unit has both languages.
    """
    name = shown_name(files.pairs or "")
    units = read_units(files.pairs or "", errors)
    if not (files.src_lang and files.tgt_lang):
        found = _languages(islice(units, UNITS_TO_ASK))
        advice = "Say which is the source and which the target, such as --src-lang en --tgt-lang de."
        raise UsageError(f"{name}: the languages of its units are {_listed(found)}. {advice}")
    languages: Counter[str] = Counter()
    num_pairs = 0
    src_tag, tgt_tag = (tag_of(language) for language in (files.src_lang, files.tgt_lang))
    for unit in units:
        languages.update({tag for tag, _ in unit})
        src, tgt = sides_of(unit, src_tag, tgt_tag)
        if src is not None and tgt is not None:
            num_pairs += 1
            yield src, tgt
        else:
            missing = [tag for tag, text in ((files.src_lang, src), (files.tgt_lang, tgt)) if text is None]
            left_out[f"unit(s) without {' and '.join(missing)}"] += 1
    if not languages:
        raise DataError(f"{name}: there is no unit (<tu>) with text in it. Export the memory again.")
    if not num_pairs:
        raise DataError(
            f"{name}: no unit has both {files.src_lang} and {files.tgt_lang}; its languages are {_listed(languages)}."
        )


def is_break(element: str, kind: str = "", text: str = "") -> bool:
    """Whether a code of this `type`, or with this text in it, stands for a line break or a tab."""
    return element in _STANDALONE and (kind in _BREAK_TYPES or _BREAK.search(text) is not None)


def tag_of(language: str) -> str:
    """`en` for `English`; a tag, such as `en-US` or `eng`, is what it is."""
    return language if len(language) <= 3 or "-" in language or "_" in language else code_of(language) or language


def _languages(units: Iterable[Unit]) -> Counter[str]:
    """How many units have each language."""
    return Counter(tag for unit in units for tag in {tag for tag, _ in unit})


def _listed(languages: Counter[str]) -> str:
    return ", ".join(f"{tag} ({count:,})" for tag, count in languages.most_common(10)) or "none"


def sides_of(unit: Unit, src_lang: str, tgt_lang: str) -> tuple[str | None, str | None]:
    """The texts in two languages, never of one variant: beside `pt-BR`, `pt` is another variety."""
    if len(tgt_lang) > len(src_lang):
        tgt, src = sides_of(unit, tgt_lang, src_lang)
        return src, tgt
    narrow = variant_of(unit, src_lang)
    wide = variant_of(unit, tgt_lang, taken=narrow)
    return None if narrow is None else unit[narrow][1], None if wide is None else unit[wide][1]


def variant_of(unit: Unit, language: str, taken: int | None = None) -> int | None:
    """Where the text in a language is: of the very tag if there is one, else of the first variety.

    Where there is none either, languages are compared by their codes: the table beside a memory may say `en` for `eng`.
    """
    free = [(at, tag) for at, (tag, _) in enumerate(unit) if at != taken]
    exact = (at for at, tag in free if tag.lower() == language.lower())
    varieties = (at for at, tag in free if same_tag(language, tag))
    by_code = (at for at, tag in free if same_tag(with_code(language), with_code(tag)))
    return next(chain(exact, varieties, by_code), None)


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
        except DAMAGED as error:
            raise DataError(damage(name, error)) from error


def mended(texts: Iterable[str]) -> Iterator[str]:
    """The text with U+FFFD for each character that XML forbids and for each reference to one."""
    rest = ""
    for text in texts:
        whole = rest + text
        at = whole.rfind("&", -_LONGEST_REFERENCE)  # its end may be in the next piece
        end = at if at >= 0 and ";" not in whole[at:] else len(whole)
        yield _FORBIDDEN.sub("\ufffd", _REFERENCE.sub(_mended_reference, whole[:end]))
        rest = whole[end:]
    yield _FORBIDDEN.sub("\ufffd", rest)


def _mended_reference(found: re.Match[str]) -> str:
    return "\ufffd" if _is_forbidden(found) else found[0]


def _is_forbidden(reference: re.Match[str]) -> bool:
    number = int(reference["hex"], 16) if reference["hex"] else int(reference["decimal"])
    return number > sys.maxunicode or _FORBIDDEN.match(chr(number)) is not None


def encoding_of(start: bytes, name: str) -> str:
    """UTF-16 is seen from the first bytes; where these can be read as they are, a declared UTF-16 is a mistake."""
    if start.startswith(UTF_16_MARKS):
        return "utf-16"
    if start[:2] in (b"<\0", b"\0<"):
        return "utf-16-le" if start[0] else "utf-16-be"
    declared = _DECLARED.match(start)
    encoding = declared[1].decode().lower() if declared else "utf-8"
    if encoding.startswith("utf"):
        return "utf-8-sig"
    try:
        known = _EIGHT_BIT.match(codecs.lookup(encoding).name)
    except LookupError:
        known = None
    if not known:
        raise DataError(f"{name}: the encoding {encoding} is not read. Export the memory as UTF-8.")
    return encoding


class UnitParser:
    """Text of a file in pieces to units."""

    def __init__(self, name: str) -> None:
        """`name`: what messages call the file."""
        self._name = name
        self._expat = expat.ParserCreate("utf-8")
        self._expat.buffer_text = True
        self._expat.StartElementHandler = self._start
        self._expat.EndElementHandler = self._end
        self._expat.CharacterDataHandler = self._characters
        self._expat.EntityDeclHandler = self._refuse_declaration
        self._expat.SkippedEntityHandler = self._refuse_entity
        self._units: list[Unit] = []
        self._unit: Unit = []
        self._language = ""
        self._text: list[str] = []
        self._codes: list[str] = []
        """For each open element from `seg` on, the code that its text is part of; empty: of the sentence."""
        self._is_root = True
        self._num_fed = 0
        self._last = b""
        """The end of what was fed, for messages."""

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
        found, self._units = self._units, []
        return found

    def _forbidden(self) -> str:
        """The character that the parser has stumbled over, in words; empty: that was something else."""
        at = self._expat.ErrorByteIndex - self._num_fed + len(self._last)
        text = self._last[at : at + _LONGEST_REFERENCE].decode(errors="ignore") if at >= 0 else ""
        if _FORBIDDEN.match(text):
            return f"the character U+{ord(text[0]):04X}"
        reference = _REFERENCE.match(text)
        return f"the reference {reference[0]}" if reference and _is_forbidden(reference) else ""

    def _start(self, element: str, attributes: dict[str, str]) -> None:
        if self._is_root and element != "tmx":
            raise self._error(f"the file begins with <{element}>, a translation memory with <tmx>")
        self._is_root = False
        if self._codes:
            around = self._codes[-1]
            self._codes.append("" if element == "sub" else around or (element if element in CODES else ""))
            if element == "sub" or is_break(element, attributes.get("type", "")):
                self._text.append(_GAP)
        elif element == "tu":
            self._unit = []
        elif element == "tuv":
            self._language = attributes.get("xml:lang") or attributes.get("lang") or ""
        elif element == "seg":
            self._text, self._codes = [], [""]

    def _end(self, element: str) -> None:
        if self._codes:
            self._codes.pop()
            if element == "sub":
                self._text.append(_GAP)
            if not self._codes:
                text = "".join(self._text)
                if _GAP in text:
                    text = _GAPS.sub(lambda gap: gap[1] or " ", text)
                self._unit.append((self._language, one_line(text).strip()))
        elif element == "tu":
            self._units.append(self._unit)

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
