"""Pairs of texts for the prediction of the next sentence (Devlin et al. 2019, section 3.1, task 2).

Each row of a store is the first text of a pair. In half of the cases its second text is the row that follows it, in the
others a random row of the store; a row that nothing follows always gets a random one. The choice is a function of
(seed, epoch, row).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool
from numpy.typing import NDArray
from torch import Tensor

from heed.data.batch import Ids
from heed.data.masking import MaskedBatch, MaskedLoader, Masking
from heed.data.store import TokenStore
from heed.nn.dropout_keys import DropoutKeys

BEGINS = "begins"
"""Column of the store: 1 for a row that does not follow the one before it."""
SITE = 3
"""Of the random numbers, apart from those of masking."""


@dataclass(frozen=True)
class PairedBatch(MaskedBatch):
    """Pairs of texts in which some pieces are masked."""

    is_next: Bool[Tensor, " B"]
    """Whether the second text follows the first one."""
    masked_per_row: float
    """Mean number of masked pieces of a row: the weight of a pair, with which both mean losses count alike."""

    def part(self, rows: slice) -> PairedBatch:
        return paired(super().part(rows), self.is_next[rows], self.masked_per_row)


def paired(batch: MaskedBatch, is_next: Bool[Tensor, " B"], masked_per_row: float | None = None) -> PairedBatch:
    """A batch of masked pairs."""
    weight = batch.num_targets / max(1, len(is_next)) if masked_per_row is None else masked_per_row
    return PairedBatch(batch.source, batch.truth, batch.chosen, batch.rows, batch.num_targets, is_next, weight)


def joined(first: Ids, second: Ids, eos_id: int) -> NDArray[np.int64]:
    """Two texts with an end between them."""
    return np.concatenate((np.asarray(first), [eos_id], np.asarray(second))).astype(np.int64)


class Pairs:
    """The second rows of the pairs of each epoch."""

    def __init__(self, store: TokenStore, seed: int) -> None:
        begins, _ = store.all_tokens(BEGINS)
        self.seed = seed
        self.is_followed = np.append(begins[1:] == 0, False)

    def second(self, rows: NDArray[np.int64], epoch: int) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """The second row of each pair, and whether it is the next one."""
        size = len(self.is_followed)
        keys = DropoutKeys.for_step(self.seed, epoch, torch.from_numpy(np.array(rows, dtype=np.int64))).fold(SITE)
        numbers = keys.numbers(2).numpy()
        is_next = (numbers[:, 0] % 2 == 0) & self.is_followed[rows]
        other = (rows + 2 + numbers[:, 1] % max(1, size - 2)) % size
        return np.where(is_next, rows + 1, other), is_next


class PairedLoader(MaskedLoader):
    """Batches of pairs, drawn and masked anew in each epoch."""

    def __init__(self, store: TokenStore, masking: Masking, *, seed: int, **options: Any) -> None:
        super().__init__(store, masking, seed=seed, **options)
        self.pairs = Pairs(store, seed)

    def made(self, ids: Mapping[str, Sequence[Ids]], rows: NDArray[np.int64], epoch: int) -> PairedBatch:
        second, is_next = self.pairs.second(rows, epoch)
        eos = self.masking.eos_id
        both = [joined(row, self.store.row("src", at), eos) for row, at in zip(ids["src"], second, strict=True)]
        return paired(super().made({"src": both}, rows, epoch), torch.from_numpy(is_next))

    def _lengths_in(self, epoch: int) -> Sequence[NDArray[np.integer]]:
        lengths = self.store.lengths("src")
        second, _ = self.pairs.second(np.arange(len(lengths)), epoch)
        return [lengths + 1 + lengths[second] + 1]
