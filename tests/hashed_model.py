"""Hashed model: a generator without a network, for tests of search.

Every distribution is random, but a function of the source and the tokens so far. So outputs are varied, and numbers do
not depend on batches.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from random_models import PAD
from torch import Tensor

from heed.nn.contract import Smoothing, Source, Trace
from heed.nn.dropout_keys import DropoutKeys


@dataclass(frozen=True)
class Prefixes:
    """The source and the tokens of each row."""

    rows: tuple[tuple[int, ...], ...]

    def select(self, rows: Tensor) -> Prefixes:
        """See `heed.nn.contract.State`."""
        return Prefixes(tuple(self.rows[row] for row in rows.tolist()))

    def join(self, other: Prefixes) -> Prefixes:
        return Prefixes(self.rows + other.rows)

    def detach(self) -> Prefixes:
        return self


class PlainHead:
    """Head for features that are log-probabilities."""

    def log_probs(self, features: Tensor, subset: Tensor | None = None) -> Tensor:
        """A copy, because logit rules write into it."""
        return features.clone() if subset is None else features[..., subset].log_softmax(-1)

    def log_prob(self, features: Tensor, ids: Tensor) -> Tensor:
        return features.gather(-1, ids[..., None]).squeeze(-1)

    def loss(self, features: Tensor, tgt_out: Tensor, mask: Tensor, smoothing: Smoothing) -> tuple[Tensor, Tensor]:
        raise NotImplementedError


class HashedModel:
    """P(w_t | w_<t, source) from a hash of w_<t and source; `advanced` records the shapes of calls."""

    count_based = False
    head = PlainHead()

    def __init__(self, vocab_size: int, seed: int = 0, sharpness: float = 1.5) -> None:
        self.vocab_size = vocab_size
        self.seed = seed
        self.sharpness = sharpness
        self.advanced: list[tuple[int, int]] = []

    def start(
        self,
        source: Source | None,
        rows_per_source: int = 1,
        reserve: int | None = None,
        dropout_keys: DropoutKeys | None = None,
    ) -> Prefixes:
        """Rows that begin with the ids of their sources."""
        if source is None:
            return Prefixes(((),) * rows_per_source)
        rows = [tuple(id for id in ids if id != PAD) for ids in source.ids.tolist()]
        return Prefixes(tuple(row for row in rows for _ in range(rows_per_source)))

    def advance(self, ids: Tensor, state: Prefixes, trace: Trace | None = None) -> tuple[Tensor, Prefixes]:
        """Log-probabilities after each token."""
        self.advanced.append(tuple(ids.shape))
        rows, features = [], []
        for seen, new in zip(state.rows, ids.tolist(), strict=True):
            steps = []
            for id in new:
                seen = (*seen, -1 - id)  # negative, to distinguish target tokens from source tokens
                steps.append(self.distribution(seen))
            rows.append(seen)
            features.append(torch.stack(steps))
        return torch.stack(features), Prefixes(tuple(rows))

    def distribution(self, seen: tuple[int, ...]) -> Tensor:
        """log P of every next token after a source and the tokens so far."""
        generator = torch.Generator().manual_seed(hash((self.seed, seen)) & ((1 << 62) - 1))
        return (self.sharpness * torch.randn(self.vocab_size, generator=generator)).log_softmax(-1)
