"""Which column of a table is translated, which takes the translations, and is the first row one of names?

The columns that were said; else those that the first row names by the languages or as source and target; else the only
one with text, and the only empty one. A column that is named counts whatever stands below it, but for short codes above
numbers: `No` is no Norwegian there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from heed.core.errors import DataError, UsageError
from heed.text.language.codes import code_of, name_of
from heed.text.readers.columns import (
    LONGEST_CODE,
    MOST_WORDS,
    NUMBERS,
    holds_numbers,
    is_longer_name,
    is_text,
    language_named,
    listed,
    looks_like_a_name,
    position_of,
    side_named,
)

Rows = Sequence[Sequence[str]]

NUMBERED = {
    "", "id", "index", "line", "lfd", "n", "nr", "no", "num", "number", "numero", "número", "numéro", "nummer", "row",
    "segment", "zeile",
}  # fmt: skip
"""What people call the numbers of rows."""


@dataclass(frozen=True)
class Sides:
    """What is translated into what (codes; empty: not known), and the columns that were said.

    These by number, counted from 1, or by name.
    Raises UsageError for a number below 1.
    """

    src_lang: str = ""
    tgt_lang: str = ""
    src_column: int | str | None = None
    tgt_column: int | str | None = None

    def __post_init__(self) -> None:
        for column in (self.src_column, self.tgt_column):
            if isinstance(column, int) and column < 1:
                raise UsageError(f"There is no column {column}; columns are counted from 1.")


@dataclass(frozen=True)
class ToTranslate:
    """Positions, counted from 0. `tgt` None: a new column, behind the others."""

    src: int
    tgt: int | None
    are_named: bool
    """Whether the first row only names the columns."""


def find_to_translate(sides: Sides, rows: Rows, place: str) -> ToTranslate:
    """The columns of a table with these rows; `place`: what messages call it.

    Raises DataError for a column that is not there, UsageError when nothing tells which ones are meant.
    """
    first = rows[0]
    tgt, tgt_named = _target(sides, rows, place)
    src, src_named = _source(sides, rows, place)
    are_named = src_named or tgt_named or isinstance(sides.tgt_column, str) or _are_headings(rows)
    if src is None:
        texts = [at for at in range(len(first)) if at != tgt and is_text(rows[are_named:] or rows, at)]
        src = texts[0] if len(texts) == 1 else None
    if src is None:
        raise UsageError(
            f"{place}: {len(first)} columns ({listed(first)}). Say which one is translated, by its number or by its "
            "name in the first row (--src-column 1; of a request the field src_column)."
        )
    if src == tgt:
        raise UsageError(f"{place}: source and target cannot both be column {src + 1}.")
    if tgt is None and sides.tgt_column is None:
        tgt = _to_fill(src, rows, are_named)
    return ToTranslate(src, tgt, are_named)


def _source(sides: Sides, rows: Rows, place: str) -> tuple[int | None, bool]:
    """Where the source is, and whether a name says it."""
    if sides.src_column is not None:
        at, by_name = position_of(sides.src_column, "", "src", rows, place)
        if at is not None and at >= len(rows[0]):
            raise DataError(f"{place}: no column {at + 1}; the first row has {len(rows[0])} ({listed(rows[0])}).")
        return at, by_name or (at is not None and _names(rows[0][at], "src", sides.src_lang))
    found = _named(sides.src_lang, rows, place, "source", "--src-column")
    return position_of(None, "", "src", rows, place) if found is None else (found, True)


def _target(sides: Sides, rows: Rows, place: str) -> tuple[int | None, bool]:
    """Where the target is, and whether a name says it; None: nowhere yet."""
    column, width = sides.tgt_column, len(rows[0])
    if isinstance(column, int):
        if column > width + 1:
            raise DataError(f"{place}: no column {column}; the first row has {width} ({listed(rows[0])}).")
        return (column - 1, _names(rows[0][column - 1], "tgt", sides.tgt_lang)) if column <= width else (None, False)
    if column is not None:
        names = [name.strip().casefold() for name in rows[0]]
        wanted = column.strip().casefold()
        return (names.index(wanted), True) if wanted in names else (None, False)
    found = _named(sides.tgt_lang, rows, place, "target", "--tgt-column")
    return position_of(None, "", "tgt", rows, place) if found is None else (found, True)


def _named(language: str, rows: Rows, place: str, side: str, flag: str) -> int | None:
    """The column that the first row names by a language. Raises UsageError where several are."""
    for columns in _levels(language, rows) if language else ():
        if len(columns) > 1:
            names = listed([rows[0][at] for at in columns])
            raise UsageError(
                f"{place}: the {side} may be any of the columns {names}; say which: {flag} {columns[0] + 1}."
            )
        if columns:
            return columns[0]
    return None


def _levels(language: str, rows: Rows) -> Iterator[list[int]]:
    """The columns that are called as the language is: to the letter, by another name of it, in a longer name."""
    code, called = code_of(language) or "?", {language.casefold(), name_of(language).casefold()}
    names = [name.strip() for name in rows[0]]
    usable = [
        at
        for at, name in enumerate(names)
        if len(name) > LONGEST_CODE or not (holds_numbers(rows, at) or _holds_keys(rows, at))
    ]
    yield [at for at in usable if names[at].casefold() in called]
    yield [at for at in usable if code_of(names[at]) == code]
    yield [at for at in usable if is_longer_name(rows[0], at) and language_named(names[at]) == code]


def _holds_keys(rows: Rows, at: int) -> bool:
    """Whether a column called `id` holds keys, words without a blank, and no Indonesian."""
    below = ["".join(row[at : at + 1]).strip() for row in rows[1:]]
    return rows[0][at].strip().casefold() == NUMBERS and any(below) and not any(" " in field for field in below)


def _names(name: str, side: str, language: str) -> bool:
    """Whether this is the name of a column that was said by its number: its language's, or its side's."""
    if len(name.split()) > MOST_WORDS:
        return False
    code = language_named(name)
    return side_named(name) == side or (bool(code) and code == (code_of(language) or code))


def _are_headings(rows: Rows) -> bool:
    """Whether the first row looks like one of names: what numbers are called, or a word above each text, all longer."""
    for at, name in enumerate(rows[0]):
        below = ["".join(row[at : at + 1]).strip() for row in rows[1:]]
        is_numbered = any(below) and all(not field or field.strip(".").isdecimal() for field in below)
        if (is_numbered and name.strip(" .:#°").casefold() in NUMBERED) or _holds_keys(rows, at):
            return True
    texts = [at for at in range(len(rows[0])) if is_text(rows, at)]
    return len(texts) > 1 and all(looks_like_a_name(rows, at) for at in texts)


def _to_fill(src: int, rows: Rows, are_named: bool) -> int | None:
    """The only column with nothing in it; of two without names the other, where a row lacks its text."""
    others = [at for at in range(len(rows[0])) if at != src]
    empty = [at for at in others if not any("".join(row[at : at + 1]).strip() for row in rows)]
    if len(empty) == 1:
        return empty[0]
    if len(others) != 1 or are_named:
        return None
    [other] = others
    fields = ["".join(row[other : other + 1]).strip() for row in rows if "".join(row[src : src + 1]).strip()]
    has_text = any(any(map(str.isalpha, field)) for field in fields)
    return other if has_text and not all(fields) else None
