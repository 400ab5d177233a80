"""Sparse matrices of n-grams in texts: products with dense matrices, in both directions.

A block holds the n-grams of one kind. The entry of text i and n-gram j, which is c times in it, is proportional to
s_j (1 + log c), and each text has unit norm. Only the columns and counts of each row are stored, and the rows of each
column for the transposed product. Both products are PyTorch's `embedding_bag`, which sums rows of a matrix by index.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float
from numpy.typing import NDArray
from torch import Tensor

NDInts = NDArray[np.int64]


class Incidence:
    """The n-grams of one kind in some texts [N, J]."""

    def __init__(
        self, columns: NDArray[np.int32], offsets: NDInts, scale: Tensor, counts: NDArray[np.uint8] | None = None
    ) -> None:
        """`columns`: those of all rows in sequence; `offsets` [N + 1]: where rows begin; `scale` [J]: s.

        `counts`: c of each column; None: 1.
        """
        self.columns = torch.from_numpy(columns)
        self.offsets = torch.from_numpy(offsets.astype(np.int32 if len(columns) < 2**31 else np.int64))
        self.scale = scale[:, None]
        self._counts = counts if counts is not None and bool((counts > 1).any()) else None
        self.values = self._dampened(self._counts)
        squares = None if self.values is None else self.values.square()
        norms = self._sum(self.columns, self.offsets, self.scale.square(), squares).sqrt()
        self.row_scale = 1 / norms.clamp_min(1e-12)
        self._transposed: tuple[Tensor, Tensor, Tensor | None] | None = None

    def _dampened(self, counts: NDArray[np.uint8] | None) -> Tensor | None:
        """1 + log c of each count; None if all are 1."""
        if counts is None:
            return None
        table = 1 + np.log(np.maximum(np.arange(256), 1))
        return torch.from_numpy(table).to(self.scale.dtype)[torch.from_numpy(counts).int()]

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def times(self, weights: Float[Tensor, "J K"]) -> Float[Tensor, "N K"]:
        """The product with a matrix."""
        return self.row_scale * self._sum(self.columns, self.offsets, self.scale * weights, self.values)

    def transposed_times(self, values: Float[Tensor, "N K"]) -> Float[Tensor, "J K"]:
        """The product of the transposed matrix with another one."""
        rows, offsets, entries = self._by_column()
        return self.scale * self._sum(rows, offsets, self.row_scale * values, entries)

    def sums(self, values: Float[Tensor, "N K"]) -> Float[Tensor, "J K"]:
        """For each n-gram, the sum of the rows of `values` of the texts that it is in."""
        rows, offsets, _ = self._by_column()
        return self._sum(rows, offsets, values)

    def _by_column(self) -> tuple[Tensor, Tensor, Tensor | None]:
        """The rows of each column, for all columns in sequence, where columns begin, and the values of the entries."""
        if self._transposed is None:
            columns = self.columns.numpy()
            keys = columns.astype(np.uint64) << np.uint64(40)  # column, row and count: 24, 32 and 8 bits
            keys |= np.repeat(np.arange(len(self), dtype=np.uint64) << np.uint64(8), np.diff(self.offsets.numpy()))
            keys |= np.uint8(1) if self._counts is None else self._counts
            keys.sort()  # in place, and several times faster than argsort
            entries = None if self._counts is None else self._dampened((keys & np.uint64(255)).astype(np.uint8))
            counts = np.bincount(columns, minlength=len(self.scale))
            offsets = np.concatenate([[0], np.cumsum(counts)]).astype(self.offsets.numpy().dtype)
            rows = (keys >> np.uint64(8)).astype(np.uint32).view(np.int32)
            self._transposed = torch.from_numpy(rows), torch.from_numpy(offsets), entries
        return self._transposed

    @staticmethod
    def _sum(indices: Tensor, offsets: Tensor, rows: Tensor, values: Tensor | None = None) -> Tensor:
        if not len(rows) or len(offsets) == 1:
            return rows.new_zeros(len(offsets) - 1, rows.shape[1])
        return F.embedding_bag(indices.to(offsets.dtype), rows, offsets[:-1], mode="sum", per_sample_weights=values)


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
