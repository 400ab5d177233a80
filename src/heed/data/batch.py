"""Batches: the tensors of one training step, and the plan of an epoch's batches by length.

Shift and masks are made once: `tgt_in` begins with bos, `tgt_out` and sources end with eos. Padding is at the end of a
row.

A plan is a pure function of the rows' lengths, a token budget, the seed and the number of the epoch, so a resumed run
computes the plan of its epoch again and replays nothing. Rows are shuffled, then sorted so that a batch holds rows of
nearly the same length on *both* sides: by the longer side, which makes the batches as few as the budget allows, then by
the signed difference of the sides, which determines the shorter one. The direction of the difference alternates from
one length to the next, so that a batch that reaches into the next length continues with rows of the same difference.
The rest is random: the order of the batches, the order of rows of equal lengths, and the first cut, so that the rows of
a batch differ from epoch to epoch.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from itertools import pairwise
from typing import Any, NamedTuple, Protocol, Self, TypeVar

import numpy as np
import torch
from jaxtyping import Bool, Int
from numpy.typing import NDArray
from torch import Tensor

from heed.data.schedule import epoch_random, shuffled
from heed.nn.contract import Source, TokenSource

Ids = Sequence[int] | NDArray[np.integer]
"""The ids of one sentence: a row of the token store, or the output of a tokenizer."""


class TrainingBatch(Protocol):
    """A batch of any task, as the training loop sees it."""

    @property
    def rows(self) -> Int[Tensor, " B"]:
        """Index of each row in the corpus: the key of its dropout masks."""
        ...

    @property
    def num_targets(self) -> int:
        """Number of targets (tokens, labels), by which a loss is divided."""
        ...

    @property
    def num_positions(self) -> int:
        """Number of computed positions, including padding."""
        ...

    @property
    def num_real(self) -> int:
        """Number of positions without padding."""
        ...

    @property
    def segment(self) -> int | None:
        """For streams: number of preceding segments in this epoch. None: rows are independent."""
        ...

    @property
    def relative_length(self) -> float:
        """For streams cut at random: length of the segment relative to the usual one."""
        ...

    def part(self, rows: slice) -> Self:
        """Some of the rows, without columns that are all padding."""
        ...

    def to(self, device: torch.device) -> Self:
        """The same batch on another device."""
        ...


AnyBatch = TypeVar("AnyBatch", bound=TrainingBatch)


def divided(batch: AnyBatch, number: int) -> list[AnyBatch]:
    """The rows of a batch in `number` consecutive parts of nearly the same size."""
    cuts = [len(batch.rows) * index // number for index in range(number + 1)]
    return [batch.part(slice(begin, end)) for begin, end in pairwise(cuts)]


class SourceBatch(ABC):
    """Base of the batches of tasks that read whole sources: independent rows of a source with their targets.

    A subclass is a frozen dataclass with the fields `source` and `rows`.
    """

    source: Any
    rows: Int[Tensor, " B"]

    @property
    def segment(self) -> None:
        return None

    @property
    def relative_length(self) -> float:
        return 1.0

    @property
    def num_positions(self) -> int:
        return int(self._computed.numel())

    @property
    def num_real(self) -> int:
        return int(self._computed.sum())

    @property
    def _computed(self) -> Tensor:
        """Mask of what is computed: the source's positions, or their parts if it has any."""
        computed: Tensor = getattr(self.source, "computed", self.source.mask)
        return computed

    @abstractmethod
    def part(self, rows: slice) -> Self:
        """Some of the rows, without columns that are all padding."""

    def to(self, device: torch.device) -> Self:
        named = {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]
        moved = {name: value.to(device) for name, value in named.items() if hasattr(value, "to")}
        return replace(self, **moved)  # type: ignore[type-var]


class Shape(NamedTuple):
    """Sizes of a batch of targets with their sources."""

    rows: int
    src: int
    """Source positions of a row; 0 without sources."""
    tgt: int


