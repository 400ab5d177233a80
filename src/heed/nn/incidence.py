"""Sparse matrices of n-grams in texts: products with dense matrices, in both directions.

A block holds the n-grams of one kind. The entry of text i and n-gram j, which is c times in it, is proportional to
s_j (1 + log c), and each text has unit norm. Only the columns and counts of each row are stored, and the rows and
counts of each column for the transposed product: ten bytes for each entry. Both products are PyTorch's `embedding_bag`,
which sums rows of a matrix by index, over a part of the entries at a time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float
from numpy.typing import NDArray
from torch import Tensor

NDInts = NDArray[np.int64]
ENTRIES = 1 << 19
"""Entries that a product or a transposition takes at once."""
KEPT = 1 << 23
"""Entries of a matrix up to which their values are kept, and not computed for each product."""
MOST_COLUMNS = 1 << 24
"""Columns that a transposition can number."""
_DAMPENED = (1 + np.log(np.maximum(np.arange(256), 1))).astype(np.float32)
"""1 + log c of each count c."""


@dataclass(frozen=True)
class Bags:
    """Bags of numbered rows, each a number of times: a sparse matrix by its rows or by its columns."""

    indices: NDArray[np.int32]
    """The rows in each bag, for all bags in sequence."""
    offsets: NDInts
    """Where each bag begins, and the end of the last one."""
    counts: NDArray[np.uint8] | None
    """How often each row is in its bag; None: once."""

    def sum(self, rows: Float[Tensor, "J K"], power: int = 1) -> Float[Tensor, "B K"]:
        """The sum of each bag's rows, times (1 + log c)^power, over some bags at a time."""
        if not len(rows) or len(self.offsets) == 1:
            return rows.new_zeros(len(self.offsets) - 1, rows.shape[1])
        sums = [self._part_sum(part, offsets, rows, power) for part, offsets in self._parts]
        return sums[0] if len(sums) == 1 else torch.cat(sums)

    def _part_sum(self, part: slice, offsets: Tensor, rows: Tensor, power: int) -> Tensor:
        inside = slice(int(self.offsets[part.start]), int(self.offsets[part.stop]))
        indices = torch.from_numpy(self.indices[inside]).to(offsets.dtype)
        values = self._values(inside, power, rows.dtype) if power and self.counts is not None else None
        return F.embedding_bag(indices, rows, offsets, mode="sum", per_sample_weights=values)

    @cached_property
    def _parts(self) -> list[tuple[slice, Tensor]]:
        """Ranges of bags with about `ENTRIES` entries each, and where their bags begin among these entries."""
        starts = [0]
        while starts[-1] < len(self.offsets) - 1:
            end = int(np.searchsorted(self.offsets, self.offsets[starts[-1]] + ENTRIES, side="right")) - 1
            starts.append(max(end, starts[-1] + 1))
        return [(slice(first, last), self._beginnings(first, last)) for first, last in pairwise(starts)]

    def _beginnings(self, first: int, last: int) -> Tensor:
        beginnings = self.offsets[first:last] - self.offsets[first]
        small = self.offsets[last] - self.offsets[first] < 2**31
        return torch.from_numpy(beginnings.astype(np.int32 if small else np.int64))

    def _values(self, inside: slice, power: int, dtype: torch.dtype) -> Tensor:
        """(1 + log c)^power of some entries."""
        if len(self.indices) <= KEPT:
            return self._kept_values[inside].to(dtype) ** power
        return self._computed(inside).to(dtype) ** power

    @cached_property
    def _kept_values(self) -> Tensor:
        return self._computed(slice(0, len(self.indices)))

    def _computed(self, inside: slice) -> Tensor:
        """1 + log c of some entries, most of which are 1."""
        assert self.counts is not None
        values = torch.ones(inside.stop - inside.start)
        first, last = np.searchsorted(self._repeated, (inside.start, inside.stop)).tolist()
        places = self._repeated[first:last]
        values[torch.from_numpy(places - inside.start)] = torch.from_numpy(_DAMPENED[self.counts[places]])
        return values

    @cached_property
    def _repeated(self) -> NDInts:
        """The entries that are in their bag more than once."""
        return np.flatnonzero(self.counts > 1) if self.counts is not None else np.empty(0, dtype=np.int64)


def occurrences(columns: NDArray[np.int32], number: int) -> NDInts:
    """How often each of `number` columns occurs."""
    total = np.zeros(number, dtype=np.int64)
    for first in range(0, len(columns), ENTRIES):  # NumPy counts a copy of eight bytes for each
        total += np.bincount(columns[first : first + ENTRIES], minlength=number)
    return total


