"""Attention by position: to a window of the memory (Luong et al. 2015, section 3.2), or to one place.

The window of 2 D + 1 positions has its centre at p_t, and is cut off at the ends of the text. The score is bilinear,
as in the paper's best system.

    monotonic (local-m):   p_t = t
    predictive (local-p):  p_t = S σ(v_pᵀ tanh(W_p h_t)),  and weights are multiplied by exp(-(s - p_t)² / 2σ²), σ = D/2

S is the number of positions that the query may attend to. The weights of local-p therefore sum to at most one. Beyond
the end of the text, where the paper's window would be empty, p_t is the last position.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from heed.nn.attention.attention import BEGINNING
from heed.nn.attention.scores import BilinearAttention, ScoredAttention, without_heads
from heed.nn.states import RowPositions


def visible_positions(
    x: Float[Tensor, "R T Q"], keys: Float[Tensor, "B 1 S K"], mask: Bool[Tensor, "..."] | None, positions: RowPositions
) -> tuple[Bool[Tensor, "*B #T S"], Int[Tensor, "B WT"]]:
    """The positions that queries may attend to, and the positions of the queries themselves."""
    visible = torch.ones(1, keys.shape[2], dtype=torch.bool, device=x.device) if mask is None else without_heads(mask)
    own = positions.positions(x.shape[1], x.device).expand(x.shape[:2]).reshape(keys.shape[0], -1)
    return visible, own


def first_of(visible: Bool[Tensor, "*B #T S"]) -> Int[Tensor, "*B #T 1"]:
    """The column of the first visible position: empty columns may come before a text."""
    return visible.to(torch.uint8).argmax(-1, keepdim=True)


class LocalAttention(BilinearAttention):
    """Attention to a window."""

    reach: ClassVar[int] = 10
    """D: positions on each side of the centre (Luong et al. 2015, section 4.1)."""

    @abstractmethod
    def centres(
        self, x: Float[Tensor, "B N Q"], size: Int[Tensor, "*B #N 1"], positions: Int[Tensor, "B N"]
    ) -> Float[Tensor, "B N 1"]:
        """p_t of each query, from its position, for texts of these sizes."""

    def weighted(self, weights: Float[Tensor, "B N S"], distance: Float[Tensor, "B N S"]) -> Float[Tensor, "B N S"]:
        """The weights inside the window, from the softmax."""
        return weights

    def weights(
        self, x: Float[Tensor, "R T Q"], keys: Float[Tensor, "B 1 S K"], mask: Bool[Tensor, "..."] | None = None,
        positions: RowPositions = BEGINNING,
    ) -> Float[Tensor, "B WT S"]:  # fmt: skip
        queries = x.reshape(keys.shape[0], -1, x.shape[-1])
        visible, own = visible_positions(x, keys, mask, positions)
        centre = self.centres(queries, visible.sum(-1, keepdim=True), own)
        distance = torch.arange(keys.shape[2], device=x.device) - first_of(visible) - centre
        outside = ~visible | (distance.abs() > self.reach)
        scores = self.scores(queries, keys[:, 0]).masked_fill(outside, float("-inf"))
        return self.weighted(scores.softmax(dim=-1), distance)


class SamePositionAttention(ScoredAttention):
    """The position of the memory with the number of the query, or the last one: no scores and no weights.

    The conditioning of recurrent continuous translation model II (Kalchbrenner & Blunsom 2013, section 4).
    """

    def __init__(self, query_size: int, memory_size: int, attention_size: int) -> None:
        super().__init__(query_size, memory_size, memory_size)

    def keys(self, memory: Float[Tensor, "B S C"]) -> Float[Tensor, "B S C"]:
        """The memory itself."""
        return memory

    def scores(self, x: Float[Tensor, "B N Q"], keys: Float[Tensor, "B S K"]) -> Float[Tensor, "B N S"]:
        """Equal ones."""
        return x.new_zeros(*x.shape[:2], keys.shape[1])

    def weights(
        self, x: Float[Tensor, "R T Q"], keys: Float[Tensor, "B 1 S K"], mask: Bool[Tensor, "..."] | None = None,
        positions: RowPositions = BEGINNING,
    ) -> Float[Tensor, "B WT S"]:  # fmt: skip
        visible, own = visible_positions(x, keys, mask, positions)
        place = torch.minimum(own[..., None], visible.sum(-1, keepdim=True) - 1) + first_of(visible)
        return (torch.arange(visible.shape[-1], device=x.device) == place).to(x.dtype)


class MonotonicLocalAttention(LocalAttention):
    """Local attention whose window moves one position at each step (local-m)."""

    def centres(
        self, x: Float[Tensor, "B N Q"], size: Int[Tensor, "*B #N 1"], positions: Int[Tensor, "B N"]
    ) -> Float[Tensor, "B N 1"]:
        return torch.minimum(positions[..., None], size - 1).float()


class PredictiveLocalAttention(LocalAttention):
    """Local attention whose window's centre is predicted (local-p)."""

    sums_to_one = False

    def __init__(self, query_size: int, memory_size: int, attention_size: int) -> None:
        super().__init__(query_size, memory_size, attention_size)
        self.hidden = nn.Linear(query_size, attention_size, bias=False)
        self.position = nn.Linear(attention_size, 1, bias=False)

    def centres(
        self, x: Float[Tensor, "B N Q"], size: Int[Tensor, "*B #N 1"], positions: Int[Tensor, "B N"]
    ) -> Float[Tensor, "B N 1"]:
        return size * torch.sigmoid(self.position(torch.tanh(self.hidden(x))).float())

    def weighted(self, weights: Float[Tensor, "B N S"], distance: Float[Tensor, "B N S"]) -> Float[Tensor, "B N S"]:
        """Multiplied by a Gaussian around the centre, with σ = D/2."""
        return weights * torch.exp(-2 * (distance / self.reach).square()).to(weights.dtype)
