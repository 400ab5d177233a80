"""Decoder states and the parts they are made of: encoder memory, key-value caches and row positions.

`RowState` selects, joins and detaches any state field by field. `Memory` holds what was computed from each source,
shared by the rows of that source, `KeyValueCache` holds one block's keys and values of the tokens so far, or
`CarriedVector` one vector instead, and `RowPositions` says in which columns the tokens of each row are. Caches are
aligned at the right: the newest token of every row is in the last column, and a row that began later has empty columns
on its left. So appending is the same for rows of any length.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, Self

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor

from heed.nn.dropout_keys import DropoutKeys


def attention_mask(real: Bool[Tensor, "B S"]) -> Bool[Tensor, "B 1 1 S"] | None:
    """The mask of real positions in the shape that attention takes; None if no position is padding.

    On a GPU it is never None, because checking its values would have to wait for the GPU.
    """
    return None if not real.is_cuda and bool(real.all()) else real[:, None, None]


FEW_TOKENS = 128
"""Tokens for which there is room, up to which copying the rows of a cache costs more than reading its keys."""
KeysValues = tuple[Tensor, Tensor]
"""Keys `[B, H, S, K]` and values `[B, H, S, V]`."""


@dataclass(frozen=True)
class RowState:
    """Base of frozen dataclasses that keep the contract of `heed.nn.contract.State`.

    Each field is a tensor with one row for each row of the batch, an integer that is equal for all rows, a value
    with `select`, `join` and `detach` of its own, a tuple of these, or None.
    """

    def select(self, rows: Int[Tensor, " R"]) -> Self:
        return replace(self, **{name: _select(value, rows) for name, value in self._fields()})

    def join(self, other: Self) -> Self:
        return replace(self, **{name: _join(value, getattr(other, name)) for name, value in self._fields()})

    def detach(self) -> Self:
        return replace(self, **{name: _detach(value) for name, value in self._fields()})

    def _fields(self) -> list[tuple[str, Any]]:
        return [(field.name, getattr(self, field.name)) for field in fields(self)]


def _select(value: Any, rows: Tensor) -> Any:
    if isinstance(value, tuple):
        return tuple(_select(part, rows) for part in value)
    if isinstance(value, Tensor):
        return value.index_select(0, rows)
    return value if value is None or isinstance(value, int) else value.select(rows)


def _join(value: Any, other: Any) -> Any:
    if value is None or other is None:
        return None
    if isinstance(value, tuple):
        return tuple(_join(*pair) for pair in zip(value, other, strict=True))
    if isinstance(value, Tensor):
        return torch.cat((value, other))
    return max(value, other) if isinstance(value, int) else value.join(other)


def _detach(value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(_detach(part) for part in value)
    return value if value is None or isinstance(value, int | DropoutKeys) else value.detach()


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
        """Number of rows that read this memory."""
        return self.mask.shape[0] * self.rows_per_source

    def attention_mask(self) -> Bool[Tensor, "S_rows 1 1 S"] | None:
        """The mask in the shape that attention takes; None if no position is padding."""
        return self._attention_mask

    @cached_property
    def _attention_mask(self) -> Tensor | None:  # read in each step
        return attention_mask(self.mask)

    def _take(self, sources: Tensor, rows_per_source: int) -> Memory:
        if rows_per_source == self.rows_per_source and is_identity(sources, self.mask.shape[0]):
            return self
        layers, mask = _select(self.layers, sources), self.mask.index_select(0, sources)
        return replace(self, layers=layers, mask=mask, rows_per_source=rows_per_source)

    def select(self, rows: Int[Tensor, " R"]) -> Memory:
        """The memory of the given rows; sources remain shared if rows remain in their groups."""
        if len(self.mask) == 1 and len(rows) == self.rows_per_source:
            return self
        sources = rows // self.rows_per_source
        width = self.rows_per_source
        if width > 1 and len(rows) % width == 0:
            groups = sources.view(len(rows) // width, width)
            if bool((groups == groups[:, :1]).all()):
                return self._take(groups[:, 0], width)
        return self._take(sources, 1)

    def join(self, other: Memory) -> Memory:
        """The rows of both; all sources are padded to the longest one that remains."""
        left, right = self, other
        if left.rows_per_source != right.rows_per_source:
            left, right = left._ungrouped(), right._ungrouped()
        size = max(left._longest, right._longest)

        def both(a: Tensor, b: Tensor) -> Tensor:
            return torch.cat((_resized(a, size, 2), _resized(b, size, 2)))

        layers = tuple(
            (both(a_keys, b_keys), both(a_values, b_values))
            for (a_keys, a_values), (b_keys, b_values) in zip(left.layers, right.layers, strict=True)
        )
        mask = torch.cat((_resized(left.mask, size, 1), _resized(right.mask, size, 1)))
        return replace(left, layers=layers, mask=mask)

    @property
    def _longest(self) -> int:
        """Number of positions of the longest source."""
        return int(self.mask.any(dim=0).sum())

    def _ungrouped(self) -> Memory:
        if self.rows_per_source == 1:
            return self
        rows = torch.arange(self.num_rows, device=self.mask.device)
        return self._take(rows // self.rows_per_source, 1)

    def detach(self) -> Memory:
        """The same values, cut off from the graph."""
        return replace(self, layers=_detach(self.layers))


def _resized(x: Tensor, size: int, dim: int) -> Tensor:
    """Cut at the end of one dimension, or padded there with zeros."""
    missing = size - x.shape[dim]
    return x.narrow(dim, 0, size) if missing <= 0 else F.pad(x, (0, 0) * (x.dim() - 1 - dim) + (0, missing))


@dataclass(frozen=True)
class RowPositions:
    """The columns of each row's tokens: `first[b] … length - 1`; with `first` None, all rows begin at column 0."""

    length: int = 0
    first: Int[Tensor, " B"] | None = None

    def causal_mask(self, num_queries: int, device: torch.device) -> Bool[Tensor, "..."] | None:
        """The mask of `num_queries` tokens that are appended: `[T, S]` or `[B, 1, T, S]`; None if nothing is hidden.

        A real token never sees an empty column of its row.
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
        """Positions of appended tokens in their rows: `[T]`, or `[B, T]` if rows began at different columns."""
        columns = torch.arange(self.length, self.length + num_queries, device=device)
        return columns if self.first is None else columns - self.first[:, None]

    def after(self, num_tokens: int) -> RowPositions:
        """The positions after `num_tokens` more tokens of each row."""
        return RowPositions(self.length + num_tokens, self.first)

    def starts(self, num_rows: int, device: torch.device) -> Int[Tensor, " B"]:
        """The first column of each row as a tensor."""
        return torch.zeros(num_rows, dtype=torch.long, device=device) if self.first is None else self.first

    def select(self, rows: Int[Tensor, " R"]) -> RowPositions:
        """The columns of the given rows."""
        return self if self.first is None else replace(self, first=self.first[rows])

    def join(self, other: RowPositions) -> RowPositions:
        """The columns of the rows of both, which must have the same length and a tensor of first columns."""
        assert self.first is not None
        assert other.first is not None
        return RowPositions(self.length, torch.cat((self.first, other.first)))

    def detach(self) -> RowPositions:
        """Itself: positions have no graph."""
        return self

    @property
    def num_empty(self) -> int:
        """Number of oldest columns that are empty in all rows."""
        return 0 if self.first is None else int(self.first.min())

    def without_first(self, num_columns: int) -> RowPositions:
        """The same without the oldest `num_columns` columns."""
        first = None if self.first is None else (self.first - num_columns).clamp(min=0)
        return RowPositions(self.length - num_columns, first).simplified()

    def simplified(self) -> RowPositions:
        """The same; `first` is None if all rows begin at column 0."""
        return self if self.first is None or bool(self.first.any()) else RowPositions(self.length)


@dataclass(frozen=True)
class KeyValueCache(RowState):
    """One block's keys and values of all tokens so far, `[B, H, C, K]`, of which `length` columns are used.

    With spare capacity (see `empty`) appending writes in place; without, it concatenates and is differentiable.
    """

    keys: Float[Tensor, "B H C K"]
    values: Float[Tensor, "B H C K"]
    buffer: Float[Tensor, "B C 2 H K"] | None = None
    """The memory of both, if they are of one size and have room for few tokens: rows and tokens are copied at once."""

    @staticmethod
    def empty(num_rows: int, num_heads: int, sizes: tuple[int, int], capacity: int, like: Tensor) -> KeyValueCache:
        """Room for `capacity` tokens (0: it grows by concatenation), whose keys and values have these sizes.

        Of many tokens, each head's keys follow each other in memory, and are read faster.
        """
        if 0 < capacity <= FEW_TOKENS and sizes[0] == sizes[1]:
            return KeyValueCache._in(like.new_empty(num_rows, capacity, 2, num_heads, sizes[0]))
        keys, values = (like.new_empty((num_rows, num_heads, capacity, size)) for size in sizes)
        return KeyValueCache(keys, values)

    @staticmethod
    def _in(buffer: Tensor) -> KeyValueCache:
        keys, values = buffer.permute(2, 0, 3, 1, 4).unbind(0)
        return KeyValueCache(keys, values, buffer)

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

    def select(self, rows: Int[Tensor, " R"]) -> KeyValueCache:
        """A copy of the given rows."""
        return KeyValueCache(self.keys.index_select(0, rows), self.values.index_select(0, rows))

    def select_used(self, rows: Int[Tensor, " R"], length: int) -> KeyValueCache:
        """A copy of the first `length` columns of the given rows, with the same capacity."""
        if self.buffer is None:
            if self.keys.shape[2] == length:
                return self.select(rows)
            copies = [of_all.new_empty(len(rows), *of_all.shape[1:]) for of_all in (self.keys, self.values)]
            for of_all, copy in zip((self.keys, self.values), copies, strict=True):
                torch.index_select(of_all[:, :, :length], 0, rows, out=copy[:, :, :length])
            return KeyValueCache(*copies)
        copy = self.buffer.new_empty(len(rows), *self.buffer.shape[1:])
        if length:
            size = length * copy.shape[2:].numel()
            torch.index_select(self.buffer.flatten(1)[:, :size], 0, rows, out=copy.flatten(1)[:, :size])
        return KeyValueCache._in(copy)

    def columns(self, begin: int, end: int, num_empty: int = 0) -> KeyValueCache:
        """Columns `begin … end - 1`, with `num_empty` columns of zeros before them."""
        keys, values = self.keys[:, :, begin:end], self.values[:, :, begin:end]
        if num_empty:
            keys, values = F.pad(keys, (0, 0, num_empty, 0)), F.pad(values, (0, 0, num_empty, 0))
        return KeyValueCache(keys, values)

    def appending(self, length: int) -> AppendKV:
        """This cache, of which `length` columns are used, during one `advance`."""
        return AppendKV(self, length)


class AppendKV:
    """One block's cache during one `advance`: a call appends keys and values, and returns all of them.

    Afterwards `cache` is the one that the next state holds.
    """

    def __init__(self, cache: KeyValueCache, length: int) -> None:
        self.cache = cache
        self.length = length

    def __call__(self, keys: Float[Tensor, "B H T K"], values: Float[Tensor, "B H T V"]) -> KeysValues:
        keys, values = keys.to(self.cache.keys.dtype), values.to(self.cache.values.dtype)
        self.cache, keys, values = self.cache.append(self.length, keys, values)
        return keys, values

    @property
    def has_room(self) -> bool:
        """Whether `append_token` has room for one more token."""
        return self.length < self.cache.keys.shape[2]

    def append_token(self, keys_values: Float[Tensor, "B 2 H K"]) -> KeysValues:
        """Append the keys and values of one token of each row, and return all of them."""
        if self.cache.buffer is not None:
            self.cache.buffer.select(1, self.length).copy_(keys_values)
        else:
            self.cache.keys.select(2, self.length).copy_(keys_values.select(1, 0))
            self.cache.values.select(2, self.length).copy_(keys_values.select(1, 1))
        end = self.length + 1
        return self.cache.keys.narrow(2, 0, end), self.cache.values.narrow(2, 0, end)


@dataclass(frozen=True)
class CarriedVector(RowState):
    """One block's vector of each row, which takes the place of the keys and values of its tokens. It has no columns."""

    vector: Float[Tensor, "B D"]

    def select_used(self, rows: Int[Tensor, " R"], length: int) -> CarriedVector:
        """A copy of the given rows."""
        return self.select(rows)

    def columns(self, begin: int, end: int, num_empty: int = 0) -> CarriedVector:
        """Itself, whatever the columns."""
        return self

    def appending(self, length: int) -> Carry:
        """This vector during one `advance`, after `length` columns."""
        return Carry(self)


