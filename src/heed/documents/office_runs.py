"""Runs of Office Open XML: what a paragraph is made of, and how its text is written into runs again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

Kind = Literal["text", "markup", "begin", "end", "break"]


@dataclass(eq=False)
class Run:
    """A run: what is before its content, its format, the tags of its text, and what ends it."""

    head: str = ""
    format: str = ""
    text_tag: str = ""
    text_end: str = ""
    tail: str = ""
    space: str = ""
    """The attribute that a text with a space at its beginning or end needs; empty in drawings."""
    always_has_space: bool = False
    """Whether it is written with other texts, too."""


NO_RUN = Run()


@dataclass(frozen=True)
class Atom:
    """A piece of a paragraph: text, markup in a run or between runs, one end of a pair, or what separates two texts."""

    kind: Kind
    raw: str
    """Text is as it is read."""
    run: Run = NO_RUN
    """The run that it is in."""
    written: str = ""
    """Text as it is written, with its tags."""


@dataclass(frozen=True)
class Mark:
    """What is done at a mark in a translation: an atom is written, or the format of the text that follows changes."""

    what: Literal["first", "last", "write", "base", "format", "back", "same"]
    atom: Atom | None = None
    run: Run = NO_RUN


class RunWriter:
    """Writes text and markup, each in its run."""

    def __init__(self, out: list[str]) -> None:
        self._out = out
        self._open = NO_RUN
        self._formats = [NO_RUN]
        """The run whose format the text has, after those of the pairs around it."""

    def do(self, mark: Mark) -> None:
        """Follow a mark."""
        if mark.atom:
            self._enter(mark.atom.run)
            self._out.append(mark.atom.written or mark.atom.raw)
        elif mark.what == "base":
            self._formats = [mark.run]
        elif mark.what == "format":
            self._formats.append(mark.run)
        elif mark.what in ("first", "last"):
            self._enter(NO_RUN)
        elif mark.what == "back" and len(self._formats) > 1:
            self._formats.pop()
        if mark.what in ("back", "same") and mark.run is not NO_RUN and mark.run.format == self._formats[-1].format:
            self._formats[-1] = mark.run

    def text(self, text: str) -> None:
        """Write text, which is escaped."""
        if text:
            run = self._formats[-1]
            self._enter(run)
            space = run.space if run.always_has_space or text != text.strip() else ""
            self._out += [f"{run.text_tag[:-1]}{space}>", text, run.text_end]

    def _enter(self, run: Run) -> None:
        if run is not self._open:
            self._out += [self._open.tail, run.head]
            self._open = run


def joined(kind: Kind, atoms: Sequence[Atom]) -> Atom:
    """Atoms as one: in their run, or with the runs that they are in."""
    run = atoms[0].run
    if all(atom.run is run for atom in atoms):
        return Atom(kind, "".join(atom.written or atom.raw for atom in atoms), run)
    out: list[str] = []
    writer = RunWriter(out)
    for atom in atoms:
        writer.do(Mark("write", atom))
    writer.do(Mark("last"))
    return Atom(kind, "".join(out))
