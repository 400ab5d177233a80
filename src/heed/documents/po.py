"""Message catalogues of gettext (PO, and POT templates): fills in missing translations.

| entry | what happens to it |
| --- | --- |
| with a translation in all forms, not `fuzzy` | stays as it is |
| without one, or with an empty form | gets one: of the singular for the number one, of the plural for all others |
| `fuzzy` | gets a new one, and stays `fuzzy` for whoever reviews it |
| `charset` in the header | becomes `UTF-8` if the encoding lacks a character of a translation |
| obsolete (`#~`), and the header | stays; only an empty `Language` of the header is set |

The lines of a `msgstr` are replaced where they are, and every other byte stays: comments, order, wrapping, line ends.
A library of the format, such as polib, writes the whole file anew and wraps its lines differently.
"""

from __future__ import annotations

import codecs
import gettext
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain

from heed.core.errors import DataError
from heed.documents.file_format import FileContext, TextFormat
from heed.documents.messages import translate_messages
from heed.documents.text_translator import TextTranslator

WIDTH = 76
"""Characters between the quotes of a line that is wrapped."""
MAX_FORMS = 10
"""Plural forms of a language; Arabic has six."""
NO_FORM = -1
_FIELD = re.compile(r'\s*(msgctxt|msgid_plural|msgid|msgstr)\s*(?:\[(\d)\])?\s*("(?:[^"\\]|\\.)*")\s*')
_CONTINUED = re.compile(r'\s*("(?:[^"\\]|\\.)*")\s*')
_BYTE = re.compile(r"\\(?:x([0-9a-fA-F]{1,2})|([0-7]{1,3}))")
"""A byte of a character, written by its number."""
_ESCAPE = re.compile(rf"(?P<bytes>(?:{_BYTE.pattern})+)|\\(?P<sign>.)")
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v"}
_WRITTEN = str.maketrans(
    {"\\": "\\\\", '"': '\\"', "\0": "\\000", **{char: f"\\{sign}" for sign, char in _ESCAPED.items()}}
)
_CHARSET = re.compile(rb'Content-Type:[^"\n]{0,80}charset=([\w.:-]{1,40})')
_DECLARED = re.compile(r'(Content-Type:[^"\n]{0,80}charset=)[\w.:-]{1,40}')
_PLURAL_FORMS = re.compile(r"^Plural-Forms:\s*nplurals\s*=\s*(\d+)\s*;\s*plural\s*=\s*([^;\n]+)", re.MULTILINE)
_LANGUAGE = re.compile(r'(?m)^("Language:) ?(\\n")')
_NO_CHARSET = re.compile(r'(?mi)^("Content-Type:[^"\n]{0,80}charset=)(?:CHARSET|(?:US-)?ASCII)(?=\\n")')
"""What templates and `msginit` declare."""
_FUZZY = re.compile(r"#,.*\bfuzzy\b")
_LINE = re.compile(r"[^\n]*\n|[^\n]+")
_WORD = re.compile(r"\S*\s+|\S+")


@dataclass(frozen=True)
class _Field:
    """A keyword with its text, in a range of lines."""

    first: int
    last: int
    text: str

    @property
    def is_broken(self) -> bool:
        """Whether the text is written in several lines."""
        return self.last > self.first


@dataclass
class _Entry:
    """A message with its forms: the translation, or those of a plural by number."""

    is_fuzzy: bool = False
    ids: list[_Field] = field(default_factory=list)
    """`msgid` and `msgid_plural`."""
    forms: dict[int, _Field] = field(default_factory=dict)

    @property
    def needs_translation(self) -> bool:
        """Whether it is a message without a translation that counts."""
        has_all = all(form.text for form in self.forms.values())
        return bool(self.ids and self.ids[0].text and self.forms) and (self.is_fuzzy or not has_all)


def encoding_of(data: bytes, name: str) -> str:
    """The encoding in the header; UTF-8 for a template."""
    declared = _CHARSET.search(data[:10_000])
    encoding = declared[1].decode() if declared else "utf-8"
    if encoding == "CHARSET" or data.startswith(codecs.BOM_UTF8):
        return "utf-8-sig"
    try:
        codec = codecs.lookup(encoding).name
    except LookupError:
        codec = ""
    if codec in ("utf-8", "ascii"):
        return "utf-8-sig"
    if not re.match("ascii|iso8859|cp[0-9]|koi8|euc|gb|big5|shift_jis", codec):
        raise DataError(f"{name}: unsupported encoding {encoding}. Convert the file to UTF-8 (msgconv -t UTF-8).")
    return codec


