"""Negative sampling loss of word vectors, as products with sparse matrices (Mikolov et al. 2013, equation 4).

An example e has the vector h_e = Σ_i A_ei v_i, a weighted sum of input rows: the vector of a word, of its n-grams, or
the mean of a window. Its loss is -Σ_j log σ(s_j u_j · h_e) over output rows j: the words that it predicts (s = +1) and
the sampled ones (s = -1). With the coefficients C_ej = -s σ(-s u_j · h_e), the gradients are

    ∂h = C U,    ∂U = Cᵀ H,    ∂V = Aᵀ ∂h.

So no row is copied for each pair, and an update touches the rows of its examples only: gradients are sparse.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from numpy.typing import NDArray
from torch import Tensor

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class SparseMatrix:
    """A sparse matrix [E, R] by rows and by columns, of which only the columns that occur are kept.

    N is the number of its entries, which may repeat a position, and U of distinct columns.
    """

    starts: Int[Tensor, " E1"]
    """The first entry of each row, and N."""
    places: Int[Tensor, " N"]
    """The column of each entry, as an index of `columns`."""
    values: Float[Tensor, " N"]
    columns: Int[Tensor, " U"]
    """The numbers of the columns, ascending."""
    order: Int[Tensor, " N"]
    """The entries by columns."""
    rows_by_column: Int[Tensor, " N"]
    """The rows of the entries in this order."""
    column_starts: Int[Tensor, " U1"]
    """The first entry of each column in this order, and N."""

    @classmethod
    def of(cls, starts: Ints, columns: Ints, values: NDArray[np.float32], num_columns: int) -> SparseMatrix:
        """The matrix whose row e has the entries `starts[e]` to `starts[e + 1]`; `num_columns` is R."""
        occurs = np.zeros(num_columns, dtype=np.bool_)
        occurs[columns] = True
        distinct = np.flatnonzero(occurs)
        place = np.empty(num_columns, dtype=np.int64)
        place[distinct] = np.arange(len(distinct))
        places = place[columns]
        is_short = len(distinct) <= 1 << 16  # NumPy sorts 16 bits by radix, a tenth of the time
        order = np.argsort(places.astype(np.uint16) if is_short else places, kind="stable")
        rows = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
        ends = np.cumsum(np.bincount(places, minlength=len(distinct)))
        arrays = starts, places, values, distinct, order, rows[order], np.concatenate([[0], ends])
        return cls(*(torch.from_numpy(np.ascontiguousarray(array)) for array in arrays))

    def __len__(self) -> int:
        return len(self.starts) - 1

    def part(self, rows: slice) -> SparseMatrix:
        """Some of the rows, one after another."""
        begin, end, _ = rows.indices(len(self))
        starts = self.starts[begin : end + 1].cpu().numpy()
        entries = slice(int(starts[0]), int(starts[-1]))
        columns = self.columns[self.places[entries]].cpu().numpy()
        num_columns = int(columns.max(initial=-1)) + 1
        part = type(self).of(starts - starts[0], columns, self.values[entries].cpu().numpy(), num_columns)
        return part.to(self.starts.device)

    def to(self, device: torch.device) -> SparseMatrix:
        """The same matrix on another device."""
        return type(self)(*(getattr(self, name).to(device) for name in self.__dataclass_fields__))

    def times(self, table: Float[Tensor, "U D"], values: Float[Tensor, " N"] | None = None) -> Float[Tensor, "E D"]:
        """The product with a table of the distinct columns; `values` replaces the entries."""
        weights = (self.values if values is None else values).to(table.dtype)
        return _weighted_sums(self.places, self.starts, weights, table)

    def transposed_times(
        self, table: Float[Tensor, "E D"], values: Float[Tensor, " N"] | None = None
    ) -> Float[Tensor, "U D"]:
        """The product of the transposed matrix with a table of the rows; `values` replaces the entries."""
        weights = (self.values if values is None else values).to(table.dtype)
        return _weighted_sums(self.rows_by_column, self.column_starts, weights[self.order], table)

    def inner_products(self, rows: Float[Tensor, "E D"], columns: Float[Tensor, "U D"]) -> Float[Tensor, " N"]:
        """The inner product of the row and the column of each entry."""
        if not len(self.places):
            return rows.new_zeros(0)
        if len(self.places) > len(rows) * len(columns):  # of a small vocabulary; the call below allows no more
            row_of_entry = torch.repeat_interleave(self.starts.diff())
            return (rows @ columns.T)[row_of_entry, self.places]
        with warnings.catch_warnings():  # this layout of tensors is announced as a beta version
            warnings.filterwarnings("ignore", message="Sparse CSR tensor support")
            zeros, size = rows.new_zeros(len(self.places)), (len(rows), len(columns))
            pattern = torch.sparse_csr_tensor(self.starts, self.places, zeros, size, check_invariants=False)
            products: Tensor = torch.sparse.sampled_addmm(pattern, rows, columns.T, beta=0.0).values()
            return products


def _weighted_sums(ids: Tensor, starts: Tensor, weights: Tensor, table: Tensor) -> Tensor:
    if not len(ids):
        return table.new_zeros(len(starts) - 1, table.shape[1])
    return F.embedding_bag(ids, table, starts, mode="sum", per_sample_weights=weights, include_last_offset=True)


def example_vectors(inputs: Float[Tensor, "R D"], bags: SparseMatrix) -> Float[Tensor, "E D"]:
    """The vectors h of examples."""
    return bags.times(inputs[bags.columns])


def pair_losses(
    inputs: Float[Tensor, "R D"], outputs: Float[Tensor, "V D"], bags: SparseMatrix, targets: SparseMatrix
) -> Float[Tensor, " N"]:
    """-log σ(s u · h) of each entry of `targets`, whose values are the signs s."""
    scores = targets.inner_products(example_vectors(inputs, bags), outputs[targets.columns])
    return F.softplus(-targets.values.to(scores.dtype) * scores)


def negative_sampling_loss(
    inputs: Float[Tensor, "R D"], outputs: Float[Tensor, "V D"], bags: SparseMatrix, targets: SparseMatrix
) -> Float[Tensor, ""]:
    """The sum of `pair_losses`, with sparse gradients of both tables."""
    loss: Tensor = _NegativeSampling.apply(inputs, outputs, bags, targets)  # type: ignore[no-untyped-call]
    return loss


class _NegativeSampling(torch.autograd.Function):
    """The loss, whose gradients are computed with it."""

    @staticmethod
    def forward(ctx: Any, inputs: Tensor, outputs: Tensor, bags: SparseMatrix, targets: SparseMatrix) -> Tensor:
        vectors, table = example_vectors(inputs, bags), outputs[targets.columns]
        signs = targets.values.to(table.dtype)
        margins = signs * targets.inner_products(vectors, table)
        coefficients = -signs * torch.sigmoid(-margins)
        of_inputs = bags.transposed_times(targets.times(table, coefficients))
        of_outputs = targets.transposed_times(vectors, coefficients)
        ctx.gradients = [(bags.columns, of_inputs, inputs.shape), (targets.columns, of_outputs, outputs.shape)]
        return F.softplus(-margins).sum()

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        return (*(_sparse(rows, values.mul_(grad), shape) for rows, values, shape in ctx.gradients), None, None)


def _sparse(rows: Tensor, values: Tensor, shape: torch.Size) -> Tensor:
    return torch.sparse_coo_tensor(rows[None], values, shape, is_coalesced=True, check_invariants=False)
