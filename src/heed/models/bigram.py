"""A bigram counting model behind the same contract as every neural one.

The features of a counting model are its contexts: after a token has been consumed, the next token's
context is that token. The head looks counts up; it answers for single tokens without a vocabulary-wide row.
The model itself is `heed.statistical.bigram`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from heed.core.config import Config
from heed.core.errors import DataError
from heed.nn.contract import Smoothing, Source, Trace, Vocabularies
from heed.nn.noise import Noise
from heed.statistical.bigram import BigramCounts


class BigramConfig(Config):
    """A bigram has nothing to choose: its discount comes from the counts."""

    kind: Literal["bigram"] = "bigram"
    """Which model this is."""


@dataclass(frozen=True)
class BigramState:
    """How many rows there are; the context itself is in the features."""

    num_rows: int

    def select(self, rows: Int[Tensor, " R"]) -> BigramState:
        """The given rows in the given order."""
        return replace(self, num_rows=len(rows))

    def join(self, other: BigramState) -> BigramState:
        """These rows, then those of `other`."""
        return BigramState(self.num_rows + other.num_rows)

    def detach(self) -> BigramState:
        """Counts carry no graph."""
        return self


class CountingHead:
    """Looks the probability of a token after a context up in the counts."""

    def __init__(self, counts: BigramCounts) -> None:
        self.counts = counts

    def log_probs(
        self, features: Int[Tensor, "... 1"], subset: Int[Tensor, " N"] | None = None
    ) -> Float[Tensor, "... N"]:
        """Log-probabilities of the whole vocabulary, or of `subset` normalised over the subset."""
        rows = torch.from_numpy(self.counts.log_probs(features.reshape(-1).cpu().numpy()))
        if subset is not None:
            rows = rows[:, subset.cpu()].log_softmax(dim=-1)
        return rows.float().reshape(*features.shape[:-1], -1).to(features.device)

    def log_prob(self, features: Int[Tensor, "... 1"], ids: Int[Tensor, "..."]) -> Float[Tensor, "..."]:
        """Log-probability of one given token for each context, by binary search."""
        found = self.counts.log_prob(features.reshape(-1).cpu().numpy(), ids.reshape(-1).cpu().numpy())
        return torch.from_numpy(found).float().reshape(ids.shape).to(ids.device)

    def loss(
        self, features: Int[Tensor, "B T 1"], tgt_out: Int[Tensor, "B T"], mask: Bool[Tensor, "B T"],
        smoothing: Smoothing,
    ) -> tuple[Tensor, Tensor, int]:  # fmt: skip
        """Sum of -log p over the real tokens; counts are not smoothed towards the uniform distribution."""
        nll_sum = -self.log_prob(features, tgt_out)[mask].sum()
        return nll_sum, nll_sum, int(mask.sum())


class Bigram(nn.Module):
    """P(w_t | w_{t-1}), counted."""

    counted = True

    def __init__(self, config: BigramConfig, vocabularies: Vocabularies) -> None:
        super().__init__()
        self.config = config
        self.vocabularies = vocabularies
        self.head = CountingHead(self._estimated(()))

    def _estimated(self, sequences: Iterable[Sequence[int]]) -> BigramCounts:
        ids = self.vocabularies
        return BigramCounts.estimate(sequences, ids.tgt_size, ids.bos_id, ids.eos_id, ids.pad_id)

    def estimate(self, sequences: Iterable[Sequence[int]]) -> None:
        """Count the given sentences (ids without begin and end)."""
        self.head = CountingHead(self._estimated(sequences))

    def state_dict(self, *arguments: Any, **keywords: Any) -> dict[str, Tensor]:  # type: ignore[override]
        """The counts as tensors."""
        return {name: torch.from_numpy(np.ascontiguousarray(a)) for name, a in self.head.counts.arrays().items()}

    def load_state_dict(self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False) -> Any:
        """Counts as they were saved. Raises DataError for what is no counts, or those of another vocabulary."""
        arrays = {name: tensor.cpu().long().numpy() for name, tensor in state_dict.items()}
        counts = BigramCounts.from_arrays(arrays)
        if counts.vocab_size != self.vocabularies.tgt_size:
            here, there = self.vocabularies.tgt_size, counts.vocab_size
            raise DataError(f"the counts are of {there} tokens, the tokenizer has {here}: they do not belong together.")
        self.head = CountingHead(counts)

    def start(
        self, source: Source | None, rows_per_source: int = 1, reserve: int | None = None, noise: Noise | None = None
    ) -> BigramState:
        """As many rows as asked for; a source tells nothing to this model."""
        return BigramState(rows_per_source * (1 if source is None else len(source)))

    def advance(
        self, ids: Int[Tensor, "B T"], state: BigramState, trace: Trace | None = None
    ) -> tuple[Int[Tensor, "B T 1"], BigramState]:
        """The contexts of the next tokens: the given ones."""
        return ids[..., None], state