@dataclass(frozen=True)
class Batch:
    """Target rows with their sources."""

    source: Source | None
    """None for a language model."""
    tgt_in: Int[Tensor, "B T"]
    """The input of the model: bos, then the target."""
    tgt_out: Int[Tensor, "B T"]
    """The prediction after each token of `tgt_in`: the target, then eos."""
    tgt_mask: Bool[Tensor, "B T"]
    """True = a real token of `tgt_in` and of `tgt_out`."""
    rows: Int[Tensor, " B"]
    """Index of each row in the corpus: the key of its dropout masks."""
    num_tokens: int
    """Number of real target tokens, including eos."""
    num_src_tokens: int
    """Number of real source tokens, including eos."""
    segment: int | None = None
    """For streams: number of preceding segments in this epoch. None: rows are independent."""
    relative_length: float = 1.0
    """For streams cut at random: length of the segment relative to the usual one."""

    @property
    def num_targets(self) -> int:
        return self.num_tokens

    @property
    def num_real(self) -> int:
        """Number of real tokens of both sides."""
        return self.num_tokens + self.num_src_tokens

    @property
    def num_positions(self) -> int:
        return self.tgt_mask.numel() + (self.source.mask.numel() if self.source else 0)

    @property
    def shape(self) -> Shape:
        return Shape(len(self.rows), self.source.mask.shape[1] if self.source else 0, self.tgt_in.shape[1])

    def empty(self, shape: Shape) -> Batch:
        """A batch of another shape for `write`, of token sources or without sources."""
        ids = self.tgt_in.new_zeros(shape.rows, shape.tgt)
        src = self.tgt_in.new_zeros(shape.rows, shape.src)
        source = TokenSource(src, src.bool()) if self.source else None
        return replace(
            self, source=source, tgt_in=ids, tgt_out=ids.clone(), tgt_mask=ids.bool(),
            rows=self.rows.new_zeros(shape.rows),
        )  # fmt: skip

    def write(self, into: Batch) -> None:
        """Copy this batch into one that is at least as large, where the rest becomes padding.

        Rows of padding have a source of one token, because attention needs one.
        """
        pairs = [(self.tgt_in, into.tgt_in), (self.tgt_out, into.tgt_out), (self.tgt_mask, into.tgt_mask)]
        if isinstance(self.source, TokenSource) and isinstance(into.source, TokenSource):
            pairs += [(self.source.ids, into.source.ids), (self.source.mask, into.source.mask)]
        for _, target in pairs:
            target.zero_()  # the id of padding
        if into.source is not None:
            into.source.mask[:, 0] = True
        for source, target in pairs:
            target[: source.shape[0], : source.shape[1]] = source

    def part(self, rows: slice) -> Batch:
        """Some of the rows, without columns that are all padding."""
        mask = self.tgt_mask[rows]
        longest = int(mask.sum(1).max())
        source = self.source.part(rows) if self.source else None
        return replace(
            self,
            source=source,
            tgt_in=self.tgt_in[rows, :longest],
            tgt_out=self.tgt_out[rows, :longest],
            tgt_mask=mask[:, :longest],
            rows=self.rows[rows],
            num_tokens=int(mask.sum()),
            num_src_tokens=int(source.mask.sum()) if source else 0,
        )

    def to(self, device: torch.device) -> Batch:
        return replace(
            self,
            source=self.source.to(device) if self.source else None,
            tgt_in=self.tgt_in.to(device),
            tgt_out=self.tgt_out.to(device),
            tgt_mask=self.tgt_mask.to(device),
            rows=self.rows.to(device),
        )


def collate(
    src_ids: Sequence[Ids] | None,
    tgt_ids: Sequence[Ids],
    rows: Sequence[int] | NDArray[np.integer],
    bos_id: int,
    eos_id: int,
    pad_id: int,
) -> Batch:
    """A batch of rows from their ids without bos or eos and their indices in the corpus.

    `src_ids` is None for a language model.
    """
    tgt_out, tgt_mask = _ended(tgt_ids, eos_id, pad_id)
    tgt_in = np.full_like(tgt_out, bos_id)
    tgt_in[:, 1:] = tgt_out[:, :-1]
    tgt_in[~tgt_mask] = pad_id
    source = None if src_ids is None else source_from_ids(src_ids, eos_id, pad_id)
    return Batch(
        source=source,
        tgt_in=torch.from_numpy(tgt_in),
        tgt_out=torch.from_numpy(tgt_out),
        tgt_mask=torch.from_numpy(tgt_mask),
        rows=torch.from_numpy(np.array(rows, dtype=np.int64)),
        num_tokens=int(tgt_mask.sum()),
        num_src_tokens=int(source.mask.sum()) if source else 0,
    )


