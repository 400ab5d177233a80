"""Fields of Word in a paragraph."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from heed.documents.office_runs import Atom, whole_of

_FIELD = re.compile(r"""<(?:\w+:)?fldChar\s[^>]*fldCharType=["'](begin|separate|end)""")


def with_fields(atoms: Sequence[Atom]) -> list[Atom]:
    """The atoms, with the beginning of a field and its code as the beginning of a pair around its result.

    A field that ends in another paragraph separates texts instead.
    """
    begins: list[list[int]] = []
    ends: dict[int, tuple[int, int]] = {}  # for the beginning of a field, where its result begins and ends
    kinds = [match[1] if atom.kind == "markup" and (match := _FIELD.search(atom.raw)) else "" for atom in atoms]
    for number, kind in enumerate(kinds):
        if kind == "begin":
            begins.append([number])
        elif kind == "separate" and begins:
            begins[-1].append(number)
        elif kind == "end" and begins:
            first, *separate = begins.pop()
            ends[first] = separate[0] if separate else number, number
    out: list[Atom] = []
    closing: set[int] = set()
    at = 0
    while at < len(atoms):
        result, end = ends.get(at, (at, at))
        some = atoms[at : result + 1]
        if kinds[at] and at in closing:
            out.append(Atom("end", whole_of(some)))
        elif not kinds[at]:
            out.append(atoms[at])
        elif end > at and all(atom.kind == "markup" for atom in some):
            out.append(Atom("begin" if result < end else "markup", whole_of(some)))
            closing |= {end} if result < end else set()
            at = result
        else:
            out.append(replace(atoms[at], kind="break"))
        at += 1
    return out
