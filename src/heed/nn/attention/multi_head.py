"""Scaled dot-product attention with several heads and learned projections (Vaswani et al. 2017)."""

from __future__ import annotations

import math
from abc import abstractmethod

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn.functional import linear

from heed.core.errors import UsageError
from heed.nn.affine import Linear
from heed.nn.attention.attention import BEGINNING, Attention
from heed.nn.contract import Recorder
from heed.nn.dropout_keys import DropoutKeys, in_256ths
from heed.nn.packing import is_packed
from heed.nn.scaled_dot_product import (
    WeightDropout,
    attend,
    attention_weights,
    causal_context,
    merge_heads,
    split_heads,
)
from heed.nn.states import AppendKV, KeysValues, RowPositions


class _ScaledDotProduct(Attention):
    """Several scaled dot-product attentions in parallel (Vaswani et al. 2017, section 3.2.2).

    MultiHead(Q, K, V) = concat(head_1 … head_H) W_O, head_i = softmax(Q_i K_iᵀ / √K) V_i.
    """

    output: nn.Module

    def __init__(self, d_model: int, num_heads: int, dropout: float) -> None:
        super().__init__()
        self.num_heads = num_heads
        self.key_size = self.value_size = d_model // num_heads
        self.dropout = dropout

    @abstractmethod
    def queries(self, x: Float[Tensor, "R T D"], positions: RowPositions) -> Float[Tensor, "R T D"]:
        """The concatenated queries of all heads, of vectors that come after `positions`."""

    def forward(
        self, x: Float[Tensor, "R T D"], memory: KeysValues | AppendKV, mask: Bool[Tensor, "..."] | None = None,
        positions: RowPositions = BEGINNING, dropout_keys: DropoutKeys | None = None, trace: Recorder | None = None,
    ) -> Float[Tensor, "R T D"]:  # fmt: skip
        keys, values = self.keys_values(x, memory, positions)
        shared = self.queries(x, positions).view(keys.shape[0], -1, x.shape[2])  # [B, W·T, D]
        query = split_heads(shared, self.num_heads).to(keys.dtype)  # that of a cache may be higher
        dropout_keys = dropout_keys if self.dropout > 0 else None
        if dropout_keys is not None or trace is not None:
            weights = attention_weights(query, keys, mask)
            # Positions first, so that a dropout mask does not depend on the chunks of the target.
            by_position = weights.transpose(1, 2).reshape(*x.shape[:2], self.num_heads, -1)  # [R, T, H, S]
            if trace is not None:
                trace(by_position.transpose(1, 2))
            if dropout_keys is not None:
                dropped = dropout_keys.dropout_ragged(by_position, self.dropout, site=0, offset=positions.length)
                weights = dropped.reshape(*shared.shape[:2], self.num_heads, -1).transpose(1, 2)
            context = weights @ values
        else:
            context = attend(query, keys, values, mask)
        contexts: Tensor = self.output(merge_heads(context).view(x.shape).to(x.dtype))
        return contexts


class MultiHeadAttention(_ScaledDotProduct):
    """Multi-head attention as in the Transformer, with one matrix for keys and values.

    Every product has a bias, as in most implementations; the paper writes none.
    Weights are initialised as in PyTorch's `nn.Transformer`: post-norm models learn far better from its flatter
    attention (docs/results/translation.md).
    """

    def __init__(self, d_model: int, num_heads: int, dropout: float = 0.0, bias: bool = True) -> None:
        super().__init__(d_model, num_heads, dropout)
        self.query = Linear(d_model, d_model, bias=bias)
        self.key_value = Linear(d_model, 2 * d_model, bias=bias)
        self.output = Linear(d_model, d_model, bias=bias)
        together = math.sqrt(6.0 / (4 * d_model))  # Xavier of queries, keys and values as one matrix, 3D x D
        for module in (self.query, self.key_value, self.output):
            bound = math.sqrt(6.0 / (2 * d_model)) if module is self.output else together
            nn.init.uniform_(module.weight, -bound, bound)
            if bias:
                nn.init.zeros_(module.bias)

    def queries(self, x: Float[Tensor, "R T D"], positions: RowPositions) -> Float[Tensor, "R T D"]:
        """x W_Q."""
        out: Tensor = self.query(x)
        return out

    def project(self, memory: Float[Tensor, "B S D"], positions: RowPositions = BEGINNING) -> KeysValues:
        """x W_K and x W_V."""
        keys, values = self.key_value(memory).chunk(2, dim=-1)
        return split_heads(keys, self.num_heads), split_heads(values, self.num_heads)


