"""Word vectors: skip-gram and continuous bag of words with negative sampling, with n-grams of characters or without.

Skip-gram (Mikolov et al. 2013) predicts the words around a word from its vector, CBOW a word from the mean of those
around it. With `max_ngram`, a word's vector is the sum of its own row and those of its character n-grams, divided by
the root of their number: fastText (Bojanowski et al. 2017) up to the scale of the rows. Its program takes the mean and
gives each row the undivided gradient; both change a word's vector by the same step.
"""

from __future__ import annotations

from typing import Any, ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor, nn

from heed.data.word_windows import WindowOptions
from heed.models.model import Model, ModelConfig
from heed.nn.contract import Vocabularies


class WordVectorConfig(ModelConfig):
    """Settings of all kinds of word vectors."""

    d_model: int = Field(default=100, ge=1)
    """Features of a vector (D)."""
    window: int = Field(default=5, ge=1)
    """Maximum distance of words that occur together; it is drawn anew for each word, from 1 to this."""
    negatives: int = Field(default=5, ge=1)
    """Negatives per predicted word (k); the shift log k of a PMI."""
    subsample: float = Field(default=1e-3, ge=0, le=1)
    """Relative frequency t above which a share 1 - √(t / f) of a word's occurrences is left out (0: none)."""
    min_ngram: int = Field(default=3, ge=1)
    """Characters of the shortest n-grams; `<` and `>` mark the ends of a word."""
    max_ngram: int = Field(default=0, ge=0)
    """Characters of the longest n-grams (0: words only). With n-grams, unknown words have vectors too."""
    buckets: int = Field(default=200_000, ge=1)
    """Rows that the n-grams share, by their hashes; fastText has 2,000,000."""


class SkipGramConfig(WordVectorConfig):
    """Skip-gram with negative sampling."""

    kind: Literal["skip_gram"] = "skip_gram"
    """Kind of model: the key in `MODELS`."""

    def summary(self) -> str:
        return f"skip-gram vectors of {_described(self)}"


class CbowConfig(WordVectorConfig):
    """Continuous bag of words with negative sampling."""

    kind: Literal["cbow"] = "cbow"
    """Kind of model: the key in `MODELS`."""

    def summary(self) -> str:
        return f"continuous-bag-of-words vectors of {_described(self)}"


def _described(config: WordVectorConfig) -> str:
    ngrams = f", n-grams of {config.min_ngram} to {config.max_ngram} characters" if config.max_ngram else ""
    return f"{config.d_model} dimensions, window {config.window}, {config.negatives} negatives{ngrams}"


class WordVectorModel(Model):
    """A table of input rows, which words' vectors are sums of, and a table of output rows, one for each word.

    `inputs` is [R, D] and `outputs` [V, D]; the score of word w around word v is outputs[w] · vector(v).
    """

    from_context: ClassVar[bool] = False
    """Whether the word in the middle is predicted from its window."""
    inputs: Tensor
    outputs: Tensor

    def __init__(self, config: Any, vocabularies: Vocabularies) -> None:
        super().__init__()
        self.config: WordVectorConfig = config
        self.vocabularies = vocabularies

    @classmethod
    def windows(cls, config: WordVectorConfig) -> WindowOptions:
        """How its examples are drawn."""
        return WindowOptions(config.window, config.negatives, config.subsample, cls.from_context)


class SkipGram(WordVectorModel):
    """Predicts the words around a word from its vector; inputs start uniform in ±1 / 2D, outputs at 0."""

    Config: ClassVar[type[ModelConfig]] = SkipGramConfig
    papers = "skip-gram with negative sampling (Mikolov et al. 2013)"
    sparse_gradients = True

    def __init__(self, config: WordVectorConfig, vocabularies: Vocabularies) -> None:
        super().__init__(config, vocabularies)
        num_rows = vocabularies.tgt_size + (config.buckets if config.max_ngram else 0)
        self.inputs = nn.Parameter((torch.rand(num_rows, config.d_model) - 0.5) / config.d_model)
        self.outputs = nn.Parameter(torch.zeros(vocabularies.tgt_size, config.d_model))


class Cbow(SkipGram):
    """Predicts a word from the mean of the vectors around it."""

    Config = CbowConfig
    papers = "continuous bag of words with negative sampling (Mikolov et al. 2013)"
    from_context = True
