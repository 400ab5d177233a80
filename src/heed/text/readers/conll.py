"""Reader of CoNLL files: a token on each line with its tags in columns, and a blank line after each sentence.

Columns are separated by blanks (CoNLL-2000, CoNLL-2003) or tabs (CoNLL-U, CoNLL-2012 and most others). Rows of
multiword tokens and empty nodes of CoNLL-U, comments before a sentence and `-DOCSTART-` are not tokens. A column of
marks is a further input. Where each marked token has a column of spans of its own, written `(ARG0*`, `*`, `*)`
(CoNLL-2005, CoNLL-2012), each mark gives a sentence of its own, with IOB2 tags; the span V, the mark itself, is left
out, as the script of that task does not count it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice, pairwise
from pathlib import Path
from typing import Literal, NamedTuple

from heed.core.errors import DataError, UsageError
from heed.text.archives import shown_name
from heed.text.readers.lines import Errors, read_lines

CONLL_U = ("id", "form", "lemma", "upos", "xpos", "feats", "head", "deprel", "deps", "misc")
"""Names of the columns of CoNLL-U."""
UNMARKED = frozenset({"-", "_", "O", "0", "*", ""})
"""Values of a column of marks on tokens that have none."""
MARKED = "V"
"""The mark of the token that the spans of a sentence belong to."""
TAG_COLUMN = "Name the column of the tags, counted from 1: --tag-column 2 (in CoNLL-U: upos, xpos, ...)."
_NO_TOKEN = re.compile(r"\d+[-.]\d+")
_SPAN = re.compile(r"\(([^()*]+)|\*|\)")
_ENDS_IN_SPAN = re.compile(r"\s\([^()*\s]+\*\)*\s*$")
_NAMES = "# global.columns ="
_ENOUGH = 1000

Column = int | str | None
LineKind = Literal["row", "blank", "comment", "document", "no token"]


class Columns(NamedTuple):
    """The columns of the tokens, the tags and the marks, by number from 1 or by name; None: found by heed."""

    token: Column = None
    tag: Column = None
    mark: Column = None


USUAL = Columns()


@dataclass(frozen=True)
class TaggedSentence:
    """A sentence with a tag for each token."""

    tokens: tuple[str, ...]
    tags: tuple[str, ...]
    marks: tuple[str, ...] = ()
    """For each token, with a column of marks; an empty one for a token without a mark."""
    line: int = 1
    """The line of the first token, counted from 1."""


@dataclass(frozen=True)
class Layout:
    """The columns of a file, counted from 0."""

    num_columns: int
    has_tabs: bool
    token: int
    tag: int | None
    mark: int | None
    is_conll_u: bool = False
    has_spans: bool = False
    """Whether the last columns are spans, one column for each marked token."""

    def fields(self, line: str) -> list[str]:
        """The columns of a row."""
        return fields_of(line, self.has_tabs)

    def kind(self, line: str, inside: bool) -> LineKind:
        """What a line is. `inside`: it follows a row of the same sentence, where there are no comments."""
        if not line.strip():
            return "blank"
        if line.startswith("-DOCSTART-"):
            return "document"
        if line.startswith("#") and not inside and self._is_comment(line):
            return "comment"
        return "no token" if self.is_conll_u and _NO_TOKEN.fullmatch(line.partition("\t")[0]) else "row"

    def _is_comment(self, line: str) -> bool:
        return "\t" not in line if self.has_tabs else len(self.fields(line)) != self.num_columns


def fields_of(line: str, has_tabs: bool) -> list[str]:
    """The columns of a row, separated by tabs or by blanks."""
    line = line.rstrip("\r\n")
    if has_tabs:
        return line.split("\t")
    return [field for field in line.replace("\t", " ").split(" ") if field]  # other white space is part of a token


def find_layout(beginning: Sequence[str], columns: Columns, name: str, needs_tags: bool = True) -> Layout:
    """The layout of the file `name`, from its first lines. Raises DataError for a column that it does not have."""
    rows = [line for line in beginning if line.strip() and not line.startswith(("#", "-DOCSTART-"))]
    rows = rows or [line for line in beginning if line.strip() and not line.startswith("-DOCSTART-")]
    if not rows:
        raise DataError(f"{name} has no tokens. Each row is a token and its tags; a blank line ends a sentence.")
    has_tabs = "\t" in rows[0].strip()
    first = fields_of(rows[0], has_tabs)
    is_conll_u = has_tabs and len(first) == len(CONLL_U) and first[0][:1].isdigit()
    names = _names(beginning) or (CONLL_U if is_conll_u else ())
    has_spans = columns.mark is not None and columns.tag is None and not names and any(map(_ENDS_IN_SPAN.search, rows))
    tag: Column = columns.tag
    if tag is None and not has_spans and (needs_tags or len(first) > 1):
        tag = "upos" if "upos" in names else len(first)
    token: Column = columns.token
    if token is None:
        token = "form" if "form" in names else 2 if len(first) > 2 and _counts(rows, has_tabs) else 1
    if needs_tags and len(first) < 2:
        raise DataError(
            f"{name}: the rows have one column ({first[0]!r:.40}), so there are no tags. Each row is a token and its "
            "tags, separated by spaces or tabs."
        )
    token_at, tag_at, mark_at = (_place(column, names, len(first), name) for column in (token, tag, columns.mark))
    if tag_at is not None and tag_at == token_at:
        raise UsageError(f"{name}: column {token_at + 1} cannot be both the token and the tag. {TAG_COLUMN}")
    return Layout(len(first), has_tabs, token_at or 0, tag_at, mark_at, is_conll_u, has_spans)


def _names(beginning: Sequence[str]) -> tuple[str, ...]:
    """The names of the columns in the first line of CoNLL-U Plus; empty without them."""
    first = beginning[0] if beginning else ""
    return tuple(first.removeprefix(_NAMES).lower().split()) if first.startswith(_NAMES) else ()


def _counts(rows: Sequence[str], has_tabs: bool) -> bool:
    """Whether the first column numbers the tokens of each sentence, from 0 or 1; one in ten may be another one."""
    column = [first for row in rows if not _NO_TOKEN.fullmatch(first := fields_of(row, has_tabs)[0])]
    if not column or column[0] not in ("0", "1") or not all(map(str.isdecimal, column)):
        return False
    steps = [(int(number) - int(before), number) for before, number in pairwise(column)]
    odd = sum(step != 1 and number != column[0] for step, number in steps)
    return any(step == 1 for step, _ in steps) and odd <= len(steps) / 10


def _place(column: Column, names: Sequence[str], number: int, name: str) -> int | None:
    """The position of a column, counted from 0. Raises DataError if there is none."""
    if column is None:
        return None
    if isinstance(column, str):
        if column.lower() in names:
            return names.index(column.lower())
        listed = f"the names are {', '.join(names)}" if names else "its columns have no names"
        raise DataError(f"{name} has no column {column!r}: {listed}. {TAG_COLUMN}")
    if not 1 <= column <= number:
        raise DataError(f"{name} has {number} column{'s' * (number > 1)}, and no column {column}. {TAG_COLUMN}")
    return column - 1


def read_conll(path: str | Path, columns: Columns = USUAL, errors: Errors = "strict") -> Iterator[TaggedSentence]:
    """The sentences of a CoNLL file, one in memory at a time.

    Raises what `read_lines` raises, and DataError for a file without tokens or tags, and for a row with another number
    of columns.
    """
    name, lines = shown_name(path), read_lines(path, errors)
    beginning = [*islice(lines, _ENOUGH)]
    layout = find_layout(beginning, columns, name)
    for block in _blocks(enumerate(chain(beginning, lines), start=1), layout):
        yield from _sentences(block, layout, name)


def layout_of(path: str | Path, columns: Columns = USUAL, errors: Errors = "strict") -> Layout:
    """The layout of a CoNLL file. Raises as `read_conll`."""
    return find_layout([*islice(read_lines(path, errors), _ENOUGH)], columns, shown_name(path))


def _blocks(lines: Iterable[tuple[int, str]], layout: Layout) -> Iterator[list[tuple[int, str]]]:
    """The rows of each sentence with their line numbers."""
    block: list[tuple[int, str]] = []
    for number, line in lines:
        kind = layout.kind(line, inside=bool(block))
        if kind == "row":
            block.append((number, line))
        elif kind in ("blank", "document") and block:
            yield block
            block = []
    if block:
        yield block


def _sentences(block: Sequence[tuple[int, str]], layout: Layout, name: str) -> Iterator[TaggedSentence]:
    rows = [layout.fields(line) for _, line in block]
    number = len(rows[0]) if layout.has_spans else layout.num_columns
    for (line, _), row in zip(block, rows, strict=True):
        if len(row) != number:
            raise ragged(f"{name}:{line}", row, number)
    tokens = tuple(row[layout.token] for row in rows)
    for line, token in zip((line for line, _ in block), tokens, strict=True):
        if not token.strip():
            raise DataError(f"{name}:{line}: the token is empty. Remove the row, or fill in column {layout.token + 1}.")
    line = block[0][0]
    if layout.has_spans:
        yield from _by_mark(rows, tokens, layout, f"{name}:{line}", line)
        return
    tags = () if layout.tag is None else tuple(row[layout.tag] for row in rows)
    for (at, _), tag in zip(block, tags, strict=bool(tags)):
        if not tag or len(tag.split()) != 1:
            raise DataError(f"{name}:{at}: the tag is {tag!r:.40}; it must not be empty or contain spaces.")
    marks = () if layout.mark is None else tuple(mark_of(row[layout.mark]) for row in rows)
    yield TaggedSentence(tokens, tags, marks, line)


def mark_of(value: str) -> str:
    """A mark; empty for a token without one. A blank in it would end it."""
    return "" if value in UNMARKED else "_".join(value.split())


def ragged(place: str, row: Sequence[str], number: int) -> DataError:
    """The error of a row with another number of columns than those before it."""
    return DataError(
        f"{place}: the row has {len(row)} column{'s' * (len(row) > 1)} ({' '.join(row)!r:.50}), the rows before it "
        f"{number}. Each row is a token and its tags, separated by spaces or tabs; a blank line ends a sentence."
    )


def _by_mark(
    rows: Sequence[Sequence[str]], tokens: tuple[str, ...], layout: Layout, place: str, line: int
) -> Iterator[TaggedSentence]:
    """A sentence for each marked token, with the spans in its column."""
    marked = [index for index, row in enumerate(rows) if mark_of(row[layout.mark or 0])]
    first = len(rows[0]) - len(marked)
    if first <= max(layout.token, layout.mark or 0):
        raise DataError(
            f"{place}: {len(marked)} tokens are marked, and the rows have {len(rows[0])} columns. Each marked token "
            "needs a column of spans, after the other columns."
        )
    for column, index in enumerate(marked, start=first):
        tags = tags_of_spans([row[column] for row in rows], place)
        yield TaggedSentence(tokens, tuple(tags), tuple(MARKED * (at == index) for at in range(len(tokens))), line)


def tags_of_spans(cells: Sequence[str], place: str) -> list[str]:
    """IOB2 tags of a column of spans, `(ARG0*`, `*`, `*)`. Raises DataError for cells of another form."""
    tags: list[str] = []
    open_span = ""
    for cell in cells:
        parts = [match[0] for match in _SPAN.finditer(cell)]
        if "".join(parts) != cell or parts.count("*") != 1:
            raise DataError(f"{place}: {cell!r:.40} is not a part of a span, such as (ARG0*, * or *).")
        begins = [part[1:] for part in parts if part.startswith("(")]
        open_span = begins[0] if begins else open_span
        is_outside = not open_span or open_span == "V"
        tags.append("O" if is_outside else f"{'B' if begins else 'I'}-{open_span}")
        if ")" in parts:
            open_span = ""
    return tags
