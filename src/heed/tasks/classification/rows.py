"""Rows of a classifier's tables: usable ones, and those held out for validation."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import compress

import numpy as np
from numpy.typing import NDArray

from heed.core.errors import DataError
from heed.tasks.classification.data import TableData
from heed.text.hashing import hash_text
from heed.text.readers.labelled import open_labelled

Texts = tuple[str, ...]
LabelledTexts = tuple[Texts, tuple[str, ...]]


@dataclass(frozen=True)
class TableRows:
    """The rows of a table that have texts and labels, normalised; each iteration reads the file anew."""

    data: TableData
    path: str

    def __iter__(self) -> Iterator[LabelledTexts]:
        normalise = self.data.normaliser.apply
        may_have_none = self.data.answer in ("auto", "labels")
        for row in open_labelled(self.data.labelled(self.path), self.data.errors).rows:
            texts = tuple(map(normalise, row.texts))
            if all(text.strip() for text in texts) and (row.labels or (row.is_list and may_have_none)):
                yield texts, row.labels


def held_out(rows: TableRows, number: int, seed: int, kind: str) -> NDArray[np.bool_]:
    """Which rows are held out: about `number`, with the same share of each label, and equal texts together.

    `kind`: of the answers. A row with several labels counts for the rarest of them. Texts are ordered by a hash that
    depends on the seed, and the first of each label are taken. Raises DataError if more than half would be held out.
    """
    keys, groups, names = array("Q"), array("q"), dict[str, int]()
    first: dict[int, int] = {}
    counts = Counter(label for _, labels in rows for label in labels) if kind == "labels" else Counter[str]()
    for texts, labels in rows:
        key = hash_text(f"{seed}\t" + "\t".join(texts))
        keys.append(key)
        label = "" if kind == "number" else min(labels, key=lambda each: (counts[each], each), default="")
        groups.append(first.setdefault(key, names.setdefault(label, len(names))))
    if 2 * number > len(keys):
        raise DataError(
            f"data.hold_out = {number:,} would hold out more than half of the {len(keys):,} rows. Lower it, or give "
            "separate validation data (--valid-table)."
        )
    hashes, of = np.array(keys, dtype=np.uint64), np.array(groups, dtype=np.int64)
    held = np.zeros(len(hashes), dtype=bool)
    for group in range(len(names)):
        distinct = np.unique(hashes[of == group])
        share = number * len(distinct) / len(hashes)
        taken = min(len(distinct) - 1, int(share + (distinct[0] >> np.uint64(11)) / 2**53)) if len(distinct) else 0
        if taken > 0:
            held |= (of == group) & (hashes <= distinct[taken - 1])
    return held


def training_rows(rows: TableRows, held: NDArray[np.bool_] | None) -> Iterator[LabelledTexts]:
    """The rows that are not held out."""
    return iter(rows) if held is None else compress(rows, ~held)


def with_labels(texts: Texts, label: str) -> tuple[str, ...]:
    """A row of the validation data: texts and labels, as text."""
    return (*texts, label)


def split(row: Sequence[str]) -> tuple[Texts, str]:
    """Texts and labels of such a row."""
    return tuple(row[:-1]), row[-1]
