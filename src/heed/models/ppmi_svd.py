"""Count-based word vectors: a truncated singular value decomposition of positive pointwise mutual information.

M = max(0, PMI - log k) ≈ U Σ Vᵀ; words have the vectors U Σ^p, contexts V Σ^(1-p) (Levy & Goldberg 2014; Levy, Goldberg
& Dagan 2015, where p = 0.5 and p = 0 are better than 1). `heed.statistical.cooccurrence` has the counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

import numpy as np
import torch
from pydantic import Field
from torch import Tensor

from heed.core.errors import DataError
from heed.models.word_vectors import WordVectorConfig, WordVectorModel
from heed.nn.contract import Vocabularies
from heed.statistical.cooccurrence import Cooccurrence

_OVERSAMPLING, _ITERATIONS = 20, 5
"""Further directions and power iterations of the randomised decomposition (Halko, Martinsson & Tropp 2011)."""


class PpmiSvdConfig(WordVectorConfig):
    """Counts with PPMI and SVD."""

    kind: Literal["ppmi_svd"] = "ppmi_svd"
    """Kind of model: the key in `MODELS`."""
    negatives: int = Field(default=1, ge=1)
    """k: log k is subtracted from the PMI."""
    subsample: float = Field(default=0.0, ge=0, le=1)
    """Relative frequency t above which occurrences of a word count only for the share √(t / f) (0: all count)."""
    max_ngram: Literal[0] = 0
    """Counted vectors have no n-grams."""
    smoothing: float = Field(default=0.75, gt=0, le=1)
    """Exponent of the frequencies of contexts."""
    power: float = Field(default=0.5, ge=0, le=1)
    """Exponent p of the singular values in the words' vectors."""

    def summary(self) -> str:
        return (
            f"word vectors of {self.d_model} dimensions by singular value decomposition of PPMI, window {self.window}"
        )


class PpmiSvd(WordVectorModel):
    """Word vectors that are estimated from counts."""

    Config = PpmiSvdConfig
    count_based = True
    papers = "PPMI and SVD (Levy & Goldberg 2014)"

    def __init__(self, config: PpmiSvdConfig, vocabularies: Vocabularies) -> None:
        super().__init__(config, vocabularies)
        self.options = config
        self._hold(*(torch.zeros(vocabularies.tgt_size, config.d_model) for _ in range(2)))

    def estimate(self, sequences: Iterable[Sequence[int]]) -> None:
        """Estimate the vectors from the ids of sentences."""
        options, num_words = self.options, self.vocabularies.tgt_size
        sentences = [np.asarray(sequence, dtype=np.int64) for sequence in sequences]
        counts = np.bincount(np.concatenate([*sentences, np.empty(0, np.int64)]), minlength=num_words)
        share = np.sqrt(options.subsample / np.maximum(counts / max(1, counts.sum()), 1e-300)).clip(max=1)
        pairs = Cooccurrence.of(sentences, num_words, options.window, share if options.subsample else None)
        matrix = pairs.positive_pmi(options.smoothing, options.negatives)
        if len(matrix.counts) == 0:
            raise DataError("the text has no words that occur together more often than by chance: give more text.")
        left, values, right = _decomposed(matrix, options.d_model)
        self._hold(left * values**options.power, right * values ** (1 - options.power))

    def _hold(self, inputs: Tensor, outputs: Tensor) -> None:
        self.inputs, self.outputs = inputs, outputs

    def state_dict(self, *arguments: Any, **keywords: Any) -> dict[str, Tensor]:  # type: ignore[override]
        """The two tables."""
        return {"inputs": self.inputs.contiguous(), "outputs": self.outputs.contiguous()}

    def load_state_dict(self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False) -> Any:
        """Restore what `state_dict` returned. Raises DataError for tables of other shapes."""
        shape = (self.vocabularies.tgt_size, self.options.d_model)
        if {name: tuple(tensor.shape) for name, tensor in state_dict.items()} != dict.fromkeys(
            ("inputs", "outputs"), shape
        ):
            raise DataError(f"the word vectors do not have the shape {list(shape)} of the recipe's model.")
        self._hold(state_dict["inputs"].float(), state_dict["outputs"].float())


def _decomposed(matrix: Cooccurrence, rank: int) -> tuple[Tensor, Tensor, Tensor]:
    """The largest singular values [D] and their vectors [V, D], [V, D]; zeros beyond the size of the matrix."""
    size = matrix.num_words
    places = torch.from_numpy(np.stack([matrix.words, matrix.contexts]))
    values = torch.from_numpy(matrix.counts).float()
    sparse = torch.sparse_coo_tensor(places, values, (size, size), is_coalesced=True, check_invariants=False)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        left, singular, right = torch.svd_lowrank(sparse, min(size, rank + _OVERSAMPLING), niter=_ITERATIONS)
    signs = torch.sign(left.gather(0, left.abs().argmax(0, keepdim=True)))  # the largest entry is positive
    padding = (0, max(0, rank - len(singular)))
    tables = [torch.nn.functional.pad((table * signs)[:, :rank], padding) for table in (left, right)]
    return tables[0], torch.nn.functional.pad(singular[:rank], padding), tables[1]
