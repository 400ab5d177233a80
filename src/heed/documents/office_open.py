"""Word, Excel and PowerPoint (Office Open XML): translates paragraphs, cells and texts of slides.

A paragraph is made of runs, each with its format. The format that most of its text has needs no tag; the others, links
and tracked insertions are pairs of inline tags around their words, as in HTML. Notes, bookmarks, pictures and fields
that Word computes are single tags. A line break or a tab separates two texts. A text box in a paragraph is a text of
its own.

Runs are written again as they were. Where no word has moved, the only difference besides words is that neighbours with
the same format become one run, and that marks of the spelling check and of the last page breaks between them go: Word
splits a sentence into such runs whenever it is edited, and tags for them would have no meaning.

python-docx, openpyxl and python-pptx read these formats into objects and write a new package: openpyxl loses text
boxes, sparklines and buttons, and none of the three has the order of runs, links and fields in one list. Here only the
XML of paragraphs with text is written anew, and the rest of the package stays byte by byte (`zip_package.py`).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Literal

from heed.documents.office_fields import FieldsAcross, holds_text, with_fields
from heed.documents.office_runs import NO_RUN, Atom, Mark, Run, RunWriter
from heed.documents.packed_format import PackedFormat, PartReader
from heed.documents.spans import PartsBuilder
from heed.documents.workbook_calculation import calculated_on_load
from heed.documents.workbook_references import referred
from heed.documents.xml_tokens import XmlToken

_TRANSITIONAL, _STRICT = "http://schemas.openxmlformats.org/{}/2006/main", "http://purl.oclc.org/ooxml/{}/main"
_THREADED = "http://schemas.microsoft.com/office/spreadsheetml/2018/threadedcomments"
_PREFIXES = {"wordprocessingml": "w", "drawingml": "a", "spreadsheetml": "s", "presentationml": "p"}
_DRAWING = "http://schemas.openxmlformats.org/drawingml/2006/{}", "http://purl.oclc.org/ooxml/drawingml/{}"
_DRAWING_PREFIXES = {"wordprocessingDrawing": "wp", "spreadsheetDrawing": "xdr", "picture": "pic"}
_RUNS = frozenset(("w:r", "a:r", "s:r"))
_FORMATS = frozenset(("w:rPr", "a:rPr", "s:rPr"))
_TEXTS = frozenset(("w:t", "a:t", "s:t"))
_PAIRS = frozenset(("w:hyperlink", "w:ins", "w:moveTo", "w:smartTag", "w:fldSimple", "w:dir", "w:bdo", "w:sdtContent"))
_BREAKS = frozenset(
    (
        "w:br",
        "w:cr",
        "w:tab",
        "w:ptab",
        "a:br",
        "w:pPr",
        "a:pPr",
        "a:endParaRPr",
        "w:drawing",
        "w:pict",
        "s:phoneticPr",
    )
)
"""What separates two texts, or is not among them."""
_HYPHEN = "w:noBreakHyphen"
_DROPPED = frozenset(("w:proofErr", "w:lastRenderedPageBreak", "w:rubyPr", "w:rt", "s:rPh"))
"""What a translated text does not have: `w:rt` and `s:rPh` say how the words of the source are read."""
_EPHEMERAL = re.compile(r"""\s(?:dirty|err|smtClean|noProof)=(?:"[^"]*"|'[^']*')|\s+(?=/?>)""")
"""Attributes of a run's format that have no effect on its looks."""
_SPACE = re.compile(r"""\s+xml:space=(?:"[^"]*"|'[^']*')""")
_RETURN = "_x000D_"
"""How Excel writes a carriage return."""
_MARK = re.compile("\x01(\\d+)\x02")


