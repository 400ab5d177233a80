"""Fields of Word in a paragraph: which results are text of the document, and which Word computes.

The result of a link, of a table of contents or of a form's text is translated: its field is a pair around it. All other
results (numbers of pages and figures, references, dates, merged names, citations) would be computed again. Each of
these fields is one piece of markup with its result and the fields inside it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from heed.documents.office_runs import Atom, Kind, joined

_WITH_TEXT = ["HYPERLINK"], ["TOC"], ["FORMTEXT"]
_ACROSS = ["BIBLIOGRAPHY"], ["INDEX"], ["TOA"], ["INCLUDETEXT"], ["DATABASE"], ["ADDIN"]
"""Codes of fields whose results may be several paragraphs, which programs for references use as well."""
_SIGN = re.compile(r"""\s*<(?:\w+:)?fldChar\s[^>]*fldCharType=["'](begin|separate|end)""")
_CODE = re.compile(r"\s*<(?:\w+:)?instrText[^>]*>([^<]*)<")


def with_fields(atoms: Sequence[Atom]) -> list[Atom]:
    """The atoms, with a pair around the result of a field that is text, and every other field as one piece.

    Where a field and an element overlap, as tracked changes may, and where a field ends in another paragraph, what
    begins and ends them separates texts: neither words nor tags move past it.
    """
    fields = _Fields(atoms)
    out: list[Atom] = []
    at = 0
    while at < len(atoms):
        last, kind = fields.pieces.get(at, (at, atoms[at].kind))
        kind = "break" if at in fields.fixed else kind
        out.append(joined(kind, atoms[at : last + 1]) if at in fields.pieces else replace(atoms[at], kind=kind))
        at = last + 1
    return out


def holds_text(code: str) -> bool:
    """Whether the result of a field with this code is text of the document."""
    return code.upper().split(maxsplit=1)[:1] in _WITH_TEXT


class FieldsAcross:
    """Fields whose results are several paragraphs, as those of a bibliography or an index are."""

    def __init__(self) -> None:
        self._opened: list[_Open] = []
        self._num_before = 0
        """Those of them that paragraphs before have opened."""
        self._num_inside = 0
        """Open fields of this kind whose result has begun."""

    def hold(self, atoms: Sequence[Atom]) -> bool:
        """Whether all text of the next paragraph is the result of such a field."""
        is_across, has_other = self._num_inside > 0, False
        for atom in atoms:
            if atom.kind == "text":
                has_other |= not self._num_inside and any(map(str.isalpha, atom.raw))
            elif atom.kind == "markup" and (sign := _SIGN.match(atom.raw)):
                self._add(sign[1])
            elif atom.kind == "markup" and self._opened and (code := _CODE.match(atom.raw)):
                self._opened[-1].code += code[1]
        self._opened[self._num_before :] = [
            each for each in self._opened[self._num_before :] if each.is_across_paragraphs
        ]
        self._num_before = len(self._opened)
        return not has_other and (is_across or self._num_inside > 0)

    def _add(self, sign: str) -> None:
        if sign == "begin":
            self._opened.append(_Open(is_field=True, begin=0))
        elif self._opened and sign == "end":
            self._num_inside -= self._opened.pop().is_across_paragraphs
            self._num_before = min(self._num_before, len(self._opened))
        elif self._opened and not self._opened[-1].is_across_paragraphs:
            field = self._opened[-1]
            field.is_across_paragraphs = field.code.upper().split(maxsplit=1)[:1] in _ACROSS
            self._num_inside += field.is_across_paragraphs


@dataclass(eq=False)
class _Open:
    """An element or a field whose end is still to come."""

    is_field: bool
    begin: int
    separate: int = -1
    """Where the result of a field begins."""
    code: str = ""
    has_text: bool = False
    """Whether the result of a field has a letter or a digit that is not part of a computed result."""
    is_torn: bool = False
    """Whether it overlaps another."""
    is_across_paragraphs: bool = False
    """Whether its result has begun, and may go on in other paragraphs."""


class _Fields:
    """Finds the fields of a paragraph."""

    def __init__(self, atoms: Sequence[Atom]) -> None:
        self.pieces: dict[int, tuple[int, Kind]] = {}
        """For the first atom of a piece, its last one, and what they are together."""
        self.fixed: set[int] = set()
        """The atoms that separate texts."""
        self._opened: list[_Open] = []
        for number, atom in enumerate(atoms):
            self._add(number, atom)

    def _add(self, number: int, atom: Atom) -> None:
        sign = _SIGN.match(atom.raw) if atom.kind == "markup" else None
        if sign:
            self.fixed.add(number)  # until its field is complete
            if sign[1] == "begin":
                self._opened.append(_Open(is_field=True, begin=number))
            elif sign[1] == "end":
                self._end_field(number)
            elif field := self._innermost(is_field=True):
                self._separate(field, number)
        elif atom.kind == "begin":
            self._opened.append(_Open(is_field=False, begin=number))
        elif atom.kind == "end":
            element = self._closed(is_field=False)
            if element and element.is_torn:
                self.fixed |= {element.begin, number}
        elif atom.kind in ("text", "markup") and (field := self._innermost(is_field=True)):
            if field.separate >= 0:
                field.has_text |= atom.kind == "text" and any(map(str.isalnum, atom.raw))
            elif atom.kind == "markup" and (code := _CODE.match(atom.raw)):
                field.code += code[1]

    def _separate(self, field: _Open, number: int) -> None:
        """Begin the result of a field. Elements that are open since its code overlap the code."""
        field.separate = number if field.separate < 0 else field.separate
        if field is not self._opened[-1] and holds_text(field.code):
            self._tear(field)

    def _end_field(self, number: int) -> None:
        field = self._closed(is_field=True)
        if field is None:
            return
        if not field.is_torn:
            self.fixed -= {field.begin, field.separate, number}
        if field.has_text and holds_text(field.code):
            self.pieces |= {field.begin: (field.separate, "begin"), number: (number, "end")}
            if around := self._innermost(is_field=True):
                around.has_text |= around.separate >= 0
        else:
            self.pieces[field.begin] = number, "markup"

    def _innermost(self, is_field: bool) -> _Open | None:
        """The innermost open element or field."""
        return next((each for each in reversed(self._opened) if each.is_field == is_field), None)

    def _closed(self, is_field: bool) -> _Open | None:
        """The innermost element or field, which ends here. Those that are open in it overlap it."""
        closed = self._innermost(is_field)
        if closed:
            at = self._tear(closed) if closed is not self._opened[-1] else -1
            del self._opened[at]
        return closed

    def _tear(self, outer: _Open) -> int:
        """Note that what is open inside something overlaps it. Returns its place among what is open."""
        at = len(self._opened) - 1
        while self._opened[at] is not outer:
            self._opened[at].is_torn = True
            at -= 1
        outer.is_torn = True
        return at
