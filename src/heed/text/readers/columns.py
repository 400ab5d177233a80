"""Which columns of a table hold source and target, and is its first row one of names?

Columns are chosen by number or by their names in the first row. Where nothing was said, the names are compared
with the languages of the corpus; then the first column is the source and the second the target, which in CSV must be
all there are, or all that are named as languages. TSV may have more behind two that hold text, such as where they come
from; numbers of the rows are never taken for a side, not even below "No", the code of Norwegian.
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
"""Between other columns this is no Indonesian, but what the rows are called."""

MOST_WORDS = 3
"""The name of a column is no longer: `German sentence`, `Source text (English)`."""

LONGEST_CODE = 3
"""A longer word that says a language is its name, which hardly begins a sentence as `he`, `no` and `may` do."""

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


def parse_column(text: str | None) -> int | str | None:
    """The number of a column, or its name, as somebody has said it; None when nothing was said."""
    return int(text) if text is not None and text.isdecimal() and len(text) < 10 else text


def find_columns(files: CorpusFiles, rows: Sequence[Sequence[str]], place: str) -> Columns:
    """The columns of a table that begins with these rows; `place` is the first one's, for messages.

    Raises DataError for a name that is not there, UsageError when nothing tells which columns are meant.
    """
    first = rows[0]
    src, src_by_name = _position(files.src_column, files.src_lang, "src", rows, place)
    tgt, tgt_by_name = _position(files.tgt_column, files.tgt_lang, "tgt", rows, place)
    languages = [at for at, code in enumerate(_codes(rows)) if code and first[at].strip().casefold() != NUMBERS]
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
    said = _are_names(*(first[position] if position < len(first) else "" for position in (src, tgt)))
    return Columns(src, tgt, src_by_name or tgt_by_name or said or by_look)


def find_source(
    src_column: int | str | None, src_lang: str, tgt_lang: str, rows: Sequence[Sequence[str]], place: str
) -> tuple[int, bool]:
    """Which column of a table holds what is to be translated, and whether the first row only names the columns.

    The one that was said, or is named by the source's language or as the source; else the only one with text in it.
    Raises DataError for a name that is not there, UsageError when nothing tells the column.
    """
    at, by_name = _position(src_column, src_lang, "src", rows, place)
    texts = [n for n in range(len(rows[0])) if _is_text(rows[1:] or rows, n)]
    if at is None and len(texts) == 1:
        at = texts[0]
    if at is None:
        raise UsageError(
            f"{place}: {len(rows[0])} columns ({listed(rows[0])}). Say which one is translated, by its number or by "
            "its name in the first row (--src-column 1; of a request the field src_column)."
        )
    if at >= len(rows[0]):
        raise DataError(f"{place}: no column {at + 1}; the first row has {len(rows[0])} ({listed(rows[0])}).")
    name = rows[0][at]
    others = [language_named(other) or _side_named(other) for n, other in enumerate(rows[0]) if n != at]
    says = len(name.split()) <= MOST_WORDS and bool(language_named(name) or _side_named(name))
    return at, by_name or (says and (not others or any(others))) or _looks_like_a_name(rows, at)


def find_target(
    tgt_column: int | str | None, tgt_lang: str, src: int, rows: Sequence[Sequence[str]], place: str
) -> int | None:
    """Which column takes the translations: the one said, named by the language or as the target, or an empty one.

    None: none does, and a new one is needed. Raises UsageError for the source's own, DataError for a number beyond it.
    """
    if isinstance(tgt_column, str) and tgt_column.strip().casefold() not in (n.strip().casefold() for n in rows[0]):
        return None
    at, _ = _position(tgt_column, tgt_lang, "tgt", rows, place)
    if at is None:
        empty = [n for n in range(len(rows[0])) if n != src and not any("".join(row[n : n + 1]) for row in rows)]
        at = empty[0] if len(empty) == 1 else None
    if at == src:
        raise UsageError(f"{place}: source and target cannot both be column {src + 1}.")
    if at is not None and at > len(rows[0]):
        raise DataError(f"{place}: no column {at + 1}; the first row has {len(rows[0])} ({listed(rows[0])}).")
    return at if at is None or at < len(rows[0]) else None


def language_named(name: str) -> str:
    """The code of the language that a column's name says; empty: none.

    `de`, `German`, `German sentence`, or `texte allemand`: of two words the second, as in Romance languages.
    """
    words = name.split()
    places = words[:1] * (len(words) <= MOST_WORDS) + words[1:] * (len(words) == 2)
    return code_of(name) or next(filter(None, (code_of(word) for word in places if len(word) > LONGEST_CODE)), "")


def _side_named(name: str) -> str:
    """The side that a column's name begins with, `src` for `Source text`; empty: none."""
    return SIDES.get("".join(name.split()[:1]).casefold(), "")


def _position(
    column: int | str | None, language: str, side: str, rows: Sequence[Sequence[str]], place: str
) -> tuple[int | None, bool]:
    """Where the column of one side is (None: nothing tells), and whether its name told it."""
    if isinstance(column, int):
        return column - 1, False
    names = [field.strip().casefold() for field in rows[0]]
    if column is not None:
        if column.strip().casefold() not in names:
            raise DataError(f"{place}: no column {column!r}; the first row has {listed(rows[0])}.")
        return names.index(column.strip().casefold()), True
    codes = _codes(rows)
    if language and codes.count(code_of(language) or "?") == 1:
        return codes.index(code_of(language)), True
    texts = [at for at in range(len(names)) if not _holds_numbers(rows, at)]
    alone = [at for at in texts if SIDES.get(names[at]) == side]
    of_language = sum(map(bool, codes)) >= 2  # then "Source domain" is no side
    longer = [at for at in texts if not of_language and _side_named(names[at]) == side and _is_longer_name(rows[0], at)]
    found = alone[0] if alone else longer[0] if len(longer) == 1 else None
    return found, found is not None


def _codes(rows: Sequence[Sequence[str]]) -> list[str]:
    """The language that each column is named by; none where numbers stand below.

    Beside `English` a longer name such as `English note` is none.
    """
    codes = [code_of(name) if not _holds_numbers(rows, at) else "" for at, name in enumerate(rows[0])]
    longer = [
        language_named(name) if _is_longer_name(rows[0], at) and not _holds_numbers(rows, at) else ""
        for at, name in enumerate(rows[0])
    ]
    return [code or (more if more not in codes else "") for code, more in zip(codes, longer, strict=True)]


def _is_longer_name(first: Sequence[str], position: int) -> bool:
    """Whether several words, such as `German sentence`, are a name, as the row has another beside it.

    A code among more than two columns is none: each row may have one, of its text.
    """
    name = first[position]
    if len(name.split()) == 1 or not (language_named(name) or _side_named(name)):
        return False
    others = [other for at, other in enumerate(first) if at != position]
    if len(first) > 2 and not language_named(name):  # "Source text" needs a "Target text", not "Translation notes"
        ends = name.split()[1:]
        return any(_side_named(other) not in ("", _side_named(name)) and other.split()[1:] == ends for other in others)
    return any(_are_names(name, other) for other in others if len(first) == 2 or len(other) > LONGEST_CODE)


def _holds_numbers(rows: Sequence[Sequence[str]], position: int) -> bool:
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
    if all(language or _side_named(name) for language, name in zip(languages, (one, other), strict=True)):
        return True
    return any(languages) and words[0][1:] == words[1][1:] != []


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
