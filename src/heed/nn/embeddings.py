"""Token embeddings with position encodings.

Embedding times √D plus a position encoding, then dropout (Vaswani et al. 2017, sections 3.4, 3.5 and 5.4); or,
in McAllester's notes, the embedding and the position encoding side by side: h_0(t) = [e(w_t); pos(t)].
"""

from __future__ import annotations

import math

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from heed.nn.dropout_keys import DropoutKeys, dropout
from heed.nn.positions import POSITIONS, interleaved


def embedding_weight(num_rows: int, size: int) -> nn.Parameter:
    """Normal with variance 1/D: rows of length about one, which √D brings to unit variance per feature.

    A weight on the meta device stays empty: its arithmetic would import PyTorch's decompositions, which takes seconds.
    """
    weight = torch.empty(num_rows, size)
    return nn.Parameter(weight if weight.is_meta else weight.normal_().div_(math.sqrt(size)))


class TokenEmbedding(nn.Module):
    """Token embeddings scaled by √D, with sinusoidal positions added or concatenated.

    The position table is computed, not stored with the weights, and grows when a longer text comes.
    """

    positions: Tensor

    def __init__(self, weight: nn.Parameter, d_model: int, positions: str, dropout: float) -> None:
        super().__init__()
        self.weight = weight  # [V, D], or [V, D - P] when positions are concatenated
        self.kind = positions
        self.position_size = d_model - weight.shape[1] if positions == "concatenated" else d_model
        self.scale = math.sqrt(weight.shape[1])
        self.dropout = dropout
        self.register_buffer("positions", self._table(256), persistent=False)

    def _table(self, num_positions: int) -> Tensor:
        return POSITIONS.get(self.kind, interleaved)(num_positions, self.position_size)

    def _encodings(self, index: Tensor, last: int) -> Tensor:
        if last >= self.positions.shape[0]:
            table = self._table(max(last + 1, 2 * self.positions.shape[0]))
            self.positions = table.to(self.positions)
        return self.positions[index]

    def forward(
        self,
        ids: Int[Tensor, "B T"],
        dropout_keys: DropoutKeys | None = None,
        offset: int = 0,
        first: Tensor | None = None,
    ) -> Float[Tensor, "B T D"]:
        """Vectors of tokens that stand in columns `offset …`; row b's first token is in column `first[b]`."""
        vectors = nn.functional.embedding(ids, self.weight) * self.scale
        if self.kind == "none":
            return dropout(vectors, self.dropout, dropout_keys, site=0, offset=offset)
        columns = torch.arange(offset, offset + ids.shape[1], device=ids.device)
        index = columns if first is None else (columns - first[:, None]).clamp(min=0)
        encodings = self._encodings(index, offset + ids.shape[1] - 1)
        if self.kind == "concatenated":
            encodings = encodings.expand(*ids.shape, -1)
            vectors = torch.cat((vectors, encodings), dim=-1)
        else:
            vectors = vectors + encodings
        return dropout(vectors, self.dropout, dropout_keys, site=0, offset=offset)
