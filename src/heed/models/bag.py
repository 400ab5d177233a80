"""Bag of vectors of tokens and their n-grams (Joulin et al. 2017, "Bag of tricks for efficient text classification").

The features of a position are the sum of the vectors of its token and of the n-grams that end there, which share
`num_buckets` vectors by a hash (fastText). A head that takes their mean makes it fastText's classifier, except that the
sum is divided by the number of tokens; fastText divides by that of tokens and n-grams.
"""

from __future__ import annotations

from typing import Literal

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from pydantic import Field
from torch import Tensor, nn

from heed.models.model import ModelConfig, ReaderModel
from heed.nn.contract import TokenSource, Trace, Vocabularies
from heed.nn.dropout_keys import DropoutKeys, dropout

_PRIME = 116049371  # fastText's multiplier of hashes of word n-grams


class BagConfig(ModelConfig):
    """Sum of vectors of tokens and n-grams (fastText)."""

    kind: Literal["bag"] = "bag"
    """Kind of model: the key in `MODELS`."""
    d_model: int = Field(default=128, ge=1)
    """Features of a vector."""
    order: int = Field(default=2, ge=1)
    """Tokens of the longest n-gram (1: only tokens)."""
    num_buckets: int = Field(default=65536, ge=1)
    """Vectors that n-grams share."""
    dropout: float = Field(default=0.0, ge=0, lt=1)
    """Dropout of the features."""

    def summary(self) -> str:
        return f"a bag of vectors of n-grams of 1 to {self.order} tokens"


class Bag(ReaderModel):
    """Features E[x_i] + Σ_n N[hash(x_{i-n+1:i})]."""

    Config = BagConfig
    papers = "the bag of n-grams (Joulin et al. 2017)"

    def __init__(self, config: BagConfig, vocabularies: Vocabularies) -> None:
        super().__init__()
        self.config = config
        self.num_features = config.d_model
        scale = 1 / config.d_model
        self.embedding = nn.Parameter(torch.empty(vocabularies.src_size, config.d_model).uniform_(-scale, scale))
        if config.order > 1:
            self.ngrams = nn.Parameter(torch.zeros(config.num_buckets, config.d_model))

    def read(
        self, source: TokenSource, dropout_keys: DropoutKeys | None = None, trace: Trace | None = None
    ) -> Float[Tensor, "B S D"]:
        """Features of each token."""
        features = F.embedding(source.ids, self.embedding)
        rolling = source.ids
        for length in range(2, self.config.order + 1):
            rolling = rolling[:, :-1] * _PRIME + source.ids[:, length - 1 :]
            if rolling.shape[1]:
                vectors = F.embedding(self._bucket(rolling), self.ngrams)
                features = features + F.pad(vectors, (0, 0, length - 1, 0))
        return dropout(features, self.config.dropout, dropout_keys, 0)

    def _bucket(self, hashes: Int[Tensor, "B T"]) -> Int[Tensor, "B T"]:
        return (hashes & 0x7FFFFFFFFFFFFFFF) % self.config.num_buckets