class OfficeReader(PartReader):
    """Reads the XML of a part."""

    names: ClassVar = {
        form.format(name): prefix
        for forms, prefixes in (((_TRANSITIONAL, _STRICT), _PREFIXES), (_DRAWING, _DRAWING_PREFIXES))
        for form in forms
        for name, prefix in prefixes.items()
    } | {_THREADED: "threaded"}
    paragraphs = frozenset(("w:p", "a:p", "s:si", "s:is", "s:text", "threaded:text"))
    described: ClassVar = dict.fromkeys(
        ("wp:docPr", "p:cNvPr", "xdr:cNvPr", "pic:cNvPr"), frozenset(("descr", "title"))
    )

    def __init__(self, tokens: Iterator[XmlToken], *others: Any) -> None:
        self._marks: list[Mark] = []
        self._fields = FieldsAcross()
        super().__init__(tokens, *others)

    def paragraph(self, builder: PartsBuilder, opening: XmlToken) -> None:
        """Read a paragraph after its opening tag, through its closing tag."""
        if self.name_of(opening) == "threaded:text":  # with "@", it has the places of names in it elsewhere
            self.plain(builder, lambda text: "@" in text or self.keeps("threaded:text", text))
            return
        reader = _ParagraphReader(self, opening)
        if self._fields.hold(reader.atoms):
            builder.add_markup(reader.raw + reader.end)
            return
        atoms = with_fields(reader.atoms)
        text = "".join(atom.raw for atom in atoms if atom.kind == "text")
        if self.keeps(self.name_of(opening), text) or not any(map(str.isalpha, text)):
            builder.add_markup(reader.raw + reader.end)
            return
        builder.add_markup(self._mark("first"))
        stretch: list[Atom] = []
        opened: list[int] = []
        for atom in [*atoms, Atom("break", "")]:
            if atom.kind == "break":
                self._add(builder, stretch, opened)
                builder.add_markup(self._mark("write", atom))
                stretch = []
            else:
                stretch.append(atom)
        builder.add_markup(self._mark("last") + reader.end)

    def _add(self, builder: PartsBuilder, atoms: Sequence[Atom], opened: list[int]) -> None:
        """Add what is between two breaks. `opened`: the pairs that are open."""
        runs = [atom.run for atom in atoms if atom.kind == "text"]
        lengths = Counter[str]()
        for atom in atoms:
            if atom.kind == "text":
                lengths[atom.run.format] += len(atom.raw)
        base = max(lengths, key=lengths.__getitem__, default="")
        builder.add_markup(self._mark("base", run=next((run for run in runs if run.format == base), NO_RUN)))
        upcoming = iter([*runs, NO_RUN])
        following, current, pair = next(upcoming), base, -1
        for atom in atoms:
            if pair >= 0 and (following.format != current or following is NO_RUN or atom.kind in ("begin", "end")):
                builder.close_tag(self._mark("back", run=following), pair)
                current, pair = base, -1
            if atom.kind == "text":
                if following.format != current:
                    pair, current = builder.open_tag(self._mark("format", run=following)), following.format
                builder.add_text(atom.raw)
                following = next(upcoming)
                continue
            mark = self._mark("write", atom) + self._mark("same", run=following)
            if atom.kind == "begin":
                opened.append(builder.open_tag(mark))
            elif atom.kind == "end" and opened:
                builder.close_tag(mark, opened.pop())
            else:
                builder.single_tag(mark)
        if pair >= 0:
            builder.close_tag(self._mark("back"), pair)

    def _mark(self, what: Literal["first", "last", "write", "base", "format", "back", "same"],
              atom: Atom | None = None, run: Run = NO_RUN) -> str:  # fmt: skip
        self._marks.append(Mark(what, atom, run))
        return f"\x01{len(self._marks) - 1}\x02"

    def written(self, translation: str) -> str:
        """The part, with runs for the text of its paragraphs."""
        before, *others = _MARK.split(translation)
        out = [before]
        writer = RunWriter(out)
        for number, text in zip(others[::2], others[1::2], strict=True):
            mark = self._marks[int(number)]
            writer.do(mark)
            if mark.what == "last":
                out.append(text)
            else:
                writer.text(text)
        return "".join(out)