class Incidence:
    """The n-grams of one kind in some texts [N, J]."""

    def __init__(
        self, columns: NDArray[np.int32], offsets: NDInts, scale: Tensor, counts: NDArray[np.uint8] | None = None
    ) -> None:
        """`columns`: those of all rows in sequence; `offsets` [N + 1]: where rows begin; `scale` [J]: s.

        `counts`: c of each column; None: 1.
        """
        repeated = counts is not None and bool((counts > 1).any())
        self.rows = Bags(columns, offsets.astype(np.int64, copy=False), counts if repeated else None)
        self.scale = scale[:, None]
        norms = self.rows.sum(self.scale.square(), power=2).sqrt()
        self.row_scale = 1 / norms.clamp_min(1e-12)

    def __len__(self) -> int:
        return len(self.rows.offsets) - 1

    def times(self, weights: Float[Tensor, "J K"]) -> Float[Tensor, "N K"]:
        """The product with a matrix."""
        return self.row_scale * self.rows.sum(self.scale * weights)

    def transposed_times(self, values: Float[Tensor, "N K"]) -> Float[Tensor, "J K"]:
        """The product of the transposed matrix with another one."""
        return self.scale * self.columns.sum(self.row_scale * values)

    def sums(self, values: Float[Tensor, "N K"]) -> Float[Tensor, "J K"]:
        """For each n-gram, the sum of the rows of `values` of the texts that it is in."""
        return self.columns.sum(values, power=0)

    @cached_property
    def columns(self) -> Bags:
        """The rows of each column, in their order: counted first, then put into place, some rows at a time."""
        counts = self.rows.counts
        number = occurrences(self.rows.indices, len(self.scale))
        ends = np.concatenate([[0], np.cumsum(number)]).astype(np.int64)
        free = ends[:-1].copy()
        indices = np.empty(len(self.rows.indices), dtype=np.int32)
        moved = None if counts is None else np.empty_like(counts)
        for part, _ in self.rows._parts:
            keys = self._keys(part.start, part.stop)
            column = (keys >> np.uint64(40)).astype(np.int64)
            begins = np.flatnonzero(np.concatenate([[True], column[1:] != column[:-1]])) if len(keys) else column
            sizes = np.diff(np.append(begins, len(column)))
            place = np.arange(len(column)) + np.repeat(free[column[begins]] - begins, sizes)
            indices[place] = (keys >> np.uint64(8)).astype(np.uint32).view(np.int32)
            if moved is not None:
                moved[place] = (keys & np.uint64(255)).astype(np.uint8)
            free[column[begins]] += sizes
        return Bags(indices, ends, moved)

    def _keys(self, first: int, last: int) -> NDArray[np.uint64]:
        """Column, row and count of each entry of some rows, in 24, 32 and 8 bits, in order."""
        offsets = self.rows.offsets[first : last + 1]
        inside = slice(int(offsets[0]), int(offsets[-1]))
        keys = self.rows.indices[inside].astype(np.uint64)
        keys <<= np.uint64(40)
        keys |= np.repeat(np.arange(first, last, dtype=np.uint64) << np.uint64(8), np.diff(offsets))
        keys |= np.uint8(1) if self.rows.counts is None else self.rows.counts[inside]
        keys.sort()  # in place, and several times faster than argsort
        return keys


@dataclass(frozen=True)
class Features:
    """The features of some texts: blocks of n-grams, and a last feature that is always 1."""

    blocks: Sequence[Incidence]

    def __len__(self) -> int:
        return len(self.blocks[0])

    @property
    def sizes(self) -> list[int]:
        """Number of features of each block."""
        return [len(block.scale) for block in self.blocks]

    def times(self, weights: Float[Tensor, "J1 K"]) -> Float[Tensor, "N K"]:
        """The product with the weights of all features; the last row is the bias."""
        parts = torch.split(weights[:-1], self.sizes)
        products = [block.times(part) for block, part in zip(self.blocks, parts, strict=True)]
        return torch.stack([*products, weights[-1].expand(len(self), -1)]).sum(0)

    def transposed_times(self, values: Float[Tensor, "N K"]) -> Float[Tensor, "J1 K"]:
        """The product of the transposed matrix with another one."""
        return torch.cat([*(block.transposed_times(values) for block in self.blocks), values.sum(0, keepdim=True)])
