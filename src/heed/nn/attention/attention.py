"""Attention: the base of all its kinds, and the way in which they are called."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar, Self

from jaxtyping import Bool, Float
from torch import Tensor, nn

from heed.core.errors import UsageError
from heed.nn.contract import Recorder
from heed.nn.dropout_keys import DropoutKeys
from heed.nn.states import AppendKV, KeysValues, KeyValueCache, RowPositions

BEGINNING = RowPositions()
"""Positions before the first token."""


def needs_equal_sizes(query_size: int, memory_size: int) -> str:
    """What to say about an attention that compares queries with the memory as they are."""
    return (
        f"this attention multiplies queries of {query_size} features with a memory of {memory_size}: make them equal "
        'or choose another one, such as "additive" or "bilinear".'
    )


class Attention(nn.Module, ABC):
    """An attention with keys `[B, H, S, K]` and values `[B, H, S, V]`."""

    num_heads: int = 1
    key_size: int
    value_size: int
    sums_to_one: ClassVar[bool] = True
    """Whether the weights of a query sum to one; otherwise to at most one."""

    @classmethod
    def in_block(cls, d_model: int, num_heads: int, dropout: float) -> Self:
        """The attention for a Transformer block: from D features to D features."""
        return cls(d_model, num_heads, dropout)

    @classmethod
    def over(cls, query_size: int, memory_size: int, attention_size: int) -> Self:
        """The attention of a recurrent decoder: queries and memory have these sizes, contexts that of the memory.

        `attention_size` is that of a layer inside, for attentions that have one. Raises UsageError for sizes that the
        attention cannot compare.
        """
        if query_size != memory_size:
            raise UsageError(needs_equal_sizes(query_size, memory_size))
        return cls.in_block(query_size, 1, 0.0)

    def empty_cache(self, num_rows: int, capacity: int, like: Tensor) -> KeyValueCache:
        """A cache for the keys and values of at most `capacity` tokens; with 0, it grows by concatenation."""
        return KeyValueCache.empty(num_rows, self.num_heads, (self.key_size, self.value_size), capacity, like)

    @abstractmethod
    def project(self, memory: Float[Tensor, "B S D"], positions: RowPositions = BEGINNING) -> KeysValues:
        """Keys and values of a memory whose first vector comes after `positions`."""

    @abstractmethod
    def forward(
        self, x: Float[Tensor, "R T D"], memory: KeysValues | AppendKV, mask: Bool[Tensor, "..."] | None = None,
        positions: RowPositions = BEGINNING, dropout_keys: DropoutKeys | None = None, trace: Recorder | None = None,
    ) -> Float[Tensor, "R T D"]:  # fmt: skip
        """Contexts of the R = B · W rows of `x`; W consecutive rows share the keys and values of one memory.

        `mask` broadcasts to `[B, H, T, S]`.
        """

    def keys_values(
        self, x: Float[Tensor, "R T D"], memory: KeysValues | AppendKV, positions: RowPositions
    ) -> KeysValues:
        """The given keys and values, or those of a cache after appending those of `x`."""
        return memory if isinstance(memory, tuple) else memory(*self.project(x, positions))
