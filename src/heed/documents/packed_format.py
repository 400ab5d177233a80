"""Formats of office documents: a zip package, of which some parts hold the text."""

from __future__ import annotations

import html
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import ClassVar

from heed.core.errors import DataError
from heed.documents.codes import has_words
from heed.documents.converters import CONVERTERS
from heed.documents.file_format import SAMPLE, FileContext, FileFormat
from heed.documents.messages import escapes_of
from heed.documents.nested_texts import NestedTexts
from heed.documents.spans import Part, PartsBuilder, Span, without_unclosed
from heed.documents.text_translator import TextTranslator
from heed.documents.xml_tokens import XmlToken, decoded_xml, xml_tokens
from heed.documents.zip_package import ZipPackage

READS = 64 << 20
"""Bytes of a package that are enough to detect its language."""
_TYPES = "[Content_Types].xml"
_FORBIDDEN = dict.fromkeys([*range(9), 11, 12, *range(14, 32), 0xFFFE, 0xFFFF], "\ufffd")
_ATTRIBUTE = re.compile(r"""(?P<before>\s(?P<name>[\w:]+)\s*=\s*(?P<quote>["']))(?P<value>.*?)(?P=quote)""", re.DOTALL)
_KINDS = (
    ("word/document.xml", "a Word document", ".docx"),
    ("xl/workbook.xml", "an Excel workbook", ".xlsx"),
    ("ppt/presentation.xml", "a PowerPoint presentation", ".pptx"),
)
_OPEN_DOCUMENT = "application/vnd.oasis.opendocument."
_OPEN_KINDS = {"text": ".odt", "spreadsheet": ".ods", "presentation": ".odp", "graphics": ".odg"}
_ENTITY = re.compile(r"&#?\w+;")
_FILE = re.compile(r"[^\n]*\.(?:png|jpe?g|gif|bmp|tiff?|svg|[we]mf|webp|ico|pdf)", re.IGNORECASE)
_WRITTEN = {"&": "&amp;", "<": "&lt;", ">": "&gt;", "\r": "&#13;"}
"""Characters that XML would read as something else."""


