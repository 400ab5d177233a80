"""A model from outside heed: the sum of learned vectors of all tokens, a reader without positions."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor, nn

from heed.models.model import Model, ModelConfig
from heed.nn.contract import Source, Vocabularies


class SumOfTokensConfig(ModelConfig):
    """A sum of vectors, one of each token, and a linear layer."""

    kind: Literal["sum_of_tokens"] = "sum_of_tokens"
    d_model: int = 16
    """Features of a token."""


class SumOfTokens(Model):
    """Logits of a layer of rectified units over Σ_t E[x_t]."""

    Config = SumOfTokensConfig

    def __init__(self, config: SumOfTokensConfig, vocabularies: Vocabularies) -> None:
        super().__init__()
        self.embedding = nn.Parameter(0.1 * torch.randn(vocabularies.src_size, config.d_model))
        self.hidden = nn.Linear(config.d_model, 64)
        self.output = nn.Linear(64, vocabularies.tgt_size)

    def read(self, source: Source) -> Tensor:
        """Logits of the labels for each row of the source."""
        vectors = self.embedding[source.ids] * source.mask[..., None]
        logits: Tensor = self.output(self.hidden(vectors.sum(1)).relu())
        return logits