def translate_po(text: str, translator: TextTranslator, context: FileContext) -> str:
    """The catalogue with its missing translations. Raises DataError for what is not PO."""
    lines = text.split("\n")
    entries = list(translator.checked(_entries(lines, context.name)))
    header = next((each.forms[0] for each in entries if each.ids and not each.ids[0].text and 0 in each.forms), None)
    number, singular = _plural_forms(header.text if header else "")
    todo = [each for each in entries if each.needs_translation]
    outputs = iter(translate_messages([each.text for entry in todo for each in entry.ids], translator))
    context.notify(f"{len(todo):,} of {sum(bool(each.ids and each.ids[0].text) for each in entries):,} entries")
    edits: dict[int, tuple[int, list[str]]] = {}
    for entry in todo:
        texts = [next(outputs) for _ in entry.ids]
        is_plural = len(texts) > 1
        wanted = range(max(number, *entry.forms, 0)) if is_plural and number else sorted(entry.forms)
        last = entry.forms[max(entry.forms)]
        for form in sorted({*wanted, *entry.forms}):
            keyword = f"msgstr[{form}]" if is_plural else "msgstr"
            old = entry.forms.get(form)
            if old is not None and old.text and not entry.is_fuzzy:
                continue
            source = entry.ids[is_plural and form != singular]
            output = _with_ends(source.text, texts[is_plural and form != singular])
            new = _written(keyword, output, source.is_broken, "\r" if lines[last.first].endswith("\r") else "")
            if old is not None:
                edits[old.first] = (old.last, new)
            else:
                end, before = edits.get(last.first, (last.last, lines[last.first : last.last + 1]))
                edits[last.first] = (end, [*before, *new])
    if header:
        is_ascii = text.isascii() and all(map(str.isascii, chain.from_iterable(new for _, new in edits.values())))
        old_header = lines[header.first : header.last + 1]
        edits[header.first] = header.last, _header("\n".join(old_header), context, not is_ascii and bool(edits))
    out, done = [], 0
    for first, (last_line, new) in sorted(edits.items()):
        out += [*lines[done:first], *new]
        done = last_line + 1
    return "\n".join([*out, *lines[done:]])


def _in_utf_8(text: str) -> str:
    """The catalogue with UTF-8 as its encoding."""
    return _DECLARED.sub(r"\1UTF-8", text, count=1)


PO = TextFormat(is_bilingual=True, write=translate_po, declared=encoding_of, in_utf_8=_in_utf_8)


def _header(written: str, context: FileContext, needs_utf_8: bool) -> list[str]:
    """The lines of the header, with its language if that is empty, and with UTF-8 for ASCII if needed."""
    language = context.sides.tgt_lang.replace("-", "_")
    written = _LANGUAGE.sub(rf"\1 {language}\2", written, count=1) if language else written
    return (_NO_CHARSET.sub(r"\1UTF-8", written, count=1) if needs_utf_8 else written).split("\n")


def _plural_forms(header: str) -> tuple[int, int]:
    """The number of plural forms, 0 if it is not known, and the form for the number one alone."""
    declared = _PLURAL_FORMS.search(header)
    if declared is None:
        return 0, 0
    try:
        number = min(int(declared[1][:3]), MAX_FORMS)
        return number, int(gettext.c2py(declared[2])(1)) if number > 1 else NO_FORM
    except (ValueError, ZeroDivisionError, RecursionError):
        return 0, 0


def _entries(lines: Sequence[str], name: str) -> Iterator[_Entry]:
    entry = _Entry()
    number = 0
    while number < len(lines):
        line = lines[number]
        if not line.strip() or line.lstrip().startswith("#"):
            if entry.forms:
                yield entry
            if entry.forms or not line.strip() or line.startswith("#~"):  # comments of an obsolete entry end with it
                entry = _Entry()
            entry.is_fuzzy |= _FUZZY.match(line) is not None
            number += 1
            continue
        found = _FIELD.fullmatch(line)
        if found is None:
            raise DataError(f"{name}:{number + 1}: not a line of a PO file: {line.strip()[:60]}")
        first, chunks = number, [found[3]]
        number += 1
        while number < len(lines) and (continued := _CONTINUED.fullmatch(lines[number])):
            chunks.append(continued[1])
            number += 1
        value = _Field(first, number - 1, "".join(map(_read, chunks)))
        if found[1] == "msgstr":
            entry.forms[int(found[2] or 0)] = value
            continue
        if entry.forms:
            yield entry
            entry = _Entry()
        if found[1] != "msgctxt":
            entry.ids.append(value)
    if entry.forms:
        yield entry


def _read(quoted: str) -> str:
    """The text of a quoted string."""

    def characters(match: re.Match[str]) -> str:
        if match["bytes"] is None:
            return _ESCAPED.get(match["sign"], match["sign"])
        data = bytes(int(x, 16) if x else int(octal, 8) & 0xFF for x, octal in _BYTE.findall(match["bytes"]))
        try:
            return data.decode()
        except UnicodeDecodeError:
            return data.decode("latin-1")

    return _ESCAPE.sub(characters, quoted[1:-1])


def _with_ends(source: str, output: str) -> str:
    """The translation with a line break at its ends exactly where the source has one, which msgfmt demands."""
    first = "\n" if source.startswith("\n") else ""
    last = "\n" if source.endswith("\n") else ""
    return first + output.strip("\n") + last


def _written(keyword: str, text: str, is_broken: bool, end: str) -> list[str]:
    """The lines of a translation, broken as gettext breaks them if its source is."""
    parts = _LINE.findall(text) if is_broken else [text]
    parts = [line for part in parts for line in (_wrapped(part) if is_broken else [part])]
    first = [] if len(parts) == 1 else [""]
    quoted = [f'"{part.translate(_WRITTEN)}"' for part in [*first, *parts]]
    return [f"{keyword} {quoted[0]}{end}", *(f"{each}{end}" for each in quoted[1:])]


def _wrapped(line: str) -> Iterator[str]:
    """A line in pieces of at most `WIDTH` characters, each with the space that ends it."""
    piece = ""
    for word in _WORD.findall(line):
        if piece and len((piece + word).rstrip()) > WIDTH:
            yield piece
            piece = ""
        piece += word
    if piece:
        yield piece
