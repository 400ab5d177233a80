"""Parts of decoder states: encoder memory, key-value caches and row positions.

Three values that models compose into their states: `Memory` (what was computed from each source, shared by
the rows of that source), `KeyValueCache` (one block's keys and values of the tokens so far), and `RowPositions` (where
each row's tokens stand). Caches are aligned at the right: every row's newest token is in the last column,
and a row that began later has empty columns on its left. So appending is the same for rows of any length.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from heed.nn.dropout_keys import DropoutKeys

KeysValues = tuple[Tensor, Tensor]
"""Keys `[B, H, S, K]` and values `[B, H, S, V]`."""


def _missing(x: Tensor, size: int, dim: int) -> Tensor:
    """The zeros that fill `x` up to `size` in one dimension."""
    shape = list(x.shape)
    shape[dim] = size - x.shape[dim]
    return x.new_zeros(shape)


def _to_size(x: Tensor, size: int, dim: int) -> Tensor:
    """Filled up at the right, or without what stands there."""
    return x.narrow(dim, 0, size) if x.shape[dim] >= size else torch.cat((x, _missing(x, size, dim)), dim)


def _pad_left(x: Tensor, size: int, dim: int) -> Tensor:
    return torch.cat((_missing(x, size, dim), x), dim)


def is_identity(rows: Tensor, num_rows: int) -> bool:
    """Whether all rows are taken, in their order."""
    return len(rows) == num_rows and torch.equal(rows, torch.arange(num_rows, device=rows.device))


@dataclass(frozen=True)
class Memory:
    """Keys and values of each source for each block, with the mask of real source positions.

    Rows are grouped by source: row r reads source `r // rows_per_source`.
    """

    layers: tuple[KeysValues, ...]
    mask: Bool[Tensor, "S_rows S"]
    rows_per_source: int

    @property
    def num_rows(self) -> int:
        """Rows that read this memory."""
        return self.mask.shape[0] * self.rows_per_source

    def attention_mask(self) -> Bool[Tensor, "S_rows 1 1 S"] | None:
        """The mask in the shape that attention takes; None where nothing is hidden."""
        return None if bool(self.mask.all()) else self.mask[:, None, None]

    def _take(self, sources: Tensor, rows_per_source: int) -> Memory:
        if rows_per_source == self.rows_per_source and is_identity(sources, self.mask.shape[0]):
            return self
        layers = tuple((keys[sources], values[sources]) for keys, values in self.layers)
        return replace(self, layers=layers, mask=self.mask[sources], rows_per_source=rows_per_source)

    def select(self, rows: Int[Tensor, " R"]) -> Memory:
        """The memory of the given rows; sources stay shared where rows stay in their groups."""
        sources = rows // self.rows_per_source
        width = self.rows_per_source
        if width > 1 and len(rows) % width == 0:
            groups = sources.view(len(rows) // width, width)
            if bool((groups == groups[:, :1]).all()):
                return self._take(groups[:, 0], width)
        return self._take(sources, 1)

    def join(self, other: Memory) -> Memory:
        """The rows of both; all sources padded to the longest that is still there."""
        left, right = self, other
        if left.rows_per_source != right.rows_per_source:
            left, right = left._ungrouped(), right._ungrouped()
        size = max(left._longest, right._longest)

        def both(a: Tensor, b: Tensor) -> Tensor:
            return torch.cat((_to_size(a, size, 2), _to_size(b, size, 2)))

        layers = tuple(
            (both(a_keys, b_keys), both(a_values, b_values))
            for (a_keys, a_values), (b_keys, b_values) in zip(left.layers, right.layers, strict=True)
        )
        mask = torch.cat((_to_size(left.mask, size, 1), _to_size(right.mask, size, 1)))
        return replace(left, layers=layers, mask=mask)

    @property
    def _longest(self) -> int:
        """Positions of the longest source."""
        return int(self.mask.any(dim=0).sum())

    def _ungrouped(self) -> Memory:
        if self.rows_per_source == 1:
            return self
        rows = torch.arange(self.num_rows, device=self.mask.device)
        return self._take(rows // self.rows_per_source, 1)

    def detach(self) -> Memory:
        """The same values without their graph."""
        return replace(self, layers=tuple((k.detach(), v.detach()) for k, v in self.layers))


@dataclass(frozen=True)
class RowPositions:
    """Where the tokens of each row stand: columns `first[b] … length - 1`; None means that all begin at 0."""

    length: int = 0
    first: Int[Tensor, " B"] | None = None

    def causal_mask(self, num_queries: int, device: torch.device) -> Bool[Tensor, "..."] | None:
        """Who may be attended to when `num_queries` tokens are appended: `[T, S]` or `[B, 1, T, S]`, or None.

        An empty column of a row that began later is never seen by a real token of that row.
        """
        if num_queries == 1 and self.first is None:
            return None
        total = self.length + num_queries
        columns = torch.arange(total, device=device)
        causal = columns[None, :] <= columns[self.length :, None]  # [T, S]
        if self.first is None:
            return causal
        return causal & (columns >= self.first[:, None])[:, None, None]  # [B, 1, T, S]

    def positions(self, num_queries: int, device: torch.device) -> Int[Tensor, "..."]:
        """The positions in their rows of tokens that are appended: `[T]`, or `[B, T]` where rows began apart."""
        columns = torch.arange(self.length, self.length + num_queries, device=device)
        return columns if self.first is None else columns - self.first[:, None]

    def after(self, num_tokens: int) -> RowPositions:
        """The positions when so many tokens have been appended to each row."""
        return RowPositions(self.length + num_tokens, self.first)

    def starts(self, num_rows: int, device: torch.device) -> Int[Tensor, " B"]:
        """The first column of each row, written out."""
        return torch.zeros(num_rows, dtype=torch.long, device=device) if self.first is None else self.first

    def select(self, rows: Int[Tensor, " R"]) -> RowPositions:
        """The columns of the given rows."""
        return self if self.first is None else replace(self, first=self.first[rows])

    @property
    def num_empty(self) -> int:
        """The oldest columns, in which no row has a token."""
        return 0 if self.first is None else int(self.first.min())

    def without_first(self, num_columns: int) -> RowPositions:
        """The same without so many empty columns."""
        if self.first is None or not num_columns:
            return self
        first = self.first - num_columns
        return RowPositions(self.length - num_columns, first if bool(first.any()) else None)

    def join(self, other: RowPositions, num_rows: int, other_rows: int, device: torch.device) -> RowPositions:
        """Those of the rows of both, aligned at the right."""
        length = max(self.length, other.length)
        first = torch.cat(
            (
                self.starts(num_rows, device) + length - self.length,
                other.starts(other_rows, device) + length - other.length,
            )
        )
        return RowPositions(length, first if bool(first.any()) else None)


@dataclass(frozen=True)
class KeyValueCache:
    """One block's keys and values of all tokens so far, `[B, H, C, K]`, of which `length` columns are used.

    With spare capacity (made by `reserve`) appending writes in place; without, it concatenates and stays
    differentiable.
    """

    keys: Float[Tensor, "B H C K"]
    values: Float[Tensor, "B H C K"]

    @staticmethod
    def empty(num_rows: int, num_heads: int, sizes: tuple[int, int], capacity: int, like: Tensor) -> KeyValueCache:
        """Room for `capacity` tokens (0: it grows by concatenation), whose keys and values have these sizes."""
        keys, values = (like.new_empty((num_rows, num_heads, capacity, size)) for size in sizes)
        return KeyValueCache(keys, values)

    def append(self, length: int, keys: Tensor, values: Tensor) -> tuple[KeyValueCache, Tensor, Tensor]:
        """(the cache, all keys, all values) after `keys` and `values` `[B, H, T, K]` at columns `length …`."""
        end = length + keys.shape[2]
        if self.keys.shape[2] >= end:
            self.keys[:, :, length:end] = keys
            self.values[:, :, length:end] = values
            return self, self.keys[:, :, :end], self.values[:, :, :end]
        if length:
            keys = torch.cat((self.keys[:, :, :length], keys), dim=2)
            values = torch.cat((self.values[:, :, :length], values), dim=2)
        return KeyValueCache(keys, values), keys, values

    def select(self, rows: Int[Tensor, " R"], length: int) -> KeyValueCache:
        """The used columns of the given rows, copied; spare capacity is not, it would cost more than it saves."""
        keys, values = self.keys[:, :, :length], self.values[:, :, :length]
        return KeyValueCache(keys.index_select(0, rows), values.index_select(0, rows))

    def join(self, other: KeyValueCache, length: int, other_length: int) -> KeyValueCache:
        """The rows of both, aligned at the right: the newest tokens of both sides in the last column."""

        def both(a: Tensor, b: Tensor) -> Tensor:
            return torch.cat((_pad_left(a[:, :, :length], size, 2), _pad_left(b[:, :, :other_length], size, 2)))

        size = max(length, other_length)
        return KeyValueCache(both(self.keys, other.keys), both(self.values, other.values))

    def without_first(self, num_columns: int) -> KeyValueCache:
        """The same without so many of its oldest columns."""
        return KeyValueCache(self.keys[:, :, num_columns:], self.values[:, :, num_columns:])

    def detach(self) -> KeyValueCache:
        """The same values without their graph."""
        return KeyValueCache(self.keys.detach(), self.values.detach())


class AppendKV:
    """One block's cache during one `advance`: calling it appends keys and values, and returns all of them.

    Afterwards `cache` is the one that the next state holds.
    """

    def __init__(self, cache: KeyValueCache, length: int) -> None:
        self.cache = cache
        self.length = length

    def __call__(self, keys: Float[Tensor, "B H T K"], values: Float[Tensor, "B H T V"]) -> KeysValues:
        keys, values = keys.to(self.cache.keys.dtype), values.to(self.cache.values.dtype)
        self.cache, keys, values = self.cache.append(self.length, keys, values)
        return keys, values


@dataclass(frozen=True)
class CachedState:
    """The state of an attention decoder: memory, a cache for each block, columns, and the dropout keys of training."""

    memory: Memory
    caches: tuple[KeyValueCache, ...]
    columns: RowPositions
    dropout_keys: DropoutKeys | None = None

    def select(self, rows: Int[Tensor, " R"]) -> CachedState:
        """The given rows in the given order."""
        if is_identity(rows, self.memory.num_rows):
            return self
        memory = self.memory.select(rows)
        caches = tuple(cache.select(rows, self.columns.length) for cache in self.caches)
        dropout_keys = self.dropout_keys and self.dropout_keys.select(rows)
        return CachedState(memory, caches, self.columns.select(rows), dropout_keys)

    def join(self, other: CachedState) -> CachedState:
        """These rows, then those of `other`; columns that only rows had which have left are given back."""
        left, right = self._without_empty_columns(), other._without_empty_columns()
        mine, theirs = left.columns, right.columns
        caches = tuple(a.join(b, mine.length, theirs.length) for a, b in zip(left.caches, right.caches, strict=True))
        columns = mine.join(theirs, self.memory.num_rows, other.memory.num_rows, self.memory.mask.device)
        dropout_keys = self.dropout_keys and other.dropout_keys and self.dropout_keys.join(other.dropout_keys)
        return CachedState(self.memory.join(other.memory), caches, columns, dropout_keys)

    def _without_empty_columns(self) -> CachedState:
        num_empty = self.columns.num_empty
        if not num_empty:
            return self
        caches = tuple(cache.without_first(num_empty) for cache in self.caches)
        return replace(self, caches=caches, columns=self.columns.without_first(num_empty))

    def detach(self) -> CachedState:
        """The same values, cut off from the graph."""
        caches = tuple(cache.detach() for cache in self.caches)
        return CachedState(self.memory.detach(), caches, self.columns, self.dropout_keys)
