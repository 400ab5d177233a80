"""Which columns of a table hold source and target, and is its first row one of names?

Columns are chosen by number or by their names in the first row. Where nothing was said, the names are compared
with the languages of the corpus; then the first column is the source and the second the target, which in CSV must be
all there are, or all that are named as languages. TSV may have more behind two that hold text, such as where they come
from; numbers of the rows are never taken for a side.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from heed.core.errors import DataError, UsageError
from heed.text.languages import code_of
from heed.text.readers.corpus import CorpusFiles

SIDES = {
    "source": "src", "src": "src", "original": "src", "target": "tgt", "tgt": "tgt", "trg": "tgt", "translation": "tgt",
}  # fmt: skip
"""What people call a side at the top of its column."""

NUMBERS = "id"
"""Between other columns this is no Indonesian, but the numbers of the rows."""

SHORTER = 4
"""In CSV one or two words that are so many times shorter than what stands below them are names."""

_WORDS = re.compile(r"[^\W\d_]+(?:[ -][^\W\d_]+)?")
_FEWEST_ROWS = 5


@dataclass(frozen=True)
class Columns:
    """Positions, counted from 0, and whether the first row only names the columns."""

    src: int
    tgt: int
    are_named: bool


def find_columns(files: CorpusFiles, rows: Sequence[Sequence[str]], place: str) -> Columns:
    """The columns of a table that begins with these rows; `place` is the first one's, for messages.

    Raises DataError for a name that is not there, UsageError when nothing tells which columns are meant.
    """
    first = rows[0]
    src, src_by_name = _position(files.src_column, files.src_lang, "src", first, place)
    tgt, tgt_by_name = _position(files.tgt_column, files.tgt_lang, "tgt", first, place)
    languages = [at for at, name in enumerate(first) if code_of(name) and name.strip().casefold() != NUMBERS]
    if src is None and tgt is None and len(languages) == 2:
        src, tgt = languages
    elif len(first) <= 2 or files.record_format == "tsv":
        usual = int(tgt == 0), int(src != 1)
        allowed = usual if len(first) <= 2 else [at for at in usual if _is_text(rows, at)]
        src = usual[0] if src is None and usual[0] in allowed else src
        tgt = usual[1] if tgt is None and usual[1] in allowed else tgt
    if src is None or tgt is None:
        texts = [at for at in range(len(first)) if _is_text(rows, at)]
        first_text, second_text = texts if len(texts) == 2 else (0, 1)
        raise UsageError(
            f"{place}: {len(first)} columns ({listed(first)}). Say which hold source and target, by their numbers or "
            f"by their names in the first row: --src-column {first_text + 1} --tgt-column {second_text + 1}."
        )
    if src == tgt:
        raise UsageError(f"{place}: source and target cannot both be column {src + 1}.")
    by_look = files.record_format == "csv" and all(_looks_like_a_name(rows, position) for position in (src, tgt))
    said = all(_says_what_it_is(first, position) for position in (src, tgt))
    return Columns(src, tgt, src_by_name or tgt_by_name or said or by_look)


def _position(
    column: int | str | None, language: str, side: str, first: Sequence[str], place: str
) -> tuple[int | None, bool]:
    """Where the column of one side is (None: nothing tells), and whether its name told it."""
    if isinstance(column, int):
        return column - 1, False
    names = [field.strip().casefold() for field in first]
    if column is not None:
        if column.strip().casefold() not in names:
            raise DataError(f"{place}: no column {column!r}; the first row has {listed(first)}.")
        return names.index(column.strip().casefold()), True
    codes = [code_of(name) for name in names]
    if language and codes.count(code_of(language) or "?") == 1:
        return codes.index(code_of(language)), True
    found = next((position for position, name in enumerate(names) if SIDES.get(name) == side), None)
    return found, found is not None


def _says_what_it_is(first: Sequence[str], position: int) -> bool:
    name = first[position] if position < len(first) else ""
    return bool(code_of(name)) or name.strip().casefold() in SIDES


def _is_text(rows: Sequence[Sequence[str]], position: int) -> bool:
    """Whether most rows have a letter there: numbers of rows and scores have none."""
    column = [row[position] for row in rows if position < len(row)]
    return 2 * sum(any(map(str.isalpha, field)) for field in column) > len(column)


def _looks_like_a_name(rows: Sequence[Sequence[str]], position: int) -> bool:
    """Whether a word or two stand above text that is much longer."""
    column = [row[position].strip() for row in rows if position < len(row)]
    if len(column) <= _FEWEST_ROWS or not _WORDS.fullmatch(column[0]):
        return False
    return median(map(len, column[1:])) >= SHORTER * len(column[0])


def listed(names: Sequence[str]) -> str:
    """Names for a message, cut when they are long or many."""
    shown = [repr(name if len(name) <= 30 else f"{name[:29]}…") for name in names[:10]]
    return ", ".join(shown) + (", ..." if len(names) > 10 else "")
