"""Sources of words: token ids with the word of each position, its characters, its letter case and its mark.

A word is one piece or several. Readers see positions (pieces); the heads of tagging see words, whose features are those
of their first piece (Devlin et al. 2019, section 5.3). Readers that need only `ids` and `mask` read it as any source.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, replace

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

NUM_CASES = 8
"""Patterns of letter case."""
CHARACTER_PAD, CHARACTER_UNKNOWN, FIRST_CHARACTER = 0, 1, 2
"""Ids of characters: padding, characters that are not in the vocabulary, and the first one that is."""


@dataclass(frozen=True)
class WordSource:
    """Rows of words; padding is at the end of a row, after the end of the sentence."""

    ids: Int[Tensor, "S_rows S"]
    mask: Bool[Tensor, "S_rows S"]
    starts: Int[Tensor, "S_rows W"]
    """The position of the first piece of each word; 0 for padding."""
    words: Bool[Tensor, "S_rows W"]
    """True = a word."""
    forms: Int[Tensor, "S_rows S"]
    """The row of `characters` of the word at each position."""
    characters: Int[Tensor, "U C"]
    """The distinct words of the batch as characters; the first one has none, as the end of a sentence."""
    cases: Int[Tensor, "S_rows S"]
    """The letter case of the word at each position, below `NUM_CASES`."""
    marks: Int[Tensor, "S_rows S"]
    """The mark of the word at each position; 0 for none."""

    def __len__(self) -> int:
        return self.ids.shape[0]

    def part(self, rows: slice) -> WordSource:
        """Some of the rows, without columns that are all padding."""
        longest, most = int(self.mask[rows].sum(1).max()), int(self.words[rows].sum(1).max())
        return replace(
            self,
            starts=self.starts[rows, :most],
            words=self.words[rows, :most],
            **{name: getattr(self, name)[rows, :longest] for name in ("ids", "mask", "forms", "cases", "marks")},
        )

    def repeat(self, times: int) -> WordSource:
        """All rows, repeated `times` times in sequence."""
        names = ("ids", "mask", "starts", "words", "forms", "cases", "marks")
        return replace(self, **{name: getattr(self, name).repeat(times, 1) for name in names})

    def to(self, device: torch.device) -> WordSource:
        """The same source on another device."""
        return WordSource(*(getattr(self, name).to(device) for name in self.__dataclass_fields__))

    def key(self, row: int) -> Hashable:
        """The contents of a row, without padding."""
        mask, words = self.mask[row], self.words[row]
        inside = (self.ids[row][mask], self.starts[row][words], self.cases[row][mask], self.marks[row][mask])
        letters = (tuple(form[form != CHARACTER_PAD].tolist()) for form in self.characters[self.forms[row][mask]])
        return (*(tuple(values.tolist()) for values in inside), tuple(letters))

    def of_words(self, features: Float[Tensor, "S_rows S D"]) -> Float[Tensor, "S_rows W D"]:
        """The features of each word: those of its first piece."""
        index = self.starts[..., None].expand(-1, -1, features.shape[-1])
        return features.gather(1, index)
