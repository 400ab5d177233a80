"""XLIFF 1.2 and 2 of translation programs: fills in missing targets.

| segment | what happens to it |
| --- | --- |
| with a target, unless its state says `new`, `needs-translation` or `initial`, or it only repeats the source | stays |
| `translate="no"`, of the unit or around it; without text outside of codes | stays |
| of 1.2 with several marked parts (`mrk`), of which the target has some | gets the others |
| all others | get a target with the codes of the source, which move with their words |

A new target of 1.2 is marked `state="needs-review-translation" state-qualifier="mt-suggestion"`, a segment of 2 becomes
`translated`. The target language is declared if it was not. Suggestions of other programs (`alt-trans`, `matches`) and
all else stay byte by byte, which translate-toolkit, with an XML tree of its own, does not promise.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from xml.sax.saxutils import quoteattr

from heed.core.errors import DataError
from heed.documents.file_format import FileContext, TextFormat
from heed.documents.spans import Part, has_text
from heed.documents.text_translator import TextTranslator
from heed.documents.tmx import parse_segment
from heed.documents.xliff_marks import Marked, completed, is_blank, missing
from heed.documents.xml_tokens import XmlToken, xml_tokens
from heed.text.language.codes import same_tag
from heed.text.readers.tmx import encoding_of, mended

_UNTRANSLATED = ("new", "needs-translation", "initial")
_DONE = ("final", "signed-off")
_LANGUAGES = {"file": ("source-language", "target-language"), "xliff": ("srcLang", "trgLang")}
_MARKED = ' state="needs-review-translation" state-qualifier="mt-suggestion"'
_TEXTS = ("source", "seg-source", "target")


@dataclass
class _Segment:
    """A source, its target if it has one, and where both are in the text."""

    opening: XmlToken
    at: int
    """Where the opening tag of the segment or unit is."""
    is_translated: bool
    """Whether its source may be translated at all."""
    is_new: bool
    """Whether it is one of XLIFF 2."""
    source: str = ""
    source_tag: str = ""
    space: str = ""
    """What is written before the source."""
    insert_at: int = 0
    """Where a target belongs."""
    target: tuple[int, int] | None = None
    target_tag: XmlToken | None = None
    target_text: str = ""
    segmented: str = ""
    """The source with its segments marked, in XLIFF 1.2; empty without them."""

    @property
    def to_translate(self) -> str:
        """The source, with its segments marked where the file does so."""
        return self.segmented if re.search(r"mtype\s*=\s*[\"']seg[\"']", self.segmented) else self.source

    @property
    def gaps(self) -> list[Marked]:
        """The marked parts of the source that a target with others of them lacks."""
        is_done = self.target_tag is None or self.target_tag.attributes.get("state", "") in _DONE
        return [] if is_done else missing(self.segmented, self.target_text)

    @property
    def needs_translation(self) -> bool:
        """Whether it has no translation that counts."""
        attributes = (self.opening if self.is_new else self.target_tag or self.opening).attributes
        state = attributes.get("state", "")
        is_copy = not state and self.target_text in (self.source, self.segmented)
        has_target = not is_blank(self.target_text) and state not in _UNTRANSLATED and not is_copy
        is_approved = self.opening.attributes.get("approved") == "yes"
        return self.is_translated and not is_approved and (not has_target or bool(self.gaps))


@dataclass
class _Read:
    """What is read of a file: its segments, and changes of its text by their place."""

    segments: list[_Segment] = field(default_factory=list)
    edits: list[tuple[int, int, str]] = field(default_factory=list)


def translate_xliff(text: str, translator: TextTranslator, context: FileContext) -> str:
    """The file with its missing targets. Raises DataError for other XML and other languages."""
    read = _read(xml_tokens(text, context.name, translator.checked), context)
    todo = [segment for segment in read.segments if segment.needs_translation]
    parsed = [(each, [_parsed(text) for text in _texts_of(each)]) for each in todo]
    some = [(each, texts) for each, texts in parsed if any(map(has_text, texts))]
    outputs = iter(translator.documents([parts for _, texts in some for parts in texts]))
    context.notify(f"{len(some):,} of {len(read.segments):,} segments")
    for each, texts in some:
        inner = [next(outputs).text.removeprefix("<seg>").removesuffix("</seg>") for _ in texts]
        gaps = each.gaps
        read.edits += _edits(each, completed(each.segmented, each.target_text, gaps, inner) if gaps else inner[0])
    out, done = [], 0
    for begin, end, new in sorted(read.edits):
        out += [text[done:begin], new]
        done = end
    return "".join([*out, text[done:]])


XLIFF = TextFormat(
    is_markup=True,
    is_bilingual=True,
    write=translate_xliff,
    declared=encoding_of,
    mended=lambda text: "".join(mended([text])),
)


def _texts_of(segment: _Segment) -> list[str]:
    return [gap.inner for gap in segment.gaps] or [segment.to_translate]


def _parsed(text: str) -> list[Part]:
    return parse_segment(f"<seg>{text}</seg>".encode(), is_xliff=True)


def _edits(segment: _Segment, inner: str) -> Iterator[tuple[int, int, str]]:
    """The changes of the text that give a segment its target."""
    tag = segment.target_tag.raw.replace("/>", ">") if segment.target_tag else "<target>"
    prefix = segment.source_tag[1 : segment.source_tag.index("source")]
    if segment.target_tag is None:
        space = re.search(r"\sxml:space\s*=\s*(?:\"[^\"]*\"|'[^']*')", segment.source_tag)
        tag = f"<{prefix}target{space[0] if space else ''}>"
    if segment.is_new:
        opening = _with_attribute(segment.opening.raw, "state", ' state="translated"')
        if segment.opening.attributes.get("state", "initial") in _UNTRANSLATED:
            yield segment.at, segment.at + len(segment.opening.raw), opening
    else:
        tag = _with_attribute(_with_attribute(tag, "state-qualifier", ""), "state", _MARKED)
    written = f"{tag}{inner}</{prefix}target>"
    if segment.target is None:
        yield segment.insert_at, segment.insert_at, segment.space + written
    else:
        yield *segment.target, written


def _with_attribute(tag: str, name: str, written: str) -> str:
    """A tag with another attribute in the place of one, or at its end."""
    found = re.search(rf"\s{name}\s*=\s*(?:\"[^\"]*\"|'[^']*')", tag)
    if found:
        return tag[: found.start()] + written + tag[found.end() :]
    end = len(tag) - (2 if tag.endswith("/>") else 1)
    return tag[:end] + written + tag[end:]


def _read(tokens: Iterator[XmlToken], context: FileContext) -> _Read:
    read = _Read()
    at, last_text = 0, ""
    may_translate = [True]
    names: list[str] = []
    segment: _Segment | None = None
    inside = ""  # `source` or `target` while the tokens belong to it
    begin = 0
    for token in tokens:
        name = token.name.rpartition(" ")[2]
        if token.kind == "open":
            if not names and name != "xliff":
                raise DataError(f"{context.name}: the file starts with <{name}>, but XLIFF starts with <xliff>.")
            may_translate.append(may_translate[-1] and token.attributes.get("translate", "yes") != "no")
            if name in _LANGUAGES:
                read.edits += _declared(token, name, at, context)
            if name in ("trans-unit", "segment"):
                segment = _Segment(token, at, may_translate[-1], name == "segment")
            elif segment and not inside and names[-1] in ("trans-unit", "segment") and name in _TEXTS:
                inside, begin = name, at + len(token.raw)
                if name == "source":
                    segment.source_tag, segment.space = token.raw, last_text
                elif name == "target":
                    segment.target_tag, segment.target = token, (at, at)
            names.append(name)
        elif token.kind == "close":
            names.pop()
            may_translate.pop()
            end = at + len(token.raw)
            if segment and inside == name and names[-1] in ("trans-unit", "segment"):
                inside = ""
                if name == "target":
                    segment.target = segment.target[0] if segment.target else at, end
                else:
                    segment.insert_at = end
            elif segment and name in ("trans-unit", "segment"):
                read.segments.append(segment)
                segment = None
        if segment and inside and at >= begin:
            if inside == "source":
                segment.source += token.raw
            elif inside == "seg-source":
                segment.segmented += token.raw
            else:
                segment.target_text += token.raw
        last_text = last_text + token.raw if token.kind == "text" and not token.raw.strip() else ""
        at += len(token.raw)
    return read


def _declared(token: XmlToken, name: str, at: int, context: FileContext) -> Iterator[tuple[int, int, str]]:
    """Check the languages of a file, and declare its target."""
    source, target = (token.attributes.get(attribute, "") for attribute in _LANGUAGES[name])
    sides = context.sides
    for found, expected, what in ((source, sides.src_lang, "source"), (target, sides.tgt_lang, "target")):
        if found and expected and not _is_same(found, expected):
            raise DataError(f"{context.name}: its {what} language is {found}, but the model's is {expected}.")
    if source and not target and sides.tgt_lang:
        attribute = _LANGUAGES[name][1]
        new = _with_attribute(token.raw, attribute, f" {attribute}={quoteattr(sides.tgt_lang)}")
        yield at, at + len(token.raw), new


def _is_same(one: str, other: str) -> bool:
    return same_tag(one.partition("-")[0], other.partition("-")[0])
