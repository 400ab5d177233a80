"""Which columns of a table hold source and target, and is its first row one of names?

Columns are chosen by number or by their names in the first row. Where nothing was said, the names are compared
with the languages of the corpus; then the first column is the source and the second the target, which in CSV must be
all there are, or all that are named as languages. TSV may have more behind two that hold text, such as where they come
from; numbers of the rows, their keys and addresses are never taken for a side, not even below "No", the code of
Norwegian.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from heed.core.errors import DataError, UsageError
from heed.text.language.codes import code_of
from heed.text.readers.corpus import CorpusFiles

SIDES = {
    "source": "src", "src": "src", "original": "src", "target": "tgt", "tgt": "tgt", "trg": "tgt", "translation": "tgt",
}  # fmt: skip
"""What people call a side at the top of its column."""

NUMBERS = "id"
"""Between other columns this is no Indonesian, but what the rows are called."""

MOST_WORDS = 3
"""The name of a column is no longer: `German sentence`, `Source text (English)`."""

MOST_COLUMNS = 100
"""A table with more has no names of several words."""

LONGEST_CODE = 3
"""A longer word that says a language is its name, which hardly begins a sentence as `he`, `no` and `may` do."""

SHORTER = 4
"""In CSV one or two words that are so many times shorter than what stands below them are names."""

_KEY = re.compile(r"[!-.:-^`-~]*[0-9/_][!-~]*")
"""`doc12-en`, `http://example.org/a`: what rows are called, or where they come from."""
_WORDS = re.compile(r"[^\W\d_]+(?:[ -][^\W\d_]+)?")
_FEWEST_ROWS = 5


@dataclass(frozen=True)
class Columns:
    """Positions, counted from 0, and whether the first row only names the columns."""

    src: int
    tgt: int
    are_named: bool


def parse_column(text: str | None) -> int | str | None:
    """The number of a column, or its name, as somebody has said it; None when nothing was said."""
    return int(text) if text is not None and text.isdecimal() and len(text) < 10 else text


def find_columns(files: CorpusFiles, rows: Sequence[Sequence[str]], place: str) -> Columns:
    """The columns of a table that begins with these rows; `place` is the first one's, for messages.

    Raises DataError for a name that is not there, UsageError when nothing tells which columns are meant.
    """
    first = rows[0]
    src, src_by_name = position_of(files.src_column, files.src_lang, "src", rows, place)
    tgt, tgt_by_name = position_of(files.tgt_column, files.tgt_lang, "tgt", rows, place)
    languages = [at for at, code in enumerate(_codes(rows)) if code and first[at].strip().casefold() != NUMBERS]
    if src is None and tgt is None and len(languages) == 2:
        src, tgt = languages
    elif len(first) <= 2 or files.record_format == "tsv":
        usual = int(tgt == 0), int(src != 1)
        allowed = usual if len(first) <= 2 else [at for at in usual if is_text(rows, at)]
        src = usual[0] if src is None and usual[0] in allowed else src
        tgt = usual[1] if tgt is None and usual[1] in allowed else tgt
    if src is None or tgt is None:
        texts = [at for at in range(len(first)) if is_text(rows, at)]
        first_text, second_text = texts if len(texts) == 2 else (0, 1)
        raise UsageError(
            f"{place}: {len(first)} columns ({listed(first)}). Say which hold source and target, by their numbers or "
            f"by their names in the first row: --src-column {first_text + 1} --tgt-column {second_text + 1}."
        )
    if src == tgt:
        raise UsageError(f"{place}: source and target cannot both be column {src + 1}.")
    by_look = files.record_format == "csv" and all(looks_like_a_name(rows, position) for position in (src, tgt))
    said = _are_names(*(first[position] if position < len(first) else "" for position in (src, tgt)))
    return Columns(src, tgt, src_by_name or tgt_by_name or said or by_look)


def language_named(name: str) -> str:
    """The code of the language that a column's name says; empty: none.

    `de`, `German`, `German sentence`, or `texte allemand`: of two words the second, as in Romance languages.
    """
    words = name.split()
    places = words[:1] * (len(words) <= MOST_WORDS) + words[1:] * (len(words) == 2)
    return code_of(name) or next(filter(None, (code_of(word) for word in places if len(word) > LONGEST_CODE)), "")


def side_named(name: str) -> str:
    """The side that a column's name begins with, `src` for `Source text`; empty: none."""
    return SIDES.get("".join(name.split()[:1]).casefold(), "")


