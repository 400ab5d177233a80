"""Columns of a labelled table: which hold texts and labels, and whether the first row is a heading.

A column with a usual heading is chosen by it. Without one, the texts are the column with the most words, at least
twice as many as any other, and the labels the only other column whose values repeat. A first row is a heading if it
contains a usual heading or a given one, or if its label occurs in no other row although all others repeat.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from heed.core.errors import DataError, UsageError
from heed.text.readers.columns import listed

SAMPLE_ROWS = 1000
"""Rows by whose contents columns are chosen."""

PAIRS = (
    ("sentence1", "sentence2"), ("premise", "hypothesis"), ("sentence_a", "sentence_b"), ("text_a", "text_b"),
    ("text1", "text2"), ("question1", "question2"), ("sentence 1", "sentence 2"), ("question", "sentence"),
)  # fmt: skip
"""Usual headings of pairs of texts."""
TEXTS = (
    "text", "sentence", "review", "question", "document", "content", "body", "message", "comment", "tweet",
    "utterance", "query", "post", "description", "article", "abstract", "email", "sms", "headline", "title",
)  # fmt: skip
"""Usual headings of texts, the most usual first."""
LABELS = (
    "label", "labels", "class", "category", "categories", "target", "sentiment", "topic", "topics", "intent", "tag",
    "tags", "gold_label", "entailment_judgment", "polarity", "emotion", "stars", "rating", "score",
)  # fmt: skip
"""Usual headings of labels, the most usual first."""
MOST_REPEATED = 0.5
"""Share of distinct values among the rows up to which a column can hold labels."""


class UnclearColumnsError(UsageError):
    """Columns cannot be chosen; the advice is the flag that names them."""

    def __init__(self, problem: str, advice: str) -> None:
        super().__init__(f"{problem} {advice}")
        self.problem = problem


@dataclass(frozen=True)
class Choice:
    """Positions of the columns, from 0, and how they were chosen."""

    texts: tuple[int, ...]
    label: int | None
    has_heading: bool
    how: str
    """A sentence: `text: column "review"; label: column "stars".`"""


def choose_columns(
    name: str, heading: Sequence[str] | None, rows: Sequence[Sequence[Any]], text_columns: Sequence[int | str],
    label_column: int | str | None, needs_labels: bool = True,
) -> Choice:  # fmt: skip
    """Choose the columns of a table from its first rows. `heading`: the names of its fields, if the format has them.

    Raises DataError for a column that does not exist, UnclearColumnsError when the columns have to be given.
    """
    first = [str(cell or "") for cell in (rows[0] if heading is None else heading)]
    width = max(map(len, [first, *rows]))
    names_given = any(isinstance(column, str) for column in (*text_columns, label_column))
    has_heading = heading is not None or names_given or _is_heading(first, rows)
    names = [cell.strip().casefold() for cell in first] if has_heading else []
    body = rows[1:] if has_heading and heading is None else rows
    texts = tuple(_position(column, first, name, width) for column in text_columns)
    label = None if label_column is None else _position(label_column, first, name, width)
    if label is None and needs_labels:
        label = _label_by_name(names, texts)
    texts = texts or _texts_by_name(names, label)
    columns = [_Column.of(at, body) for at in range(width)]
    texts = texts or (_longest(columns, label, first, name),)
    if label is None and needs_labels:
        label = _repeating(columns, texts, first, name)
    if label in texts:
        raise UsageError(f"{name}: column {texts[0] + 1} cannot hold both the texts and the labels.")
    named = first if has_heading else []  # a row of a malformed table may have more cells than the heading
    shown = [f'column "{named[at].strip()}"' if at < len(named) else f"column {at + 1}" for at in range(width)]
    how = f"text: {' and '.join(shown[at] for at in texts)}"
    return Choice(texts, label, has_heading, how + (f"; label: {shown[label]}" if label is not None else ""))


@dataclass(frozen=True)
class _Column:
    """The contents of a column of the first rows."""

    at: int
    mean_words: float
    share_distinct: float
    num_distinct: int

    @staticmethod
    def of(at: int, rows: Sequence[Sequence[Any]]) -> _Column:
        cells = [str(row[at]) if at < len(row) and row[at] is not None else "" for row in rows]
        filled = [cell for cell in cells if cell.strip()]
        words = sum(len(cell.split()) for cell in filled) / max(1, len(filled))
        distinct = len(set(filled))
        return _Column(at, words, distinct / max(1, len(filled)), distinct)


def _is_heading(first: Sequence[str], rows: Sequence[Sequence[Any]]) -> bool:
    names = {cell.strip().casefold() for cell in first}
    usual = {*TEXTS, *LABELS, *(name for pair in PAIRS for name in pair)}
    if names & usual and all(len(cell.split()) <= 4 for cell in first):
        return True
    if len(rows) < 3 or any(len(cell.split()) > 3 or not cell.strip() for cell in first):
        return False
    columns = [_Column.of(at, rows[1:]) for at in range(len(first))]
    return any(
        column.share_distinct <= MOST_REPEATED
        and not any(at < len(row) and str(row[at]).strip() == first[at].strip() for row in rows[1:])
        for at, column in enumerate(columns)
    )


def _position(column: int | str, first: Sequence[str], name: str, width: int) -> int:
    if isinstance(column, int):
        if not 1 <= column <= width:
            raise DataError(f"{name}: no column {column}; the table has {width} ({listed(first)}).")
        return column - 1
    places = [at for at, cell in enumerate(first) if cell.strip().casefold() == column.strip().casefold()]
    if not places:
        raise DataError(f"{name}: no column {column!r}; the table has {listed(first)}.")
    return places[0]


def _label_by_name(names: Sequence[str], texts: Sequence[int]) -> int | None:
    usual = [name for name in LABELS if name in names and names.index(name) not in texts]
    return names.index(usual[0]) if usual else None


def _texts_by_name(names: Sequence[str], label: int | None) -> tuple[int, ...]:
    for pair in PAIRS:
        if all(name in names for name in pair):
            return names.index(pair[0]), names.index(pair[1])
    usual = [names.index(name) for name in TEXTS if name in names and names.index(name) != label]
    return tuple(usual[:1])


def _longest(columns: Sequence[_Column], label: int | None, first: Sequence[str], name: str) -> int:
    ranked = sorted((column for column in columns if column.at != label), key=lambda column: -column.mean_words)
    if not ranked:
        raise UsageError(f"{name}: no column of texts; the table has only {listed(first)}.")
    rival = ranked[1].mean_words if len(ranked) > 1 else 0.0
    if ranked[0].mean_words < 2 * rival or (ranked[0].mean_words <= 1 and len(ranked) > 1):
        raise UnclearColumnsError(
            f"{name}: several columns could hold the texts ({listed(first)}).",
            f"Name one: --text-column {ranked[0].at + 1} (give the flag twice for pairs of texts).",
        )
    return ranked[0].at


def _repeating(columns: Sequence[_Column], texts: Sequence[int], first: Sequence[str], name: str) -> int:
    others = [column for column in columns if column.at not in texts]
    able = [column for column in others if column.num_distinct and column.share_distinct <= MOST_REPEATED]
    able = able or (others if len(others) == 1 and others[0].num_distinct else [])
    if len(able) == 1:
        return able[0].at
    if not able:
        raise UnclearColumnsError(
            f"{name}: no column of labels (columns: {listed(first)}).",
            "Name it with --label-column, or what the table is for with --task.",
        )
    numbers = " and ".join(str(column.at + 1) for column in able)
    raise UnclearColumnsError(
        f"{name}: columns {numbers} could hold the labels ({listed(first)}).",
        f"Name it: --label-column {able[0].at + 1}.",
    )
