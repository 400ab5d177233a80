"""Language models with a fixed number of positions that read texts of any length.

When a row has filled its `max_len` columns and one more token comes, its last `max_len // 2` tokens are read again from
the first position, and the new token is appended to them. So every token sees at least the `max_len // 2` tokens before
it, if there are as many. Its context depends only on its position in the text, not on chunks or neighbouring rows.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from heed.models.model import LanguageModel
from heed.nn.contract import Trace
from heed.nn.dropout_keys import DropoutKeys
from heed.nn.heads import LinearHead
from heed.nn.states import AppendKV, CachingState, KeyValueCache, RowPositions


@dataclass(frozen=True)
class ContextState(CachingState):
    """The visible tokens, with the keys and values of each block for them."""

    caches: tuple[KeyValueCache, ...]
    ids: Int[Tensor, "B C"]
    """The token in each column."""
    capacity: int = 0
    """Number of columns that are allocated in each cache; with 0, caches grow."""
    num_left: int = 0
    """Number of columns that were dropped."""
    dropout_keys: DropoutKeys | None = None

    @property
    def num_rows(self) -> int:
        return len(self.ids)

    @property
    def device(self) -> torch.device:
        return self.ids.device

    def aligned(self, length: int) -> ContextState:
        """The same rows in the last of `length` columns, with empty columns before them."""
        ids = F.pad(self.ids, (length - self.columns.length, 0))
        return replace(super().aligned(length), ids=ids)

    def without_first(self, num_columns: int) -> ContextState:
        """The same without the oldest `num_columns` columns."""
        ids, num_left = self.ids[:, num_columns:], self.num_left + num_columns
        return replace(super().without_first(num_columns), ids=ids, num_left=num_left)


class LimitedContext(LanguageModel, ABC):
    """A language model whose blocks read at most `max_len` columns; subclasses implement the blocks."""

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

    def initial_state(
        self, num_rows: int, reserve: int | None, dropout_keys: DropoutKeys | None, num_left: int = 0
    ) -> ContextState:
        """Rows without visible tokens."""
        capacity = min(reserve or 0, self.max_len)
        like: Tensor = self.head.weight
        if dropout_keys is None and like.device.type == "cpu":  # PyTorch attends to bfloat16 keys several times slower
            like = like.new_empty(0, dtype=torch.float32)
        caches = tuple(self.empty_caches(num_rows, capacity, like))
        ids = torch.empty((num_rows, 0), dtype=torch.long, device=like.device)
        return ContextState(caches, RowPositions(), ids, capacity, num_left, dropout_keys)

    def advance(
        self, ids: Int[Tensor, "B T"], state: ContextState, trace: Trace | None = None
    ) -> tuple[Float[Tensor, "B T D"], ContextState]:
        features: list[Tensor] = []
        traces: list[tuple[int, Trace]] = []
        while ids.shape[1] or not features:
            state = self._with_room(state)
            room = self.max_len - state.columns.length
            traces += [(state.num_left, Trace())] if trace is not None else []
            part, state = self._read(ids[:, :room], state, traces[-1][1] if traces else None)
            features.append(part)
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
        """A state with at least one free column; rows that fill all columns restart with half of their tokens."""
        while state.columns.length >= self.max_len:
            first = state.columns.first
            if first is None:
                return self._restarted(state)
            if empty := int(first.min()):
                state = state.without_first(empty)
                continue
            full, others = (first == 0).nonzero().squeeze(1), first.nonzero().squeeze(1)
            together = state.select(others).join(self._restarted(state.select(full)))
            state = replace(together.select(torch.cat((others, full)).argsort()), num_left=state.num_left)
        return state

    def _restarted(self, state: ContextState) -> ContextState:
        """The last half of the tokens, read from the first position; all rows must fill all columns."""
        kept = state.ids[:, state.columns.length - self.max_len // 2 :]
        num_left = state.num_left + state.columns.length - kept.shape[1]
        _, restarted = self._read(kept, self.initial_state(len(kept), state.capacity, state.dropout_keys, num_left))
        return restarted


def _merge(trace: Trace, pieces: Sequence[tuple[int, Trace]]) -> None:
    """Record the weights of one call that was computed in pieces: (columns dropped before the piece, its trace).

    The columns are those of the first piece, followed by new ones.
    """
    first = pieces[0][0]
    for name in pieces[0][1].weights:
        shifted = [(num_left - first, piece.weights[name][0]) for num_left, piece in pieces]
        size = max(shift + weights.shape[3] for shift, weights in shifted)
        padded = [F.pad(weights, (shift, size - shift - weights.shape[3])) for shift, weights in shifted]
        trace.record(name, torch.cat(padded, dim=2))
