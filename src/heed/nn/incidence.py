"""Sparse matrices of n-grams in texts: products with dense matrices, in both directions.

A block holds the n-grams of one kind. The entry of text i and n-gram j is s_j / ‖(s_k)_k in i‖ if j is in i, and 0
otherwise: each text has unit norm, and only the columns of each row are stored (and the rows of each column, for the
transposed product). Both products are PyTorch's `embedding_bag`, which sums rows of a matrix by index.
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

    def __init__(self, columns: NDArray[np.int32], offsets: NDInts, scale: Tensor) -> None:
        """`columns`: those of all rows in sequence; `offsets` [N + 1]: where rows begin; `scale` [J]: s."""
        self.columns = torch.from_numpy(columns)
        self.offsets = torch.from_numpy(offsets.astype(np.int32 if len(columns) < 2**31 else np.int64))
        self.scale = scale[:, None]
        norms = self._sum(self.columns, self.offsets, self.scale.square()).sqrt()
        self.row_scale = 1 / norms.clamp_min(1e-12)
        self._transposed: tuple[Tensor, Tensor] | None = None

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def times(self, weights: Float[Tensor, "J K"]) -> Float[Tensor, "N K"]:
        """The product with a matrix."""
        return self.row_scale * self._sum(self.columns, self.offsets, self.scale * weights)

    def transposed_times(self, values: Float[Tensor, "N K"]) -> Float[Tensor, "J K"]:
        """The product of the transposed matrix with another one."""
        rows, offsets = self._by_column()
        return self.scale * self._sum(rows, offsets, self.row_scale * values)

    def sums(self, values: Float[Tensor, "N K"]) -> Float[Tensor, "J K"]:
        """For each n-gram, the sum of the rows of `values` of the texts that it is in."""
        rows, offsets = self._by_column()
        return self._sum(rows, offsets, values)

    def _by_column(self) -> tuple[Tensor, Tensor]:
        """The rows of each column, for all columns in sequence, and where columns begin."""
        if self._transposed is None:
            columns = self.columns.numpy()
            keys = columns.astype(np.int64) << 32
            keys |= np.repeat(np.arange(len(self), dtype=np.int32), np.diff(self.offsets.numpy()))
            keys.sort()  # in place, and several times faster than argsort
            counts = np.bincount(columns, minlength=len(self.scale))
            offsets = np.concatenate([[0], np.cumsum(counts)]).astype(self.offsets.numpy().dtype)
            self._transposed = torch.from_numpy(keys.astype(np.uint32).view(np.int32)), torch.from_numpy(offsets)
        return self._transposed

    @staticmethod
    def _sum(indices: Tensor, offsets: Tensor, rows: Tensor) -> Tensor:
        if not len(rows) or len(offsets) == 1:
            return rows.new_zeros(len(offsets) - 1, rows.shape[1])
        return F.embedding_bag(indices.to(offsets.dtype), rows, offsets[:-1], mode="sum")


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
