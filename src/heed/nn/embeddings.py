"""Token embeddings and sinusoidal position encodings (Vaswani et al. 2017, sections 3.4, 3.5 and 5.4).

The input is the embedding times √D plus the position encoding, then dropout; or, in McAllester's notes (TTIC 31230),
the concatenation h_0(t) = [e(w_t); pos(t)]. The encoding is PE(pos, 2i) = sin(pos / 10000^(2i/D)),
PE(pos, 2i+1) = cos(pos / 10000^(2i/D)). Two layouts of these numbers are in use: interleaved, as in the paper, and
half-split (all sines, then all cosines), as in tensor2tensor and Marian.
"""

from __future__ import annotations

import math

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from heed.nn.dropout_keys import DropoutKeys, dropout


def interleaved(num_positions: int, size: int) -> Float[Tensor, "P D"]:
    """Alternating sines and cosines, as in the paper."""
    if torch.get_default_device().type == "meta":  # only the shape is needed, see `embedding_weight`
        return torch.empty(num_positions, size)
    return torch.stack(_angles(num_positions, size), dim=-1).reshape(num_positions, size)


def half_split(num_positions: int, size: int) -> Float[Tensor, "P D"]:
    """All sines, then all cosines."""
    if torch.get_default_device().type == "meta":
        return torch.empty(num_positions, size)
    return torch.cat(_angles(num_positions, size), dim=-1)


POSITIONS = {"interleaved": interleaved, "half_split": half_split}


def _angles(num_positions: int, size: int) -> tuple[Tensor, Tensor]:
    if size % 2:
        raise ValueError(f"a sinusoidal encoding has an even size, got {size}")
    positions = torch.arange(num_positions, dtype=torch.float64)[:, None]
    angles = positions * 10000.0 ** (-torch.arange(0, size, 2, dtype=torch.float64) / size)
    return angles.sin().float(), angles.cos().float()


def embedding_weight(num_rows: int, size: int) -> nn.Parameter:
    """Normal with variance 1/D: rows of length about one, which √D brings to unit variance per feature.

    A weight on the meta device stays empty: its arithmetic would import PyTorch's decompositions, which takes seconds.
    """
    weight = torch.empty(num_rows, size)
    return nn.Parameter(weight if weight.is_meta else weight.normal_().div_(math.sqrt(size)))


def uniform_weight(num_rows: int, size: int, bound: float) -> nn.Parameter:
    """Uniform in ± `bound`."""
    return nn.Parameter(torch.empty(num_rows, size).uniform_(-bound, bound))


class TokenEmbedding(nn.Module):
    """Token embeddings, scaled by √D unless `scale` is given, with sinusoidal positions added or concatenated.

    The table of positions is computed, not stored with the weights, and grows when a longer text arrives.
    """

    positions: Tensor

    def __init__(
        self, weight: nn.Parameter, d_model: int, positions: str, dropout: float, scale: float | None = None
    ) -> None:
        super().__init__()
        self.weight = weight  # [V, D], or [V, D - P] with concatenated positions
        self.kind = positions
        self.position_size = d_model - weight.shape[1] if positions == "concatenated" else d_model
        self.scale = math.sqrt(weight.shape[1]) if scale is None else scale
        self.dropout = dropout
        self.register_buffer("positions", self.table(256), persistent=False)

    def table(self, num_positions: int) -> Tensor:
        """The encodings of the first positions, `[P, size]`; none if they are not used."""
        if self.kind == "none":
            return torch.empty(0, self.position_size)
        return POSITIONS.get(self.kind, interleaved)(num_positions, self.position_size)

    def _encodings(self, offset: int, end: int, first: Tensor | None) -> Tensor:
        """The encodings of columns `offset … end - 1`: `[T, size]`, or `[B, T, size]` with `first`."""
        if end > self.positions.shape[0]:
            table = self.table(max(end, 2 * self.positions.shape[0]))
            self.positions = table.to(self.positions)
        if first is None:
            return self.positions[offset:end]
        columns = torch.arange(offset, end, device=first.device)
        return self.positions[(columns - first[:, None]).clamp(min=0)]

    def forward(
        self,
        ids: Int[Tensor, "B T"],
        dropout_keys: DropoutKeys | None = None,
        offset: int = 0,
        first: Tensor | None = None,
    ) -> Float[Tensor, "B T D"]:
        """Vectors of the tokens in columns `offset …`; the first token of row b is in column `first[b]`."""
        vectors = nn.functional.embedding(ids, self.weight)
        vectors = vectors * self.scale if self.scale != 1 else vectors
        if self.kind == "none":
            return dropout(vectors, self.dropout, dropout_keys, site=0, offset=offset)
        encodings = self._encodings(offset, offset + ids.shape[1], first)
        if self.kind == "concatenated":
            encodings = encodings.expand(*ids.shape, -1)
            vectors = torch.cat((vectors, encodings), dim=-1)
        else:
            vectors = vectors + encodings
        return dropout(vectors, self.dropout, dropout_keys, site=0, offset=offset)