def source_from_ids(sequences: Sequence[Ids], eos_id: int, pad_id: int) -> TokenSource:
    """Sequences of ids as a source `[B, S]`, each followed by eos; used in training and in translation."""
    ids, mask = _ended(sequences, eos_id, pad_id)
    return TokenSource(torch.from_numpy(ids), torch.from_numpy(mask))


def _ended(sequences: Sequence[Ids], eos_id: int, pad_id: int) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Each sequence and eos, padded to the longest `[B, T]`, and the mask of real ids."""
    end = np.array([eos_id])
    parts = [end[:0], *(part for ids in sequences for part in (ids, end))]
    lengths = np.array([len(ids) + 1 for ids in sequences], dtype=np.int64)
    mask = np.arange(lengths.max(initial=0)) < lengths[:, None]
    padded = np.full(mask.shape, pad_id, dtype=np.int64)
    padded[mask] = np.concatenate(parts, dtype=np.int64, casting="unsafe")  # NumPy takes [] as floats
    return padded, mask


def plan_epoch(
    lengths: Sequence[NDArray[np.integer]],
    tokens_per_batch: int,
    seed: int,
    epoch: int,
    max_rows: int | None = None,
    block_rows: int = 2_000_000,
) -> list[NDArray[np.int64]]:
    """The batches of one epoch in order, each an array of row indices; every row is in exactly one.

    `lengths` has one array `[num_rows]` for each side (one or two), with eos or bos included in each length. In each
    batch, rows × the longest sequence of either side is at most `tokens_per_batch`, and there are at most `max_rows`
    rows; a row longer than the budget is a batch of its own.

    Rows are sorted by length within blocks of `block_rows` shuffled rows, which bounds the memory of a large corpus.
    """
    random = epoch_random(seed, epoch)
    order = shuffled(len(lengths[0]), random)
    batches: list[NDArray[np.int64]] = []
    for start in range(0, len(order), block_rows):
        rows = order[start : start + block_rows]
        sides = [side[rows].astype(np.int64) for side in lengths]
        longest = np.maximum(sides[0], sides[-1])
        by_length = _by_length(longest, sides[0] - sides[-1])
        rows, longest = rows[by_length], longest[by_length]
        first_share = float(random.random_raw() >> 11) / 2**53
        cuts = _cut(longest, tokens_per_batch, max_rows or len(rows), first_share)
        batches.extend(rows[begin:end] for begin, end in cuts)
    return [batches[i] for i in shuffled(len(batches), random)]


def _by_length(longest: NDArray[np.int64], difference: NDArray[np.int64]) -> NDArray[np.int64]:
    """The order by lengths; stable, so that equal rows remain shuffled."""
    alternating = np.where(longest % 2 == 0, difference, -difference)
    return np.lexsort((alternating, longest)).astype(np.int64, copy=False)


def _cut(
    longest: NDArray[np.int64], tokens_per_batch: int, max_rows: int, first_share: float
) -> Iterator[tuple[int, int]]:
    """Cuts rows of ascending length into batches as large as the budget allows: (begin, end) of each.

    The first batch is reduced to between half and all of that, unless all rows fit into it.
    """
    begin, num_rows = 0, len(longest)
    while begin < num_rows:
        # A batch that starts here has at most as many rows as if all were as short as the first.
        reach = min(max(tokens_per_batch // int(longest[begin]), 1), max_rows)
        candidates = longest[begin : begin + reach]
        area = candidates * np.arange(1, len(candidates) + 1)
        size = max(1, int(np.searchsorted(area, tokens_per_batch, side="right")))
        if begin == 0 and size < num_rows:
            size = max(1, round(size * (1 + first_share) / 2))
        yield begin, begin + size
        begin += size