class Carry:
    """One block's vector during one `advance`; afterwards `cache` is the one that the next state holds."""

    def __init__(self, cache: CarriedVector) -> None:
        self.cache = cache


@dataclass(frozen=True)
class CachingState(RowState, ABC):
    """Base of states with a cache for each block and the columns of each row in these caches."""

    caches: tuple[KeyValueCache | CarriedVector, ...]
    columns: RowPositions

    @property
    @abstractmethod
    def num_rows(self) -> int:
        """Number of rows."""

    @property
    @abstractmethod
    def device(self) -> torch.device:
        """The device of its tensors."""

    def select(self, rows: Int[Tensor, " R"]) -> Self:
        """The given rows; columns of the caches that are not used are not copied."""
        if is_identity(rows, self.num_rows):
            return self
        caches = tuple(cache.select_used(rows, self.columns.length) for cache in self.caches)
        return replace(RowState.select(replace(self, caches=()), rows), caches=caches)

    def join(self, other: Self) -> Self:
        """These rows, then those of `other`; the newest tokens of both are in the last column."""
        length = max(self.columns.length, other.columns.length)
        joined = RowState.join(self.aligned(length), other.aligned(length))
        return replace(joined, columns=joined.columns.simplified())

    def aligned(self, length: int) -> Self:
        """The same rows in the last of `length` columns, with empty columns before them."""
        used = self.columns.length
        caches = tuple(cache.columns(0, used, num_empty=length - used) for cache in self.caches)
        columns = RowPositions(length, self.columns.starts(self.num_rows, self.device) + length - used)
        return replace(self, caches=caches, columns=columns)

    def without_first(self, num_columns: int) -> Self:
        """The same without the oldest `num_columns` columns."""
        caches = tuple(cache.columns(num_columns, self.columns.length) for cache in self.caches)
        return replace(self, caches=caches, columns=self.columns.without_first(num_columns))


@dataclass(frozen=True)
class CachedState(CachingState):
    """State of an attention decoder: memory, a cache for each block, columns, and the dropout keys of training."""

    memory: Memory
    dropout_keys: DropoutKeys | None = None

    @property
    def num_rows(self) -> int:
        return self.memory.num_rows

    @property
    def device(self) -> torch.device:
        return self.memory.mask.device

    def join(self, other: CachedState) -> CachedState:
        """These rows, then those of `other`; columns that are empty in all rows are removed before."""
        left, right = (state.without_first(state.columns.num_empty) for state in (self, other))
        return CachingState.join(left, right)
