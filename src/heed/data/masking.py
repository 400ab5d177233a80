"""Masking of tokens for a masked language model (Devlin et al. 2019, section 3.1 and appendix A.1).

Of each row, a share of the pieces is chosen (15 % in BERT), at least one. A chosen piece is replaced by the mask in
80 % of the cases, by a random piece in 10 %, and kept in 10 %. The choice is a function of (seed, epoch, row,
position), so it does not depend on the batch, the rank or a resume, and differs from epoch to epoch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Int
from numpy.typing import NDArray
from torch import Tensor

from heed.data.batch import Ids, SourceBatch, source_from_ids
from heed.data.loader import BatchLoader
from heed.data.store import TokenStore
from heed.nn.contract import TokenSource
from heed.nn.dropout_keys import DropoutKeys

IN_TEN_MASKED, IN_TEN_RANDOM = 8, 1
"""Of ten chosen pieces: those that are replaced by the mask, and by a random piece."""


@dataclass(frozen=True)
class MaskedBatch(SourceBatch):
    """Rows in which some pieces are masked."""

    source: TokenSource
    """What the model reads: the rows with their masks, each followed by its end."""
    truth: Int[Tensor, "B S"]
    """The rows without masks."""
    chosen: Bool[Tensor, "B S"]
    """True where a piece is predicted."""
    rows: Int[Tensor, " B"]
    """Index of each row in the corpus: the key of its dropout masks."""
    num_targets: int

    def part(self, rows: slice) -> MaskedBatch:
        source = self.source.part(rows)
        longest = source.ids.shape[1]
        chosen = self.chosen[rows, :longest]
        return MaskedBatch(source, self.truth[rows, :longest], chosen, self.rows[rows], int(chosen.sum()))


@dataclass(frozen=True)
class Masking:
    """The rule by which the rows of a vocabulary are masked."""

    share: float
    """Share of the pieces that is chosen."""
    whole_words: bool
    """Choose all pieces of a word together."""
    mask_id: int
    first_text_id: int
    """The first id of a piece of text; special pieces come before it."""
    num_text_ids: int
    begins_word: Bool[Tensor, " V"]
    """Whether a piece begins with white space."""
    ends_word: Bool[Tensor, " V"]
    """Whether a piece ends with white space."""
    eos_id: int
    pad_id: int

    def batch(
        self, sequences: Sequence[Ids], rows: Sequence[int] | NDArray[np.int64], keys: DropoutKeys
    ) -> MaskedBatch:
        """A batch of these ids, given without ends, with the random numbers of `keys`."""
        source = source_from_ids(sequences, self.eos_id, self.pad_id)
        chosen = self.choose(source.ids, keys.fold(0))
        masked = TokenSource(self._replaced(source.ids, chosen, keys), source.mask)
        indices = torch.from_numpy(np.array(rows, dtype=np.int64))
        return MaskedBatch(masked, source.ids, chosen, indices, int(chosen.sum()))

    def is_text(self, ids: Int[Tensor, "..."]) -> Bool[Tensor, "..."]:
        """Whether each id is a piece of text: neither special, nor the mask or another tag."""
        return (ids >= self.first_text_id) & (ids < self.first_text_id + self.num_text_ids)

    def choose(self, ids: Int[Tensor, "B S"], keys: DropoutKeys) -> Bool[Tensor, "B S"]:
        """The pieces to predict: words (or single pieces) in random order, until the share of the row is reached."""
        candidates, places = self.is_text(ids), torch.arange(ids.shape[1])
        needed = (candidates.sum(1) * self.share).round().clamp(min=1)
        numbers = keys.numbers(ids.shape[1])
        if self.whole_words:
            first = torch.where(self._begins(ids), places, 0).cummax(1).values
            numbers = numbers.gather(1, first)  # one number for each word
        numbers, order = numbers.masked_fill(~candidates, torch.iinfo(torch.long).max).sort(dim=1, stable=True)
        is_new = torch.ones_like(candidates)
        is_new[:, 1:] = numbers[:, 1:] != numbers[:, :-1]
        num_before = torch.where(is_new, places, 0).cummax(1).values  # pieces of the words before this one
        chosen = (num_before < needed[:, None]) & candidates.gather(1, order)
        return torch.zeros_like(candidates).scatter(1, order, chosen)

    def _begins(self, ids: Int[Tensor, "B S"]) -> Bool[Tensor, "B S"]:
        """Whether a word begins at each position."""
        begins = self.begins_word[ids] | ~self.is_text(ids)
        begins[:, 1:] |= self.ends_word[ids[:, :-1]] | ~self.is_text(ids[:, :-1])
        begins[:, 0] = True
        return begins

    def _replaced(self, ids: Int[Tensor, "B S"], chosen: Bool[Tensor, "B S"], keys: DropoutKeys) -> Tensor:
        die = keys.fold(1).numbers(ids.shape[1]) % 10
        randoms = self.first_text_id + keys.fold(2).numbers(ids.shape[1]) % self.num_text_ids
        masked = torch.where(chosen & (die < IN_TEN_MASKED), self.mask_id, ids)
        is_random = chosen & (die >= IN_TEN_MASKED) & (die < IN_TEN_MASKED + IN_TEN_RANDOM)
        return torch.where(is_random, randoms, masked)


def equal_parts(length: int, most: int) -> list[tuple[int, int]]:
    """The bounds of the fewest parts of at most `most` tokens, whose lengths differ by at most one."""
    number = -(-length // most)
    return [(length * i // number, length * (i + 1) // number) for i in range(number)]


class MaskedLoader(BatchLoader[MaskedBatch]):
    """Batches of the column `src` of a token store, masked anew in each epoch."""

    def __init__(self, store: TokenStore, masking: Masking, *, seed: int, **options: Any) -> None:
        super().__init__(store, lambda ids, rows: self.made(ids, rows, 0), seed=seed, **options)
        self.masking = masking

    def made(self, ids: Mapping[str, Sequence[Ids]], rows: NDArray[np.int64], epoch: int) -> MaskedBatch:
        keys = DropoutKeys.for_step(self.seed, epoch, torch.from_numpy(np.array(rows, dtype=np.int64)))
        return self.masking.batch(ids["src"], rows, keys)