class _ParagraphReader:
    """Reads a paragraph into atoms. `end` is its closing tag."""

    def __init__(self, part: OfficeReader, opening: XmlToken) -> None:
        self.atoms: list[Atom] = []
        self.end = ""
        self._raw: list[str] = []
        self._part = part
        self._bare = Run()  # of text without a run, as most cells have it
        while True:
            token = self._token()
            name = part.name_of(token)
            if token.kind == "close" and token.name == opening.name:
                self.end = token.raw
                self._raw.pop()
                return
            self._add(token, name)

    @property
    def raw(self) -> str:
        """The content as it is written."""
        return "".join(self._raw)

    def _token(self) -> XmlToken:
        token = next(self._part.tokens)
        self._raw.append(token.raw)
        return token

    def _opaque(self, opening: XmlToken) -> str:
        whole = self._part.opaque(opening)
        self._raw.append(whole[len(opening.raw) :])
        return whole

    def _add(self, token: XmlToken, name: str) -> None:
        if token.kind == "open":
            if name in _RUNS:
                self.atoms += self._run(token)
            elif name in _TEXTS:
                self.atoms.append(self._text(token, self._bare))
            elif name in _PAIRS and not (name == "w:fldSimple" and _is_computed(token)):
                self.atoms.append(Atom("begin", token.raw))
            elif name == "w:sdt":
                self.atoms.append(self._control(token))
            elif name in _BREAKS:
                self.atoms.append(Atom("break", self._opaque(token)))
            elif name in _DROPPED:
                self._opaque(token)
            else:
                self.atoms.append(Atom("markup", self._opaque(token)))
        elif token.kind == "close":
            rest = self._through("w:sdt")[0] if name == "w:sdtContent" else ""
            self.atoms.append(Atom("end", token.raw + rest))
        elif not self.atoms:
            self.atoms.append(Atom("break", token.raw))
        elif self.atoms[-1].kind == "text":
            self.atoms[-1].run.tail += token.raw
        else:
            self.atoms[-1] = replace(self.atoms[-1], raw=self.atoms[-1].raw + token.raw, run=NO_RUN)

    def _control(self, opening: XmlToken) -> Atom:
        """The beginning of a content control, or all of it if it has no content."""
        written, last = self._through("w:sdtContent", "w:sdt")
        return Atom("begin" if last.kind == "open" else "markup", opening.raw + written)

    def _through(self, *names: str) -> tuple[str, XmlToken]:
        """What is written through the next opening or closing tag with one of these names, and this tag."""
        out = ""
        while True:
            token = self._token()
            if self._part.name_of(token) in names:
                return out + token.raw, token
            out += self._opaque(token) if token.kind == "open" else token.raw

    def _run(self, opening: XmlToken) -> list[Atom]:
        run = Run(opening.raw)
        atoms: list[Atom] = []
        space = ""
        while True:
            token = self._token()
            name = self._part.name_of(token)
            if token.kind == "close":
                run.tail = space + token.raw
                return atoms or [Atom("markup", run.head + run.tail)]
            if token.kind != "open":
                space += token.raw
            elif name in _FORMATS:
                written = self._opaque(token)
                run.head += space + written
                run.format = _EPHEMERAL.sub("", written)
                space = ""
            elif name in _DROPPED:
                self._opaque(token)
            elif name == _HYPHEN:
                atoms.append(self._hyphen(token, run))
            elif name == "w:ruby":
                atoms += self._without_readings()
            else:
                if not atoms:
                    run.head, space = run.head + space, ""
                kind: Literal["break", "markup"] = "break" if name in _BREAKS else "markup"
                is_text = name in _TEXTS
                atoms.append(self._text(token, run) if is_text else Atom(kind, space + self._opaque(token), run))
                space = ""

    def _without_readings(self) -> list[Atom]:
        """The words below their readings, after the opening tag of both, through the closing tag."""
        atoms: list[Atom] = []
        while (token := self._token()).kind != "close":
            name = self._part.name_of(token)
            if token.kind != "open":
                continue
            if name == "w:rubyBase":
                atoms += self._without_readings()
            elif name in _RUNS:
                atoms += self._run(token)
            elif name in _DROPPED:
                self._opaque(token)
            else:
                atoms.append(Atom("markup", self._opaque(token)))
        return atoms

    def _text(self, opening: XmlToken, run: Run) -> Atom:
        out, written = "", opening.raw
        while True:
            token = self._token()
            written += token.raw
            if token.kind == "close":
                break
            out += self._characters(token, opening)
        if not out:
            return Atom("markup", written, run)
        space = _SPACE.search(opening.raw)
        run.always_has_space |= space is not None and out == out.strip()
        if space or not run.space:
            is_in_drawing = self._part.name_of(opening).startswith("a:")
            run.space = space[0] if space else "" if is_in_drawing else ' xml:space="preserve"'
        run.text_tag, run.text_end = _SPACE.sub("", opening.raw), token.raw
        return Atom("text", out, run, written)

    def _hyphen(self, token: XmlToken, run: Run) -> Atom:
        """A hyphen that does not break, as text: its word is one, and is written with a plain hyphen."""
        if not run.text_tag:
            prefix = token.raw[1 : token.raw.index("noBreakHyphen")]
            run.text_tag, run.text_end, run.space = f"<{prefix}t>", f"</{prefix}t>", ' xml:space="preserve"'
        return Atom("text", "-", run, self._opaque(token))

    def _characters(self, token: XmlToken, opening: XmlToken) -> str:
        """Text as it is read. In a workbook, `_x000D_` is a carriage return."""
        text = self._part.characters_of(token)
        if _RETURN not in text or not self._part.name_of(opening).startswith("s:"):
            return text
        self._part.write_return_as(_RETURN)
        return text.replace(_RETURN, "\r")


