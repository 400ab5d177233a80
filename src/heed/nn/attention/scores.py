"""Attention by a score of each query and key: additive, bilinear, dot product and others.

One head, whose values are the memory itself: c_i = Σ_j a_ij h_j, a_i = softmax_j(score(q_i, h_j)). All classes are made
from the sizes of queries, memory and the layer inside, which some have.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import Self

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn.functional import linear

from heed.core.errors import UsageError
from heed.nn.attention.attention import BEGINNING, Attention, needs_equal_sizes
from heed.nn.contract import Recorder
from heed.nn.dropout_keys import DropoutKeys
from heed.nn.states import AppendKV, KeysValues, RowPositions


class ScoredAttention(Attention):
    """Attention of one head by a score; subclasses define it, from keys that are computed once for each memory."""

    dropout: float = 0.0
    """Dropout of attention weights."""

    def __init__(self, query_size: int, memory_size: int, attention_size: int) -> None:
        super().__init__()
        self.key_size, self.value_size = attention_size, memory_size

    @classmethod
    def in_block(cls, d_model: int, num_heads: int, dropout: float) -> Self:
        """One head of D features."""
        attention = cls(d_model, d_model, d_model)
        attention.dropout = dropout
        return attention

    @classmethod
    def over(cls, query_size: int, memory_size: int, attention_size: int) -> Self:
        return cls(query_size, memory_size, attention_size)

    @abstractmethod
    def keys(self, memory: Float[Tensor, "B S C"]) -> Float[Tensor, "B S K"]:
        """What of the score depends on the memory alone."""

    @abstractmethod
    def scores(self, x: Float[Tensor, "B N Q"], keys: Float[Tensor, "B S K"]) -> Float[Tensor, "B N S"]:
        """The scores of the positions of each memory, for its N queries."""

    def project(self, memory: Float[Tensor, "B S C"], positions: RowPositions = BEGINNING) -> KeysValues:
        """The keys, and the memory itself as the values, both as one head."""
        return self.keys(memory)[:, None], memory[:, None]

    def weights(
        self, x: Float[Tensor, "R T Q"], keys: Float[Tensor, "B 1 S K"], mask: Bool[Tensor, "..."] | None = None,
        positions: RowPositions = BEGINNING,
    ) -> Float[Tensor, "B WT S"]:  # fmt: skip
        """The weights of the positions of each memory, for the queries of the W · T vectors that share it."""
        scores = self.scores(x.reshape(keys.shape[0], -1, x.shape[-1]), keys[:, 0])
        if mask is not None:
            scores = scores.masked_fill(~without_heads(mask), float("-inf"))
        return scores.softmax(dim=-1)

    def forward(
        self, x: Float[Tensor, "R T Q"], memory: KeysValues | AppendKV, mask: Bool[Tensor, "..."] | None = None,
        positions: RowPositions = BEGINNING, dropout_keys: DropoutKeys | None = None, trace: Recorder | None = None,
    ) -> Float[Tensor, "R T C"]:  # fmt: skip
        rows, num_queries, _ = x.shape
        keys, values = (part.to(x.dtype) for part in self.keys_values(x, memory, positions))
        weights = self.weights(x, keys, mask, positions)
        if trace is not None:
            trace(weights.reshape(rows, 1, num_queries, -1))
        if dropout_keys is not None:
            by_position = weights.reshape(rows, num_queries, 1, -1)
            dropped = dropout_keys.dropout_ragged(by_position, self.dropout, site=0, offset=positions.length)
            weights = dropped.reshape(weights.shape)
        contexts: Tensor = weights @ values[:, 0]  # [B, W·T, C]
        return contexts.view(rows, num_queries, -1)


def without_heads(mask: Bool[Tensor, "..."]) -> Bool[Tensor, "..."]:
    """A mask of attention `[B, H, T, S]` as `[B, T, S]`; one of `[T, S]` remains."""
    return mask[:, 0] if mask.dim() == 4 else mask


class AdditiveAttention(ScoredAttention):
    """Additive attention (Bahdanau et al. 2015, section A.1.2): e_ij = vᵀ tanh(W s_{i-1} + U h_j)."""

    def __init__(self, query_size: int, memory_size: int, attention_size: int) -> None:
        super().__init__(query_size, memory_size, attention_size)
        self.query = nn.Linear(query_size, attention_size, bias=False)
        self.key = nn.Linear(memory_size, attention_size)
        self.score = nn.Linear(attention_size, 1, bias=False)

    def keys(self, memory: Float[Tensor, "B S C"]) -> Float[Tensor, "B S K"]:
        """U h, with the bias."""
        keys: Tensor = self.key(memory)
        return keys

    def scores(self, x: Float[Tensor, "B N Q"], keys: Float[Tensor, "B S K"]) -> Float[Tensor, "B N S"]:
        scores: Tensor = self.score(torch.tanh(self.query(x)[:, :, None] + keys[:, None])).squeeze(-1)
        return scores


class ConcatenatedAttention(ScoredAttention):
    """Additive attention with one matrix (O'Connor's notes; "concat" of Luong et al. 2015): w_2ᵀ tanh(W_1 [q; k]).

    With W_1 = [W; U] it is Bahdanau's. The part of the keys is computed once, as there.
    """

    def __init__(self, query_size: int, memory_size: int, attention_size: int) -> None:
        super().__init__(query_size, memory_size, attention_size)
        self.query_size = query_size
        both = nn.Linear(query_size + memory_size, attention_size)
        self.weight, self.bias = both.weight, both.bias  # not a layer, because its parts are multiplied separately
        self.score = nn.Linear(attention_size, 1, bias=False)

    def keys(self, memory: Float[Tensor, "B S C"]) -> Float[Tensor, "B S K"]:
        """The key's columns of W_1, with the bias."""
        return linear(memory, self.weight[:, self.query_size :], self.bias)

    def scores(self, x: Float[Tensor, "B N Q"], keys: Float[Tensor, "B S K"]) -> Float[Tensor, "B N S"]:
        queries = linear(x, self.weight[:, : self.query_size])
        scores: Tensor = self.score(torch.tanh(queries[:, :, None] + keys[:, None])).squeeze(-1)
        return scores


