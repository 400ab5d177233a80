"""Layers that replace the self-attention of a decoder, with a state of constant size for each row.

Each is one class and one key of `CAUSAL_MIXING`. Self-attention keeps keys and values of all tokens, and compares each
new token with all of them; these layers carry one vector, so that a step takes the same time wherever it is. They read
any number of tokens at once, like an attention, and have its signature.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Self

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from heed.nn.contract import Recorder
from heed.nn.dropout_keys import DropoutKeys
from heed.nn.feed_forward import FeedForward
from heed.nn.linear_recurrence import gated_recurrence
from heed.nn.states import CarriedVector, Carry, RowPositions


class CausalMixing(nn.Module, ABC):
    """A layer from D features to D features in which a position depends on itself and on those before it."""

    @classmethod
    @abstractmethod
    def in_block(cls, d_model: int, d_ff: int, activation: str) -> Self:
        """The layer for a decoder block whose feed-forward layer has `d_ff` features inside."""

    def empty_cache(self, num_rows: int, capacity: int, like: Float[Tensor, "... D"]) -> CarriedVector:
        """Zeros of at least float32; the capacity does not matter."""
        dtype = torch.promote_types(like.dtype, torch.float32)
        return CarriedVector(like.new_zeros(num_rows, like.shape[-1], dtype=dtype))

    def forward(
        self, x: Float[Tensor, "R T D"], carry: Carry, mask: Bool[Tensor, "..."] | None, positions: RowPositions,
        dropout_keys: DropoutKeys | None = None, trace: Recorder | None = None,
    ) -> Float[Tensor, "R T D"]:  # fmt: skip
        """Outputs of tokens that come after `positions`, and the vector after them; there are no weights to trace."""
        out, carry.cache = self.mix(x, carry.cache, positions)
        return out

    @abstractmethod
    def mix(
        self, x: Float[Tensor, "R T D"], carried: CarriedVector, positions: RowPositions
    ) -> tuple[Float[Tensor, "R T D"], CarriedVector]:
        """Outputs of tokens that come after `positions`, and the vector after them."""


class SSRU(CausalMixing):
    """The simpler simple recurrent unit (Kim et al. 2019, "From Research to Production and Back", section 3.1).

    f_t = σ(W_f x_t + b_f), c_t = f_t ⊙ c_{t-1} + (1 - f_t) ⊙ W x_t, and the output is ReLU(c_t).
    """

    def __init__(self, d_model: int) -> None:
        super().__init__()
        self.gate_value = nn.Linear(d_model, 2 * d_model, bias=False)
        self.gate_bias = nn.Parameter(torch.zeros(d_model))
        for weight in self.gate_value.weight.chunk(2):
            nn.init.xavier_uniform_(weight)

    @classmethod
    def in_block(cls, d_model: int, d_ff: int, activation: str) -> SSRU:
        return cls(d_model)

    def mix(
        self, x: Float[Tensor, "R T D"], carried: CarriedVector, positions: RowPositions
    ) -> tuple[Float[Tensor, "R T D"], CarriedVector]:
        gate, value = self.gate_value(x).to(carried.vector.dtype).chunk(2, dim=-1)
        values = gated_recurrence(torch.sigmoid(gate + self.gate_bias), value, carried.vector)
        return torch.relu(values).to(x.dtype), CarriedVector(values[:, -1])


class AverageAttention(CausalMixing):
    """Average attention (Zhang, Xiong & Su 2018, equations 5 and 6): the same weight for all tokens up to this one.

    g_t = FFN(1/t · Σ_{k ≤ t} x_k), i_t, f_t = σ(W [x_t; g_t]), and the output is i_t ⊙ x_t + f_t ⊙ g_t.
    """

    def __init__(self, d_model: int, feed_forward: FeedForward | None) -> None:
        super().__init__()
        self.feed_forward = feed_forward
        self.gates = nn.Linear(2 * d_model, 2 * d_model, bias=False)
        nn.init.xavier_uniform_(self.gates.weight)

    @classmethod
    def in_block(cls, d_model: int, d_ff: int, activation: str) -> Self:
        return cls(d_model, FeedForward(d_model, d_ff, activation))

    def mix(
        self, x: Float[Tensor, "R T D"], carried: CarriedVector, positions: RowPositions
    ) -> tuple[Float[Tensor, "R T D"], CarriedVector]:
        sums = x.to(carried.vector.dtype).cumsum(dim=1) + carried.vector[:, None]
        means = (sums / _numbers_of_tokens(positions, x)).to(x.dtype)
        averages = means if self.feed_forward is None else self.feed_forward(means)
        input_gate, forget_gate = torch.sigmoid(self.gates(torch.cat((x, averages), dim=-1))).chunk(2, dim=-1)
        return input_gate * x + forget_gate * averages, CarriedVector(sums[:, -1])


def _numbers_of_tokens(positions: RowPositions, x: Float[Tensor, "R T D"]) -> Float[Tensor, "..."] | int:
    """How many tokens of its row each token follows, itself included; one number if it is the same for all."""
    if x.shape[1] == 1 and positions.first is None:
        return positions.length + 1
    return (positions.positions(x.shape[1], x.device)[..., None] + 1).float()


class AverageAttentionWithoutFeedForward(AverageAttention):
    """Average attention without its feed-forward layer: g_t is the average itself."""

    @classmethod
    def in_block(cls, d_model: int, d_ff: int, activation: str) -> Self:
        return cls(d_model, None)


CAUSAL_MIXING: dict[str, type[CausalMixing]] = {
    "ssru": SSRU,
    "average": AverageAttention,
    "average_without_feed_forward": AverageAttentionWithoutFeedForward,
}
