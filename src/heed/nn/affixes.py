"""Vectors of the prefixes and suffixes of words, spelling features of taggers (Huang et al. 2015, "Bidirectional
LSTM-CRF models for sequence tagging", section 4.2.1).

An affix takes a row of a table by a hash of its characters (Weinberger et al. 2009, "Feature hashing for large scale
multitask learning"), so that no list of affixes is kept. All rows begin as zero: an affix that training has not seen
adds nothing, unless it shares a row with one that it has.
"""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from heed.nn.word_source import CHARACTER_PAD

AFFIXES = (2, 3, 4)
"""Lengths of the prefixes and suffixes."""
AFFIX_BITS = 14
"""Logarithm of the number of rows for the prefixes or suffixes of one length."""
_MULTIPLIER = -7046029254386353131  # SplitMix64's odd increment, as a signed integer


def rows_of(affixes: Int[Tensor, "U N"]) -> Int[Tensor, " U"]:
    """The row of each affix: the high bits of a hash modulo 2^64."""
    value = torch.zeros_like(affixes[:, 0])
    for character in affixes.unbind(1):
        value = (value + character + 1) * _MULTIPLIER
        value = value ^ ((value >> 32) & 0xFFFFFFFF)
    return (value * _MULTIPLIER >> (64 - AFFIX_BITS)) & ((1 << AFFIX_BITS) - 1)


class AffixVectors(nn.Module):
    """Vectors of the prefixes and suffixes of two to four characters of words; a shorter word is its own affix."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(2 * len(AFFIXES), 1 << AFFIX_BITS, size))
        self.num_features = 2 * len(AFFIXES) * size

    def forward(self, characters: Int[Tensor, "U C"]) -> Float[Tensor, "U F"]:
        """The vectors of each word, in sequence; 0 for the end of a sentence, which has no characters."""
        mask = characters != CHARACTER_PAD
        vectors = [
            nn.functional.embedding(rows_of(affix), table)
            for affix, table in zip(_affixes(characters, mask), self.weight, strict=True)
        ]
        return torch.cat(vectors, dim=-1) * mask[:, :1]


def _affixes(characters: Int[Tensor, "U C"], mask: Bool[Tensor, "U C"]) -> list[Int[Tensor, "U N"]]:
    """The prefixes and suffixes of each length; padding is after a prefix, and before a suffix."""
    longest = max(AFFIXES)
    padded = nn.functional.pad(characters, (longest, longest), value=CHARACTER_PAD)
    ends = mask.sum(1, keepdim=True) + longest
    last = padded.gather(1, ends - longest + torch.arange(longest, device=ends.device))
    prefixes = [padded[:, longest : longest + length] for length in AFFIXES]
    return [*prefixes, *(last[:, longest - length :] for length in AFFIXES)]
