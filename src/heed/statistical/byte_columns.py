"""Lines of text made of columns, joined for many lines at once.

A text is held as whole units of eight bytes, the last of which is filled up with zero bytes. So the texts of a column
are put in their places as numbers, and one pass over the result removes the zeros. No text may contain a zero.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from heed.statistical.predictor import Ints, members, starts

_UNIT = 8
"""Bytes of a unit; most words of a text, with the separator after them, need one."""


@dataclass(frozen=True, eq=False)
class Texts:
    """Texts to choose from, none of them empty."""

    heads: NDArray[np.uint64]
    """The first unit of each text."""
    tails: NDArray[np.uint64]
    """The further units of all texts."""
    bounds: Ints
    """Those of text i are from bounds[i] to bounds[i + 1]."""

    @classmethod
    def of(cls, texts: Sequence[bytes]) -> Texts:
        """Texts in the order of their numbers."""
        sizes = np.array([-(-len(text) // _UNIT) for text in texts], dtype=np.int64)
        filled = b"".join([text.ljust(size * _UNIT, b"\0") for text, size in zip(texts, sizes.tolist(), strict=True)])
        units = np.frombuffer(filled, dtype=np.uint64)
        is_head = np.zeros(len(units), dtype=np.bool_)
        is_head[starts(sizes)[:-1]] = True
        return cls(units[is_head], units[~is_head], starts(sizes - 1))

    def __add__(self, others: Texts) -> Texts:
        """These texts, then the others."""
        return Texts(
            np.concatenate([self.heads, others.heads]),
            np.concatenate([self.tails, others.tails]),
            np.concatenate([self.bounds, self.bounds[-1] + others.bounds[1:]]),
        )


class Column(NamedTuple):
    """A text for each line."""

    texts: Texts
    chosen: Ints
    """[N]: the number of the text."""


def joined(columns: Sequence[Column]) -> bytes:
    """The lines one after the other; each has its text of every column."""
    tails = [_tails(column) for column in columns]
    sizes = np.full(len(columns[0].chosen), len(columns), dtype=np.int64)
    for tail in tails:
        sizes += tail
    ends = np.cumsum(sizes)
    places = ends - sizes
    units = np.empty(sizes.sum(), dtype=np.uint64)
    for column, tail in zip(columns, tails, strict=True):
        units[places] = column.texts.heads[column.chosen]
        places += 1
        _put_tails(units, places, column, tail)
        places += tail
    return units.tobytes().translate(None, b"\0")


def _tails(column: Column) -> Ints | int:
    """The number of units after the first, for each line or for all lines."""
    texts, chosen = column
    return texts.bounds[chosen + 1] - texts.bounds[chosen] if len(texts.tails) else 0


def _put_tails(units: NDArray[np.uint64], places: Ints, column: Column, tail: Ints | int) -> None:
    longer = np.flatnonzero(tail)
    if len(longer):
        chosen = column.chosen[longer]
        owners, parts = members(chosen, column.texts.bounds)
        units[(places[longer] - column.texts.bounds[chosen])[owners] + parts] = column.texts.tails[parts]
