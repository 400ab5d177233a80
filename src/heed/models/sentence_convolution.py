"""Encoders of the recurrent continuous translation models (Kalchbrenner & Blunsom 2013).

A convolution of this paper has a kernel of i columns for each feature, and joins i neighbouring columns of a sentence,
each of which represents first a word, and then more: E_{i+1} = tanh(E_i * K^{i+1}), (E * K)_j = Σ_a K_a ⊙ E_{j+a}.

    CSM, convolutional sentence model: kernels K^2, K^3, ... of 2, 3, ... columns until fewer columns than the next one
        has remain, and a top kernel L^c that joins these c columns: one vector for the sentence (model I).
    CGM, n-gram model: the CSM up to the columns of n-grams. A matrix T turns n-grams of the source into those of the
        target, and the inverse of the CGM unfolds these again: one column for each word of the target (model II).

Differs from the paper: tanh; kernels of a CSM for long sentences are repeated from the last one on; a sentence that is
shorter than an n-gram is filled with zeros. Model II conditions on the number m of target words, with a Poisson
distribution of m given the source's length k. An autoregressive model does not know m: here m = k, later positions read
the last column, and the end of the sentence is a word as any other.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from pydantic import Field
from torch import Tensor, nn

from heed.models.model import ModelConfig, ReaderModel, ReaderToEnd
from heed.nn.contract import Trace, Vocabularies
from heed.nn.dropout_keys import DropoutKeys
from heed.nn.embeddings import TokenEmbedding, embedding_weight
from heed.nn.recurrent import States

NGRAM_KERNELS = (2, 3)
"""Kernels up to the columns of 4-grams, the order in the paper."""


class SentenceConvolutionConfig(ModelConfig):
    """Sizes of a convolutional sentence model."""

    kind: Literal["sentence_convolution"] = "sentence_convolution"
    """Kind of model: the key in `MODELS`."""
    d_model: int = Field(default=256, ge=1)
    """Features of a word, of a column and of the sentence."""
    longest_kernel: int = Field(default=9, ge=4)
    """Columns of the largest kernel: sentences of r (r + 1) / 2 words are joined by kernels of 2 to r columns."""
    dropout: float = Field(default=0.2, ge=0, lt=1)
    """Dropout of the vectors of words (rounded to 1/256)."""

    def summary(self) -> str:
        return f"a convolutional sentence model of {self.d_model} features"


class NgramConvolutionConfig(ModelConfig):
    """Sizes of a convolutional n-gram model and its inverse."""

    kind: Literal["ngram_convolution"] = "ngram_convolution"
    """Kind of model: the key in `MODELS`."""
    d_model: int = Field(default=256, ge=1)
    """Features of a word and of a column."""
    dropout: float = Field(default=0.2, ge=0, lt=1)
    """Dropout of the vectors of words (rounded to 1/256)."""

    def summary(self) -> str:
        return f"a convolutional 4-gram model of {self.d_model} features and its inverse"


def kernel(num_columns: int, size: int) -> Float[Tensor, "I D"]:
    """Initial weights of a convolution of i columns, which keep the variance."""
    return _initialised(torch.empty(num_columns, size))


def _initialised(weights: Float[Tensor, "I D"]) -> Float[Tensor, "I D"]:
    bound = math.sqrt(3 / len(weights))
    return weights.uniform_(-bound, bound)


def kernels(all_columns: Sequence[int], size: int) -> Float[Tensor, "K D"]:
    """The kernels of several convolutions, one after another."""
    weights, begin = torch.empty(sum(all_columns), size), 0
    for num_columns in all_columns:
        _initialised(weights[begin : begin + num_columns])
        begin += num_columns
    return weights


def convolved(columns: Float[Tensor, "B S D"], weights: Float[Tensor, "I D"]) -> Float[Tensor, "B S D"]:
    """tanh(Σ_a K_a ⊙ E_{j+a}) at every position j; columns beyond the text are zeros."""
    size = columns.shape[1]
    padded = F.pad(columns, (0, 0, 0, len(weights) - 1))
    return torch.tanh(sum((w * padded[:, a : a + size] for a, w in enumerate(weights)), torch.zeros_like(columns)))


def unfolded(columns: Float[Tensor, "B S D"], weights: Float[Tensor, "I D"]) -> Float[Tensor, "B S D"]:
    """The transposed convolution, tanh(Σ_a K_a ⊙ E_{j-a})."""
    size, reach = columns.shape[1], len(weights) - 1
    padded = F.pad(columns, (0, 0, reach, 0))
    shifted = (w * padded[:, reach - a : reach - a + size] for a, w in enumerate(weights))
    return torch.tanh(sum(shifted, torch.zeros_like(columns)))


def first_columns(columns: Float[Tensor, "B S D"], number: Int[Tensor, " B"]) -> Float[Tensor, "B S D"]:
    """The first columns of each row, then zeros."""
    real = torch.arange(columns.shape[1], device=columns.device) < number[:, None]
    return columns.masked_fill(~real[..., None], 0.0)


class _Convolution(ReaderModel):
    """What both encoders share: the vectors of words, and the columns of 4-grams."""

    vectors_name = "embedding.weight"

    def __init__(self, config: Any, vocabularies: Vocabularies) -> None:
        super().__init__()
        self.config = config
        self.num_features = config.d_model
        weight = embedding_weight(vocabularies.src_size, config.d_model)
        self.embedding = TokenEmbedding(weight, config.d_model, "none", config.dropout)

    def token_vectors(self) -> nn.Parameter:
        return self.embedding.weight

    def _words(self, source: Any, dropout_keys: DropoutKeys | None) -> Float[Tensor, "B S D"]:
        vectors: Tensor = self.embedding(source.ids, dropout_keys)
        return first_columns(vectors, source.mask.sum(1))


class SentenceConvolution(_Convolution, ReaderToEnd):
    """CSM: the features are the columns of 4-grams, and the last state is the vector of the sentence."""

    Config = SentenceConvolutionConfig
    papers = "the convolutional sentence model (Kalchbrenner & Blunsom 2013)"

    def __init__(self, config: SentenceConvolutionConfig, vocabularies: Vocabularies) -> None:
        super().__init__(config, vocabularies)
        self.sizes = list(range(2, config.longest_kernel + 1))
        self.kernels = nn.Parameter(kernels(self.sizes, config.d_model))
        longest = config.longest_kernel - 1
        self.tops = nn.Parameter(kernels([longest] * (longest - 1), config.d_model).view(-1, longest, config.d_model))
        self.last_sizes = ((config.d_model,),)

    def read_to_end(
        self, source: Any, dropout_keys: DropoutKeys | None = None
    ) -> tuple[Float[Tensor, "B S D"], tuple[States, ...]]:
        columns, number = self._words(source, dropout_keys), source.mask.sum(1)
        sentence, ngrams, most = columns[:, 0], columns, columns.shape[1]
        kernels, level = torch.split(self.kernels, self.sizes), 0
        while True:
            weights = kernels[min(level, len(kernels) - 1)]
            ends = number < len(weights)
            sentence = torch.where((ends & (number > 0))[:, None], self._topped(columns, number), sentence)
            number = number.masked_fill(ends, 0) - (len(weights) - 1) * ~ends
            most = 0 if most < len(weights) else most - len(weights) + 1  # that of a row without padding
            if level >= len(NGRAM_KERNELS) and not most:
                return ngrams, ((sentence,),)
            columns = convolved(columns, weights)
            level += 1
            if level == len(NGRAM_KERNELS):
                ngrams = columns
            columns = first_columns(columns, number)

    def _topped(self, columns: Float[Tensor, "B S D"], number: Int[Tensor, " B"]) -> Float[Tensor, "B D"]:
        """The columns of each row, joined by the top kernel of their number; a single column remains as it is."""
        most = min(columns.shape[1], self.tops.shape[1])
        weights = self.tops[(number - 2).clamp(0, len(self.tops) - 1)]  # [B, C, D]; columns that are missing are zeros
        joined = torch.tanh((columns[:, :most] * weights[:, :most]).sum(1))
        return torch.where((number == 1)[:, None], columns[:, 0], joined)


class NgramConvolution(_Convolution):
    """CGM and its inverse: the features are the columns for the words of the target."""

    Config = NgramConvolutionConfig
    papers = "the convolutional n-gram model (Kalchbrenner & Blunsom 2013)"

    def __init__(self, config: NgramConvolutionConfig, vocabularies: Vocabularies) -> None:
        super().__init__(config, vocabularies)
        self.kernels = nn.ParameterList(nn.Parameter(kernel(size, config.d_model)) for size in NGRAM_KERNELS)
        self.transform = nn.Linear(config.d_model, config.d_model)
        self.inverse = nn.ParameterList(nn.Parameter(kernel(size, config.d_model)) for size in NGRAM_KERNELS[::-1])

    def read(
        self, source: Any, dropout_keys: DropoutKeys | None = None, trace: Trace | None = None
    ) -> Float[Tensor, "B S D"]:
        """The column of each position of a target that is as long as the source."""
        columns, number = self._words(source, dropout_keys), source.mask.sum(1)
        for weights in self.kernels:
            number = (number - len(weights) + 1).clamp(min=1)
            columns = first_columns(convolved(columns, weights), number)
        columns = first_columns(torch.tanh(self.transform(columns)), number)
        for weights in self.inverse:
            number = number + len(weights) - 1
            columns = first_columns(unfolded(columns, weights), number)
        return columns
