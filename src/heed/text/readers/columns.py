"""Columns of a table: selection of source and target, and detection of a row of headings.

A column is selected by its number, counted from 1, or by its heading. By default, it is selected if its heading is a
language (`en`, `eng`, `en-US`, `English`) or a side (`source`, `src`, `target`, `tgt`, `trg`). A table of two columns
without such headings has the source first, unless its first row looks like other headings ("Source sentence"), which
must not be trained on. In that case, and in any wider table, the columns must be given.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from heed.core.errors import DataError, UsageError
from heed.text.language.codes import code_of, name_of
from heed.text.readers.corpus import CorpusFiles, require_column_numbers
from heed.text.words import JOINERS

SIDES = {"source": "src", "src": "src", "target": "tgt", "tgt": "tgt", "trg": "tgt"}
"""The side that a heading names."""
FLAGS = {"src": "--src-column", "tgt": "--tgt-column"}
_LIKE_HEADING = re.compile(r"\s*[\w()/-]+(?: [\w()/-]+){0,3}\s*")
"""A field of at most four words, without punctuation that ends a sentence; marks and joiners are left out before."""
ROW_KEYS = ("id", "no")
"""Headings of row numbers and keys. In a wide table, they do not count as codes of Indonesian and Norwegian."""


@dataclass(frozen=True)
class Columns:
    """Positions, counted from 0, and whether the first row is a heading."""

    src: int
    tgt: int
    """For a table to translate, the position after the last column stands for a new one."""
    are_named: bool


@dataclass(frozen=True)
class Sides:
    """The languages of a translation (codes; empty: unknown) and the columns given for it, by number or by heading.

    Raises UsageError for a number below 1.
    """

    src_lang: str = ""
    tgt_lang: str = ""
    src_column: int | str | None = None
    tgt_column: int | str | None = None

    def __post_init__(self) -> None:
        require_column_numbers(self.src_column, self.tgt_column)


def parse_column(text: str | None) -> int | str | None:
    """The number of a column or its heading, as given on the command line; None if not given."""
    return int(text) if text is not None and text.isdecimal() and len(text) < 10 else text


def find_columns(files: CorpusFiles, first: Sequence[str], place: str) -> Columns:
    """The columns of a table whose first row is `first`; `place` names that row in messages.

    Raises DataError for a heading that does not exist, UsageError when the columns have to be given.
    """
    src = _selected("src", files.src_column, files.src_lang, first, place)
    tgt = _selected("tgt", files.tgt_column, files.tgt_lang, first, place)
    are_named = any(
        isinstance(column, str) or (column is None and at is not None)
        for column, at in ((files.src_column, src), (files.tgt_column, tgt))
    )
    if src is None and tgt is None and (languages := _two_languages(first)):
        src, tgt = languages
    elif len(first) <= 2:
        src, tgt = int(tgt == 0) if src is None else src, int(src != 1) if tgt is None else tgt
    if src is None or tgt is None:
        raise UsageError(
            f"{place}: {len(first)} columns ({listed(first)}), and no heading identifies the source and the target. "
            "Select them by number or by heading, for example --src-column 1 --tgt-column 2."
        )
    if src == tgt:
        raise UsageError(f"{place}: source and target cannot both be column {src + 1}.")
    headings = [first[at] if at < len(first) else "" for at in (src, tgt)]
    codes = [code_of(heading) for heading in headings]
    are_headings = all(codes[n] or side_of(headings[n]) for n in (0, 1)) and not codes[0] == codes[1] != ""
    if not (are_named or are_headings) and files.src_column is None and files.tgt_column is None:
        _refuse_unknown_headings(first, place)
    return Columns(src, tgt, are_named or are_headings)


def find_fields(files: CorpusFiles, names: Sequence[str]) -> tuple[str, str]:
    """The fields of the source and the target of a record that has fields of these `names`.

    Without a given column, the field called `src` or `tgt`, or else the only one that is called as the language.
    """
    sides = (
        (files.fields[0], files.src_column, files.src_lang),
        (files.fields[1], files.tgt_column, files.tgt_lang),
    )
    src, tgt = (
        field if field in names or column is not None else _field_of(language, names) or field
        for field, column, language in sides
    )
    return (src, tgt) if src != tgt else files.fields


def _field_of(language: str, names: Sequence[str]) -> str:
    """The only field called as the language; empty if there is none, or several."""
    found = next(filter(None, _of_language(language, names)), ()) if language else ()
    return names[found[0]] if len(found) == 1 else ""


def _refuse_unknown_headings(first: Sequence[str], place: str) -> None:
    """Raise UsageError if the first two fields look like headings, but are not exactly languages or sides.

    Each is a few words without punctuation, and both name a language or a side, or one of them is exactly that.
    """
    names = [_name_in(field) for field in first]
    if len(names) < 2 or names[0] == names[1] or not all(map(_is_like_heading, first)):
        return
    is_whole = any(name and " " not in field.strip() for name, field in zip(names, first, strict=True))
    if all(names) or is_whole:
        src, tgt = (2, 1) if names[0] == "tgt" or names[1] == "src" else (1, 2)
        raise UsageError(
            f"{place}: the first row ({listed(first)}) looks like a row of headings, but heed cannot be sure. If these "
            f"are headings, select the columns by them: --src-column {first[src - 1].strip()!r} "
            f"--tgt-column {first[tgt - 1].strip()!r}. If they are a sentence pair, select the columns by number: "
            f"--src-column {src} --tgt-column {tgt}."
        )


def _is_like_heading(field: str) -> bool:
    return _LIKE_HEADING.fullmatch("".join(char for char in field if not _is_mark(char))) is not None


def _is_mark(char: str) -> bool:
    """Whether a character goes on with the word of the letter before it, in any script."""
    return unicodedata.category(char).startswith("M") or char in JOINERS


def _name_in(field: str) -> str:
    """The side or the code of the language that a word of a field names in full; empty if none does."""
    words = "".join(char if char.isalpha() or _is_mark(char) else " " for char in field).split()
    return next(filter(None, (side_of(word) or (code_of(word) if len(word) > 3 else "") for word in words)), "")


def find_to_translate(sides: Sides, first: Sequence[str], place: str) -> Columns:
    """The column of a table to translate, and the one to fill; `first` is the first row, `place` names the table.

    Raises DataError for a column that does not exist, UsageError when the columns have to be given.
    """
    width = len(first)
    for column, largest in ((sides.src_column, width), (sides.tgt_column, width + 1)):
        if isinstance(column, int) and column > largest:
            raise DataError(f"{place}: no column {column}; the first row has {width} ({listed(first)}).")
    src = _selected("src", sides.src_column, sides.src_lang, first, place)
    is_new = isinstance(sides.tgt_column, str) and not _called(sides.tgt_column, first)
    tgt = None if is_new else _selected("tgt", sides.tgt_column, sides.tgt_lang, first, place)
    tgt = width if tgt is None else tgt
    are_named = (
        any(isinstance(column, str) for column in (sides.src_column, sides.tgt_column))
        or (src is not None and _is_heading(first[src], "src", sides.src_lang))
        or (tgt < width and _is_heading(first[tgt], "tgt", sides.tgt_lang))
    )
    if src is None and width == 1:
        src = 0
    if src is None:
        raise UsageError(
            f"{place}: {width} columns ({listed(first)}), and no heading identifies the one to translate. Select it by "
            "number or by heading: --src-column 1 (in a request, the field src_column)."
        )
    if src == tgt:
        raise UsageError(f"{place}: source and target cannot both be column {src + 1}.")
    return Columns(src, tgt, are_named)


def side_of(heading: str) -> str:
    """The side that a heading names, "src" or "tgt"; empty: none."""
    return SIDES.get(heading.strip().casefold(), "")


def listed(names: Sequence[str]) -> str:
    """Names for a message, cut when they are long or many."""
    shown = [repr(name if len(name) <= 30 else f"{name[:29]}…") for name in names[:10]]
    return ", ".join(shown) + (", ..." if len(names) > 10 else "")


def _selected(side: str, column: int | str | None, language: str, first: Sequence[str], place: str) -> int | None:
    """The position of a given column, or else of one whose heading is the language or the side; None if neither."""
    return _by_heading(side, language, first, place) if column is None else _given(column, first, place, side)


def _given(column: int | str, first: Sequence[str], place: str, side: str) -> int:
    """The position of a column given by number or by heading."""
    if isinstance(column, int):
        return column - 1
    positions = _called(column, first)
    if not positions:
        raise DataError(f"{place}: no column {column!r}; the first row has {listed(first)}.")
    if len(positions) > 1:
        numbers = " and ".join(str(at + 1) for at in positions)
        advice = f"Select one by number, such as {FLAGS[side]} {positions[0] + 1}."
        raise UsageError(f"{place}: columns {numbers} are all called {column!r}. {advice}")
    return positions[0]


def _called(name: str, first: Sequence[str]) -> list[int]:
    return [at for at, heading in enumerate(first) if heading.strip().casefold() == name.strip().casefold()]


def _by_heading(side: str, language: str, first: Sequence[str], place: str) -> int | None:
    """The column whose heading is the language, or else the side. Raises UsageError when several are the language."""
    for positions in _of_language(language, first) if language else ():
        if len(positions) > 1:
            raise UsageError(
                f"{place}: the columns {listed([first[at] for at in positions])} are all in the language of the "
                f"{'source' if side == 'src' else 'target'}. Select one: {FLAGS[side]} {positions[0] + 1}."
            )
        if positions:
            return positions[0]
    return next((at for at, heading in enumerate(first) if side_of(heading) == side), None)


def _of_language(language: str, first: Sequence[str]) -> Iterator[list[int]]:
    """The columns called exactly as the language, then those called by another name or a variety of it."""
    names = {language.casefold(), name_of(language).casefold()}
    yield [at for at, heading in enumerate(first) if heading.strip().casefold() in names]
    yield [at for at, heading in enumerate(first) if code_of(heading) == (code_of(language) or "?")]


def _two_languages(first: Sequence[str]) -> list[int]:
    """The two columns whose headings are languages; nothing if there are more or fewer."""
    positions = [at for at, heading in enumerate(first) if code_of(heading)]
    if len(first) > 2:
        positions = [at for at in positions if first[at].strip().casefold() not in ROW_KEYS]
    return positions if len(positions) == 2 else []


def _is_heading(text: str, side: str, language: str) -> bool:
    """Whether a field is the heading of one side, whose language may be unknown."""
    code = code_of(text)
    return side_of(text) == side or (code != "" and code == (code_of(language) or code))