def _is_computed(field: XmlToken) -> bool:
    """Whether the result of a simple field is not text of the document."""
    codes = (code for name, code in field.attributes.items() if name.endswith(" instr"))
    return not holds_text(next(codes, ""))


_DRAWINGS = r"(?:charts|diagrams|drawings)/(?:chart|data|drawing)\d*\.xml"
_TYPE = r"application/vnd\.openxmlformats-officedocument\.(?:drawingml\.(?:chart|diagramData)|{})\+xml"
WORD = PackedFormat(
    is_markup=True,
    main=r"word/document\d*\.xml",
    others=rf"word/(?:(?:header|footer|footnotes|endnotes|comments)\d*\.xml|{_DRAWINGS})",
    types=_TYPE.format(r"wordprocessingml\.(?:header|footer|footnotes|endnotes|comments)"),
    reader=OfficeReader,
)
SLIDES = PackedFormat(
    is_markup=True,
    main=r"ppt/slides/slide\d+\.xml",
    root="ppt/presentation.xml",
    others=rf"ppt/(?:notesSlides/notesSlide\d+\.xml|{_DRAWINGS})",
    types=_TYPE.format(r"presentationml\.(?:slide|notesSlide)"),
    reader=OfficeReader,
)
WORKBOOK = PackedFormat(
    is_markup=True,
    main=r"xl/(?:sharedStrings|workbook)\.xml",
    others=rf"xl/(?:worksheets/sheet\d+\.xml|comments\d*\.xml|{_DRAWINGS})",
    types=_TYPE.format(r"spreadsheetml\.(?:worksheet|sharedStrings|comments)")
    + r"|application/vnd\.ms-excel\.threadedcomments\+xml",
    reader=OfficeReader,
    keeps=referred,
    finished=calculated_on_load,
)