class PartReader(ABC):
    """Reads a part of a document: its `parts` for the translator, and how the part is written with their translation.

    `keeps`: whether an element with this name and text stays as it is.
    """

    names: ClassVar[Mapping[str, str]] = {}
    """Prefixes of the namespaces that matter."""
    paragraphs: frozenset[str] = frozenset()
    """Elements with text, each by its prefix and its name."""
    left_alone: frozenset[str] = frozenset()
    """Elements whose paragraphs are not translated."""
    described: ClassVar[Mapping[str, frozenset[str]]] = {}
    """Elements with attributes that are texts, such as the description of an image, and the names of these."""
    keeps_space = True

    def __init__(self, tokens: Iterator[XmlToken], keeps: Callable[[str, str], bool]) -> None:
        self.tokens = tokens
        self.keeps = keeps
        self.nested = NestedTexts()
        self._escapes = dict(_WRITTEN)
        self.parts = self._document("")

    @abstractmethod
    def paragraph(self, builder: PartsBuilder, opening: XmlToken) -> None:
        """Read a paragraph after its opening tag, through its closing tag."""

    def plain(self, builder: PartsBuilder, keeps: Callable[[str], bool]) -> None:
        """Read an element of which all content is one text, after its opening tag. `keeps`: whether it stays."""
        tokens = [next(self.tokens)]
        while tokens[-1].kind == "text":
            tokens.append(next(self.tokens))
        text = "".join(self.characters_of(token) for token in tokens[:-1])
        if keeps(text) or tokens[-1].kind != "close" or not any(map(str.isalpha, text)):
            builder.add_markup("".join(token.raw for token in tokens))
        else:
            builder.add_text(text)
            builder.add_markup(tokens[-1].raw)

    def whole(self, outputs: Sequence[str]) -> str:
        """The part, given the translations of its `parts` and of the texts in its markup."""
        main, *nested = map(self.written, outputs)
        return self.nested.filled([main], nested)[0]

    def written(self, output: str) -> str:
        """The markup and the text of a translation."""
        return output

    def name_of(self, token: XmlToken) -> str:
        """The name of an element with the prefix of its namespace."""
        namespace, _, name = token.name.rpartition(" ")
        return f"{self.names.get(namespace, '')}:{name}"

    def characters_of(self, token: XmlToken) -> str:
        """Text of a paragraph. Characters that are written in a special way will be written so again."""
        if token.raw != token.text and len(token.text) == 1:
            self._escapes[token.text] = token.raw
        elif ">" in token.raw:
            self._escapes.pop(">", None)
        return token.text

    def write_return_as(self, form: str) -> None:
        """Write carriage returns in another form than XML does."""
        self._escapes["\r"] = form

    def opaque(self, opening: XmlToken) -> str:
        """An element as it is written, after its opening tag. Paragraphs in it are texts of their own."""
        parts = self._document(opening.name)
        has_text = any(isinstance(part, Span) and part.plain for part in parts)
        return opening.raw + (self.nested.mark(parts) if has_text else _raw(parts))

    def _document(self, until: str) -> list[Part]:
        """The parts to the end of the part, or through the end of the element with this name."""
        builder = PartsBuilder(self.keeps_space, self._escape)
        raw, depth = list[str](), 1
        for token in self.tokens:
            raw.append(self._with_described(token))
            if token.name == until:
                depth += {"open": 1, "close": -1}.get(token.kind, 0)
                if not depth:
                    break
            if token.kind == "open" and self.name_of(token) in self.paragraphs:
                builder.add_markup("".join(raw))
                raw = []
                self.paragraph(builder, token)
            elif token.kind == "open" and self.name_of(token) in self.left_alone:
                raw.append(self._unread(token))
        builder.add_markup("".join(raw))
        return without_unclosed(builder.parts())

    def _with_described(self, token: XmlToken) -> str:
        """A token as it is written, with marks in place of the texts in its attributes."""
        names = self.described.get(self.name_of(token)) if token.kind == "open" else None
        return _ATTRIBUTE.sub(lambda match: self._attribute(match, names), token.raw) if names else token.raw

    def _attribute(self, match: re.Match[str], names: frozenset[str]) -> str:
        """An attribute with a mark in place of its text."""
        text = html.unescape(match["value"])
        if match["name"] not in names or is_no_description(text):
            return match[0]
        quoted = {**_WRITTEN, ">": ">", match["quote"]: html.escape(match["quote"])}
        table = {ord(char): form for char, form in quoted.items()}
        table |= escapes_of(match["value"], _ENTITY, html.unescape)

        def escaped(text: str) -> str:
            return text.translate(_FORBIDDEN).translate(table)

        words = text.strip()
        before, _, after = text.partition(words)
        builder = PartsBuilder(self.keeps_space, escaped)
        builder.add_text(words)
        return f"{match['before']}{escaped(before)}{self.nested.mark(builder.parts())}{escaped(after)}{match['quote']}"

    def _unread(self, opening: XmlToken) -> str:
        """The rest of an element, with nothing translated."""
        raw, depth = list[str](), 1
        while depth:
            token = next(self.tokens)
            raw.append(token.raw)
            depth += {"open": 1, "close": -1}.get(token.kind, 0)
        return "".join(raw)

    def _escape(self, text: str) -> str:
        return text.translate(_FORBIDDEN).translate({ord(char): form for char, form in self._escapes.items()})


def is_no_description(text: str) -> bool:
    """Whether what describes an image is no text: it has no letters, or is a code, an address, the name of a file."""
    text = text.strip()
    return not has_words(text) or "://" in text or _FILE.fullmatch(text) is not None


def _raw(parts: Sequence[Part]) -> str:
    """Parts without text as they are written."""
    tags = (part if isinstance(part, str) else "".join(tag.text for tag in part.tags) for part in parts)
    return "".join(tags)


def _content_types(package: ZipPackage, document: str) -> dict[str, str]:
    """The content types that an Office document declares for single parts."""
    if _TYPES not in package.names:
        return {}
    text, _ = decoded_xml(package.read(_TYPES), f"{document} ({_TYPES})")
    declared = (token.attributes for token in xml_tokens(text, f"{document} ({_TYPES})") if token.kind == "open")
    return {each["PartName"].lstrip("/"): each.get("ContentType", "") for each in declared if "PartName" in each}


