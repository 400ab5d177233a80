"""Language models with a fixed number of positions, reading texts of any length.

When a row has filled its `max_len` columns and one more token comes, its last `max_len // 2` tokens are read again from
the first position on, and it goes on behind them. So every token sees at least `max_len // 2` tokens before it, where
there are as many; and what it sees depends on its place in the text alone, not on how the text came or beside whom.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from heed.models.model import GenerativeModel
from heed.nn.contract import Source, Trace
from heed.nn.dropout_keys import DropoutKeys
from heed.nn.heads import LinearHead
from heed.nn.states import AppendKV, KeyValueCache, RowPositions, is_identity


@dataclass(frozen=True)
class ContextState:
    """The tokens that are seen, with the keys and values of each block for them."""

    caches: tuple[KeyValueCache, ...]
    columns: RowPositions
    ids: Int[Tensor, "B C"]
    """The tokens in these columns."""
    capacity: int = 0
    """Columns that caches are made for; without, they grow."""
    num_left: int = 0
    """Columns that were dropped."""
    dropout_keys: DropoutKeys | None = None

    def select(self, rows: Int[Tensor, " R"]) -> ContextState:
        """The given rows in the given order."""
        if is_identity(rows, len(self.ids)):
            return self
        return replace(
            self,
            caches=tuple(cache.select(rows, self.columns.length) for cache in self.caches),
            columns=self.columns.select(rows),
            ids=self.ids[rows],
            dropout_keys=self.dropout_keys and self.dropout_keys.select(rows),
        )

    def join(self, other: ContextState) -> ContextState:
        """These rows, then those of `other`; the newest tokens of both in the last column."""
        mine, theirs = self.columns, other.columns
        columns = mine.join(theirs, len(self.ids), len(other.ids), self.ids.device)
        padded = [F.pad(side.ids, (columns.length - side.columns.length, 0)) for side in (self, other)]
        return ContextState(
            caches=tuple(a.join(b, mine.length, theirs.length) for a, b in zip(self.caches, other.caches, strict=True)),
            columns=columns,
            ids=torch.cat(padded),
            capacity=max(self.capacity, other.capacity),
            num_left=max(self.num_left, other.num_left),
            dropout_keys=self.dropout_keys and other.dropout_keys and self.dropout_keys.join(other.dropout_keys),
        )

    def without_first(self, num_columns: int) -> ContextState:
        """The same without so many of its oldest columns."""
        first = self.columns.first
        if first is not None:
            first = (first - num_columns).clamp(min=0)
        return replace(
            self,
            caches=tuple(cache.without_first(num_columns) for cache in self.caches),
            columns=RowPositions(self.columns.length - num_columns, first),
            ids=self.ids[:, num_columns:],
            num_left=self.num_left + num_columns,
        )

    def detach(self) -> ContextState:
        """The same values, cut off from the graph."""
        return replace(self, caches=tuple(cache.detach() for cache in self.caches))


class LimitedContext(GenerativeModel, ABC):
    """A language model whose blocks read `max_len` columns at most; a subclass says what it computes in them."""

    reads = "windows"
    head: LinearHead

    def __init__(self, max_len: int) -> None:
        super().__init__()
        self.max_len = max_len

    @abstractmethod
    def empty_caches(self, num_rows: int, capacity: int, like: Tensor) -> Iterable[KeyValueCache]:
        """One cache for each block; see `heed.nn.attention.Attention.empty_cache`."""

    @abstractmethod
    def compute(
        self, ids: Int[Tensor, "B T"], columns: RowPositions, caches: Sequence[AppendKV],
        dropout_keys: DropoutKeys | None, trace: Trace | None,
    ) -> Float[Tensor, "B T D"]:  # fmt: skip
        """Features of tokens that come after `columns`; each block appends to its cache."""

    def start(
        self,
        source: Source | None,
        rows_per_source: int = 1,
        reserve: int | None = None,
        dropout_keys: DropoutKeys | None = None,
    ) -> ContextState:
        """Nothing is seen yet; a source tells nothing to a language model."""
        num_sources = 1 if source is None else len(source)
        if dropout_keys is not None and source is not None:
            dropout_keys = dropout_keys.repeat(rows_per_source)
        return self._fresh(num_sources * rows_per_source, min(reserve or 0, self.max_len), dropout_keys)

    def _fresh(self, num_rows: int, capacity: int, dropout_keys: DropoutKeys | None, num_left: int = 0) -> ContextState:
        like: Tensor = self.head.weight
        if dropout_keys is None and like.device.type == "cpu":  # PyTorch attends to bfloat16 keys several times slower
            like = like.new_empty(0, dtype=torch.float32)
        caches = tuple(self.empty_caches(num_rows, capacity, like))
        ids = torch.empty((num_rows, 0), dtype=torch.long, device=like.device)
        return ContextState(caches, RowPositions(), ids, capacity, num_left, dropout_keys)

    def advance(
        self, ids: Int[Tensor, "B T"], state: ContextState, trace: Trace | None = None
    ) -> tuple[Float[Tensor, "B T D"], ContextState]:
        """Features of the next token after each of the given ones."""
        features: list[Tensor] = []
        traces: list[tuple[int, Trace]] = []
        while ids.shape[1] or not features:
            state = self._with_room(state)
            room = self.max_len - state.columns.length
            traces += [(state.num_left, Trace())] if trace is not None else []
            found, state = self._read(ids[:, :room], state, traces[-1][1] if traces else None)
            features.append(found)
            ids = ids[:, room:]
        if trace is not None:
            _merge(trace, traces)
        return features[0] if len(features) == 1 else torch.cat(features, dim=1), state

    def _read(
        self, ids: Int[Tensor, "B T"], state: ContextState, trace: Trace | None = None
    ) -> tuple[Float[Tensor, "B T D"], ContextState]:
        """`advance` for no more tokens than there are columns left."""
        columns = state.columns
        appending = [AppendKV(cache, columns.length) for cache in state.caches]
        dropout_keys = state.dropout_keys and state.dropout_keys.shifted(state.num_left)
        features = self.compute(ids, columns, appending, dropout_keys, trace)
        seen = torch.cat((state.ids, ids), dim=1)
        caches = tuple(append_kv.cache for append_kv in appending)
        return features, replace(state, caches=caches, columns=columns.after(ids.shape[1]), ids=seen)

    def _with_room(self, state: ContextState) -> ContextState:
        """A state with a column left; rows that have taken all of them begin again with half of their tokens."""
        while state.columns.length >= self.max_len:
            first = state.columns.first
            if first is None:
                return self._begun_again(state)
            if empty := int(first.min()):
                state = state.without_first(empty)
                continue
            full, others = (first == 0).nonzero().squeeze(1), first.nonzero().squeeze(1)
            together = state.select(others).join(self._begun_again(state.select(full)))
            state = replace(together.select(torch.cat((others, full)).argsort()), num_left=state.num_left)
        return state

    def _begun_again(self, state: ContextState) -> ContextState:
        """The last half of the tokens, read from the first position on; all rows have taken all columns."""
        kept = state.ids[:, state.columns.length - self.max_len // 2 :]
        num_left = state.num_left + state.columns.length - kept.shape[1]
        _, begun = self._read(kept, self._fresh(len(kept), state.capacity, state.dropout_keys, num_left))
        return begun


def _merge(trace: Trace, pieces: Sequence[tuple[int, Trace]]) -> None:
    """Record the weights of one call that were made in pieces, each with how many columns had been left before it.

    The columns are those of the first piece, and new ones behind them.
    """
    first = pieces[0][0]
    for name in pieces[0][1].weights:
        found = [(num_left - first, piece.weights[name][0]) for num_left, piece in pieces]
        size = max(shift + weights.shape[3] for shift, weights in found)
        padded = [F.pad(weights, (shift, size - shift - weights.shape[3])) for shift, weights in found]
        trace.record(name, torch.cat(padded, dim=2))