class MultiHeadAttentionWithoutBias(MultiHeadAttention):
    """The same without biases, as the paper writes it: Q W_Q, K W_K, V W_V and W_O alone."""

    def __init__(self, d_model: int, num_heads: int, dropout: float = 0.0) -> None:
        super().__init__(d_model, num_heads, dropout, bias=False)


class FusedMultiHeadAttention(_ScaledDotProduct):
    """Multi-head attention with one matrix for queries, keys and values, as in GPT-2.

    With a cache it is causal: one product computes all three, and `causal_context` skips later positions.
    """

    def __init__(self, d_model: int, num_heads: int, dropout: float = 0.0) -> None:
        super().__init__(d_model, num_heads, dropout)
        self.query_key_value = Linear(d_model, 3 * d_model)
        self.output = Linear(d_model, d_model)

    def _part(self, x: Tensor, begin: int, end: int) -> Tensor:
        """Output features `begin … end - 1` of the matrix, in units of D."""
        rows = slice(begin * x.shape[-1], end * x.shape[-1])
        if is_packed(self.query_key_value):
            whole: Tensor = self.query_key_value(x)
            return whole[..., rows]
        return linear(x, self.query_key_value.weight[rows], self.query_key_value.bias[rows])

    def queries(self, x: Float[Tensor, "R T D"], positions: RowPositions) -> Float[Tensor, "R T D"]:
        """x W_Q."""
        return self._part(x, 0, 1)

    def project(self, memory: Float[Tensor, "B S D"], positions: RowPositions = BEGINNING) -> KeysValues:
        """x W_K and x W_V."""
        keys, values = self._part(memory, 1, 3).chunk(2, dim=-1)
        return split_heads(keys, self.num_heads), split_heads(values, self.num_heads)

    def forward(
        self, x: Float[Tensor, "R T D"], memory: KeysValues | AppendKV, mask: Bool[Tensor, "..."] | None = None,
        positions: RowPositions = BEGINNING, dropout_keys: DropoutKeys | None = None, trace: Recorder | None = None,
    ) -> Float[Tensor, "R T D"]:  # fmt: skip
        if isinstance(memory, tuple):
            return super().forward(x, memory, mask, positions, dropout_keys, trace)
        split = self.query_key_value(x).view(*x.shape[:2], 3, self.num_heads, -1)  # [B, T, 3, H, K]
        query, keys, values = split.permute(2, 0, 3, 1, 4)  # each [B, H, T, K]
        keys, values = memory(keys, values)
        dropout = None
        if dropout_keys is not None and in_256ths(self.dropout):
            dropout = WeightDropout(dropout_keys, self.dropout, positions.length)
        context = causal_context(query, keys, values, positions, mask, dropout, trace)
        out: Tensor = self.output(merge_heads(context))
        return out


class RotaryAttention(MultiHeadAttention):
    """Multi-head attention with rotary positions (Su et al. 2021, "RoFormer", equation 34).

    Queries and keys are rotated by their positions, so that a score depends on the distance of the two. Feature i and
    feature i + K/2 of a head are a pair, rotated by position · 10000^(-2i/K), as in GPT-NeoX.
    """

    def __init__(self, d_model: int, num_heads: int, dropout: float = 0.0, bias: bool = True) -> None:
        super().__init__(d_model, num_heads, dropout, bias)
        if self.key_size % 2:
            raise UsageError(
                f"rotary attention rotates pairs of features, so the {self.key_size} of a head must be even."
            )

    def queries(self, x: Float[Tensor, "R T D"], positions: RowPositions) -> Float[Tensor, "R T D"]:
        """x W_Q, rotated."""
        heads = split_heads(super().queries(x, positions), self.num_heads)
        return merge_heads(rotated(heads, positions.positions(x.shape[1], x.device)))

    def project(self, memory: Float[Tensor, "B S D"], positions: RowPositions = BEGINNING) -> KeysValues:
        """x W_K, rotated, and x W_V."""
        keys, values = super().project(memory, positions)
        return rotated(keys, positions.positions(memory.shape[1], memory.device)), values


def rotated(x: Float[Tensor, "B H T K"], positions: Int[Tensor, "*B T"]) -> Float[Tensor, "B H T K"]:
    """Heads whose pairs of features (i, i + K/2) are rotated by their positions, each at its own rate."""
    half = x.shape[-1] // 2
    rates = 10000.0 ** (-torch.arange(half, device=x.device) / half)
    angles = positions[..., None] * rates  # [T, K/2] or [B, T, K/2]
    angles = angles if angles.dim() == 2 else angles[:, None]
    cosines, sines = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
    first, second = x.chunk(2, dim=-1)
    return torch.cat((first * cosines - second * sines, first * sines + second * cosines), dim=-1)