def _kind_of(package: ZipPackage) -> tuple[str, str]:
    """What a document is, and its suffix, both empty if that is not known."""
    names = {*package.names}
    for part, kind, suffix in _KINDS:
        if part in names:
            return kind, suffix
    mimetype = package.beginning("mimetype", 100).decode("ascii", "replace") if "mimetype" in names else ""
    kind = mimetype.removeprefix(_OPEN_DOCUMENT).removesuffix("-template").removesuffix("-master")
    if mimetype.startswith(_OPEN_DOCUMENT) and kind in _OPEN_KINDS:
        return f"an OpenDocument {kind}", _OPEN_KINDS[kind]
    return ("an EPUB book", ".epub") if mimetype.startswith("application/epub") else ("", "")


def _advice(suffix: str) -> str:
    """What to do with a document that has another suffix than its own."""
    if suffix in CONVERTERS:
        return f", and {suffix} is not supported. {CONVERTERS[suffix]}"
    return f". Rename it to end in {suffix}"


@dataclass(frozen=True)
class PackedFormat(FileFormat):
    """A format of packed documents."""

    is_packed = True
    main: str = ""
    """The parts with the text of the document itself, a regular expression."""
    root: str = ""
    """The part that each document has, if it is not one of these: a presentation may have no slides."""
    others: str = ""
    """The other parts with text."""
    types: str = ""
    """Content types of parts with text, whatever their names, a regular expression."""
    reader: Callable[[Iterator[XmlToken], Callable[[str, str], bool]], PartReader] = PartReader
    keeps: Callable[[ZipPackage], Callable[[str, str], bool]] = lambda package: lambda name, text: False
    """For a document, which texts stay, as something else in it refers to them."""
    finished: Callable[[Mapping[str, str]], Mapping[str, str]] = lambda parts: {}
    """Of a document with a changed part, given its parts with text: what else changes in them."""

    def translated(self, data: bytes, translator: TextTranslator, context: FileContext) -> bytes:
        """The translated document."""
        package = self._package(data, context.name, context.most_unpacked)
        keeps = self.keeps(package)
        readers: dict[str, tuple[PartReader, str, str]] = {}
        for name in self._with_text(package, context.name):
            text, encoding = decoded_xml(package.read(name), f"{context.name} ({name})")
            tokens = xml_tokens(text, f"{context.name} ({name})", translator.checked)
            readers[name] = self.reader(tokens, keeps), text, encoding
        texts = [parts for reader, _, _ in readers.values() for parts in (reader.parts, *reader.nested.texts)]
        outputs = iter(translator.documents(texts))
        written = {
            name: reader.whole([next(outputs).text for _ in range(1 + len(reader.nested.texts))])
            for name, (reader, _, _) in readers.items()
        }
        changed = {name: content for name, content in written.items() if content != readers[name][1]}
        if changed:
            changed |= self.finished(written)
        encoded = {name: text.encode(readers[name][2], "xmlcharrefreplace") for name, text in changed.items()}
        return package.with_parts(encoded)

    def sample(self, data: bytes, name: str) -> str:
        """The beginning of the main part, as XML."""
        package = self._package(data, name, READS)
        mains = self._mains(package)
        return package.beginning(min(mains), SAMPLE).decode("utf-8", "ignore") if mains else ""

    def _with_text(self, package: ZipPackage, document: str) -> list[str]:
        """The parts with text, by their names or by their content types: other programs use other names."""
        types = _content_types(package, document) if self.types else {}
        return [
            name
            for name in package.names
            if re.fullmatch(f"(?:{self.main})|(?:{self.others})", name)
            or (name in types and re.fullmatch(self.types, types[name]))
        ]

    def _mains(self, package: ZipPackage) -> list[str]:
        return [name for name in package.names if re.fullmatch(self.main, name)]

    def _package(self, data: bytes, name: str, most: int) -> ZipPackage:
        package = ZipPackage(data, name, most)
        suffix = PurePosixPath(name.replace("\\", "/")).suffix.lower()
        kind, its_suffix = _kind_of(package)
        if kind and its_suffix != suffix:
            raise DataError(f"{name}: it is {kind}, although its suffix says otherwise{_advice(its_suffix)}.")
        if not self._mains(package) and self.root not in package.names:
            raise DataError(f"{name}: a ZIP package, but not a {suffix} document. Check the suffix.")
        return package