def position_of(
    column: int | str | None, language: str, side: str, rows: Sequence[Sequence[str]], place: str
) -> tuple[int | None, bool]:
    """Where the column of one side is (None: nothing tells), and whether its name told it."""
    if isinstance(column, int):
        return column - 1, False
    names = [field.strip().casefold() for field in rows[0]]
    if column is not None:
        called = [at for at, name in enumerate(names) if name == column.strip().casefold()]
        if not called:
            raise DataError(f"{place}: no column {column!r}; the first row has {listed(rows[0])}.")
        if len(called) > 1:
            told = " and ".join(str(at + 1) for at in called)
            raise UsageError(f"{place}: columns {told} have the name {column!r}; say by its number which one is meant.")
        return called[0], True
    codes = _codes(rows)
    if language and codes.count(code_of(language) or "?") == 1:
        return codes.index(code_of(language)), True
    texts = [at for at in range(len(names)) if not holds_numbers(rows, at)]
    alone = [at for at in texts if SIDES.get(names[at]) == side]
    of_language = sum(map(bool, codes)) >= 2  # then "Source domain" is no side
    longer = [at for at in texts if not of_language and side_named(names[at]) == side and is_longer_name(rows[0], at)]
    found = alone[0] if alone else longer[0] if len(longer) == 1 else None
    return found, found is not None


def _codes(rows: Sequence[Sequence[str]]) -> list[str]:
    """The language that each column is named by; none where numbers stand below.

    Beside `English` a longer name such as `English note` is none.
    """
    codes = [code_of(name) if not holds_numbers(rows, at) else "" for at, name in enumerate(rows[0])]
    longer = [
        language_named(name) if is_longer_name(rows[0], at) and not holds_numbers(rows, at) else ""
        for at, name in enumerate(rows[0])
    ]
    return [code or (more if more not in codes else "") for code, more in zip(codes, longer, strict=True)]


def is_longer_name(first: Sequence[str], position: int) -> bool:
    """Whether several words, such as `German sentence`, are a name, as the row has another beside it.

    A code among more than two columns is none: each row may have one, of its text. Each name is compared with all
    others, so nobody looks for longer ones where there are too many.
    """
    name = first[position]
    if len(first) > MOST_COLUMNS or len(name.split()) == 1 or not (language_named(name) or side_named(name)):
        return False
    others = [other for at, other in enumerate(first) if at != position]
    if len(first) > 2 and not language_named(name):  # "Source text" needs a "Target text", not "Translation notes"
        ends = name.split()[1:]
        return any(side_named(other) not in ("", side_named(name)) and other.split()[1:] == ends for other in others)
    return any(_are_names(name, other) for other in others if len(first) == 2 or len(other) > LONGEST_CODE)


def holds_numbers(rows: Sequence[Sequence[str]], position: int) -> bool:
    """Whether most of what stands below the first row has no letter; nothing at all tells nothing."""
    below = [row[position] for row in rows[1:] if position < len(row) and row[position].strip()]
    return 2 * sum(any(map(str.isalpha, field)) for field in below) < len(below)


def _are_names(one: str, other: str) -> bool:
    """Whether both say what they are, or one its language and the other ends as it does.

    So `English text` and `Kanuri text` are names, although nothing is known of Kanuri.
    """
    words = [name.split() for name in (one, other)]
    if not all(0 < len(its) <= MOST_WORDS for its in words):
        return False
    languages = [language_named(name) for name in (one, other)]
    if languages[0] == languages[1] != "":  # "Speak English" and "Parle anglais" are text
        return False
    if all(language or side_named(name) for language, name in zip(languages, (one, other), strict=True)):
        return True
    return any(languages) and words[0][1:] == words[1][1:] != []


def is_text(rows: Sequence[Sequence[str]], position: int) -> bool:
    """Whether most rows have a letter there, which numbers and scores have not, and are no keys or addresses."""
    column = [row[position] for row in rows if position < len(row)]
    return 2 * sum(any(map(str.isalpha, field)) and not _KEY.fullmatch(field) for field in column) > len(column)


def looks_like_a_name(rows: Sequence[Sequence[str]], position: int) -> bool:
    """Whether a word or two stand above text that is much longer."""
    column = [row[position].strip() for row in rows if position < len(row)]
    if len(column) <= _FEWEST_ROWS or not _WORDS.fullmatch(column[0]):
        return False
    return median(map(len, column[1:])) >= SHORTER * len(column[0])


def listed(names: Sequence[str]) -> str:
    """Names for a message, cut when they are long or many."""
    shown = [repr(name if len(name) <= 30 else f"{name[:29]}…") for name in names[:10]]
    return ", ".join(shown) + (", ..." if len(names) > 10 else "")
