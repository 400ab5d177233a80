"""Features of words from their characters: a bidirectional LSTM (Lample et al. 2016, section 4.1) or a convolution with
the maximum over time (Ma & Hovy 2016, section 2.1).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from heed.nn.embeddings import uniform_weight
from heed.nn.recurrent import Bidirectional, LSTMCell
from heed.nn.word_source import CHARACTER_PAD


def vectors(num_rows: int, size: int) -> nn.Parameter:
    """Vectors of words or characters: uniform in ± √(3 / size), with variance 1 / size (Ma & Hovy, section 3.2)."""
    return uniform_weight(num_rows, size, math.sqrt(3.0 / size))


class CharacterFeatures(nn.Module, ABC):
    """Features [U, F] of words [U, C]; words without characters have the features 0."""

    def __init__(self, num_characters: int, size: int, num_features: int) -> None:
        super().__init__()
        self.weight = vectors(num_characters, size)
        self.num_features = num_features

    def forward(self, characters: Int[Tensor, "U C"]) -> Float[Tensor, "U F"]:
        """Padding does not change the features of a word."""
        mask = characters != CHARACTER_PAD
        x = nn.functional.embedding(characters, self.weight) * mask[..., None]
        return self.read(x, mask) * mask[:, :1]

    @abstractmethod
    def read(self, x: Float[Tensor, "U C E"], mask: Bool[Tensor, "U C"]) -> Float[Tensor, "U F"]:
        """The features of words from the vectors of their characters, which are 0 in the padding."""


class CharacterLstm(CharacterFeatures):
    """The last states of both directions, F / 2 each."""

    def __init__(self, num_characters: int, size: int, num_features: int) -> None:
        super().__init__(num_characters, size, num_features)
        self.lstm = Bidirectional(LSTMCell, size, num_features // 2)

    def read(self, x: Float[Tensor, "U C E"], mask: Bool[Tensor, "U C"]) -> Float[Tensor, "U F"]:
        outputs, right_to_left = self.lstm(x, mask)
        last = (mask.sum(1) - 1).clamp(min=0)[:, None, None]
        left_to_right = outputs.take_along_dim(last, dim=1)[:, 0, : right_to_left.shape[-1]]
        return torch.cat((left_to_right, right_to_left), dim=-1)


class CharacterCnn(CharacterFeatures):
    """The maximum of F filters over all windows of three characters; beyond the ends of a word, characters are 0."""

    window = 3

    def __init__(self, num_characters: int, size: int, num_features: int) -> None:
        super().__init__(num_characters, size, num_features)
        self.filters = nn.Linear(self.window * size, num_features)

    def read(self, x: Float[Tensor, "U C E"], mask: Bool[Tensor, "U C"]) -> Float[Tensor, "U F"]:
        padded = nn.functional.pad(x, (0, 0, 1, 1))
        windows = torch.cat([padded[:, at : at + x.shape[1]] for at in range(self.window)], dim=-1)
        scores = self.filters(windows).masked_fill(~mask[..., None], -torch.inf)
        highest = scores.amax(1)
        return torch.where(mask[:, :1], highest, 0.0)


CHARACTERS: dict[str, type[CharacterFeatures]] = {"lstm": CharacterLstm, "cnn": CharacterCnn}
