"""Which tokens may come next? Small rules over log-probabilities, each a few lines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import torch
from jaxtyping import Float
from torch import Tensor


class Filter(Protocol):
    """Changes log-probabilities before a token is chosen; minus infinity forbids a token."""

    def __call__(self, log_probs: Float[Tensor, "R V"], num_tokens: int) -> Float[Tensor, "R V"]:
        """The log-probabilities after the rule; `num_tokens` have been generated so far. May work in place."""
        ...


class Forbid:
    """Some tokens are never generated: padding, begin of sentence, unknown."""

    def __init__(self, ids: Sequence[int]) -> None:
        self.ids = torch.tensor(sorted(ids), dtype=torch.long)

    def __call__(self, log_probs: Float[Tensor, "R V"], num_tokens: int) -> Float[Tensor, "R V"]:
        """Minus infinity for each of them."""
        return log_probs.index_fill_(1, self.ids.to(log_probs.device), float("-inf"))


class MinTokens:
    """No end of sentence before so many tokens."""

    def __init__(self, min_tokens: int, eos_id: int) -> None:
        self.min_tokens = min_tokens
        self.eos_id = eos_id

    def __call__(self, log_probs: Float[Tensor, "R V"], num_tokens: int) -> Float[Tensor, "R V"]:
        """Minus infinity for the end of sentence while the output is too short."""
        if num_tokens < self.min_tokens:
            log_probs[:, self.eos_id] = float("-inf")
        return log_probs


FILTERS = {"forbid": Forbid, "min_tokens": MinTokens}
