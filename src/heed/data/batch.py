"""Batches: rows of token ids as the tensors of one training step.

The shift and the masks are made here, once: `tgt_in` begins with bos, `tgt_out` ends with eos, and a source ends
with eos too. Padding stands at the end of a row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol, Self

import numpy as np
import torch
from jaxtyping import Bool, Int
from numpy.typing import NDArray
from torch import Tensor

from heed.nn.contract import Source, TokenSource

# The ids of one sentence: a row of the token store, or what a tokenizer returned.
Ids = Sequence[int] | NDArray[np.integer]


class TrainingBatch(Protocol):
    """What the training loop knows of a batch, whatever its task."""

    @property
    def rows(self) -> Int[Tensor, " B"]:
        """Each row's index in the corpus: the key of its dropout masks."""
        ...

    @property
    def num_targets(self) -> int:
        """Number of targets (tokens, labels), which a loss is divided by."""
        ...

    @property
    def num_positions(self) -> int:
        """Number of positions that are computed, padding included."""
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

    def halves(self) -> tuple[Self, Self]:
        """Split the rows in two; the parts have no columns that are all padding."""
        ...

    def to(self, device: torch.device) -> Self:
        """The same batch on another device."""
        ...


@dataclass(frozen=True)
class Batch:
    """Target rows with their sources: what a model is trained on in one step."""

    source: Source | None
    """None for a language model."""
    tgt_in: Int[Tensor, "B T"]
    """bos, then the target: what the model reads."""
    tgt_out: Int[Tensor, "B T"]
    """The target, then eos: what the model is to say after each token of `tgt_in`."""
    tgt_mask: Bool[Tensor, "B T"]
    """True = a real token of `tgt_in` and of `tgt_out`."""
    rows: Int[Tensor, " B"]
    """Each row's index in the corpus: the key of its dropout masks."""
    num_tokens: int
    """Real target tokens, eos included: what a loss is divided by."""
    num_src_tokens: int
    """Real source tokens, eos included."""
    segment: int | None = None
    """Of streams: how many segments of them came before in this epoch. None: rows stand alone."""
    relative_length: float = 1.0
    """Of streams cut at random: the segment's length by the usual one."""

    @property
    def num_targets(self) -> int:
        """Number of real target tokens."""
        return self.num_tokens

    @property
    def num_real(self) -> int:
        """Real tokens of both sides."""
        return self.num_tokens + self.num_src_tokens

    @property
    def num_positions(self) -> int:
        """Positions of both sides, padding included."""
        return self.tgt_mask.numel() + (self.source.mask.numel() if self.source else 0)

    @property
    def padding_share(self) -> float:
        """The share of positions that are padding, over both sides, 0 to 1."""
        return 1 - self.num_real / self.num_positions

    def halves(self) -> tuple[Batch, Batch]:
        """The first half of the rows and the others, each without columns that are all padding."""
        middle = len(self.rows) // 2
        return self._part(slice(0, middle)), self._part(slice(middle, None))

    def _part(self, rows: slice) -> Batch:
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
        """The same batch on another device."""
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
    """A batch of B rows from their ids without bos or eos; `src_ids` is None for a language model.

    `rows` are the rows' indices in the corpus.
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
    """Sequences of ids as a source `[B, S]`, each ended with eos; used in training and in translation alike."""
    ids, mask = _ended(sequences, eos_id, pad_id)
    return TokenSource(torch.from_numpy(ids), torch.from_numpy(mask))


def _ended(sequences: Sequence[Ids], eos_id: int, pad_id: int) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Each sequence and eos, padded to the longest `[B, T]`, and where the real ids are."""
    end = np.array([eos_id])
    parts = [end[:0], *(part for ids in sequences for part in (ids, end))]
    lengths = np.array([len(ids) + 1 for ids in sequences], dtype=np.int64)
    mask = np.arange(lengths.max(initial=0)) < lengths[:, None]
    padded = np.full(mask.shape, pad_id, dtype=np.int64)
    padded[mask] = np.concatenate(parts, dtype=np.int64, casting="unsafe")  # NumPy takes [] for floats
    return padded, mask