class BilinearAttention(ScoredAttention):
    """Bilinear attention ("general" of Luong et al. 2015, equation 8): qᵀ W k."""

    def __init__(self, query_size: int, memory_size: int, attention_size: int) -> None:
        super().__init__(query_size, memory_size, query_size)
        self.key = nn.Linear(memory_size, query_size, bias=False)

    def keys(self, memory: Float[Tensor, "B S C"]) -> Float[Tensor, "B S K"]:
        """W k."""
        keys: Tensor = self.key(memory)
        return keys

    def scores(self, x: Float[Tensor, "B N Q"], keys: Float[Tensor, "B S K"]) -> Float[Tensor, "B N S"]:
        return x @ keys.transpose(1, 2)


class DotAttention(ScoredAttention):
    """Dot product of query and memory, without weights ("dot" of Luong et al. 2015; lecture 9): qᵀ k."""

    def __init__(self, query_size: int, memory_size: int, attention_size: int) -> None:
        if query_size != memory_size:
            raise UsageError(needs_equal_sizes(query_size, memory_size))
        super().__init__(query_size, memory_size, memory_size)

    def keys(self, memory: Float[Tensor, "B S C"]) -> Float[Tensor, "B S C"]:
        """The memory itself."""
        return memory

    def scores(self, x: Float[Tensor, "B N Q"], keys: Float[Tensor, "B S K"]) -> Float[Tensor, "B N S"]:
        return x @ keys.transpose(1, 2)


class ScaledDotAttention(DotAttention):
    """Dot product divided by the root of its size, without weights (Vaswani et al. 2017): qᵀ k / √K."""

    def scores(self, x: Float[Tensor, "B N Q"], keys: Float[Tensor, "B S K"]) -> Float[Tensor, "B N S"]:
        return super().scores(x / math.sqrt(self.key_size), keys)


class TwoNetworksAttention(ScoredAttention):
    """Dot product of the outputs of two networks, one of queries and one of keys (lecture 9): f(q)ᵀ g(k).

    Each has one hidden layer: f(q) = W_2 tanh(W_1 q + b_1) + b_2.
    """

    def __init__(self, query_size: int, memory_size: int, attention_size: int) -> None:
        super().__init__(query_size, memory_size, attention_size)
        self.query, self.key = (
            nn.Sequential(nn.Linear(size, attention_size), nn.Tanh(), nn.Linear(attention_size, attention_size))
            for size in (query_size, memory_size)
        )

    def keys(self, memory: Float[Tensor, "B S C"]) -> Float[Tensor, "B S K"]:
        """g(k)."""
        keys: Tensor = self.key(memory)
        return keys

    def scores(self, x: Float[Tensor, "B N Q"], keys: Float[Tensor, "B S K"]) -> Float[Tensor, "B N S"]:
        scores: Tensor = self.query(x) @ keys.transpose(1, 2)
        return scores
