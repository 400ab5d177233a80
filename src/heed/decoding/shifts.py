"""Which tokens are made likelier or less likely than the model finds them? Filters that shift and do not forbid.

What they leave is no distribution any more: it is what is chosen from, and what the scores of such a search count.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from heed.decoding.rows import Rows


class Bias:
    """Added to the log-probabilities of certain tokens."""

    def __init__(self, bias: Sequence[tuple[int, float]]) -> None:
        """(token, what is added)."""
        self.bias = bias

    def __call__(self, log_probs: Float[Tensor, "R V"], rows: Rows) -> Float[Tensor, "R V"]:
        """The sum."""
        ids = torch.tensor([token for token, _ in self.bias], dtype=torch.long, device=log_probs.device)
        values = torch.tensor([value for _, value in self.bias], dtype=log_probs.dtype, device=log_probs.device)
        log_probs[:, ids] += values
        return log_probs


class SaidBefore:
    """log p(w) - c(w) · frequency - [c(w) > 0] · presence, where the output has w c(w) times so far.

    As OpenAI's API defines its two penalties.
    """

    def __init__(self, presence: float, frequency: float) -> None:
        self.presence = presence
        self.frequency = frequency

    def __call__(self, log_probs: Float[Tensor, "R V"], rows: Rows) -> Float[Tensor, "R V"]:
        """The log-probabilities less both penalties."""
        tokens = rows.row_tokens().to(log_probs.device)
        counts = torch.zeros_like(log_probs).scatter_add_(1, tokens, torch.ones_like(tokens, dtype=log_probs.dtype))
        return log_probs - counts * self.frequency - (counts > 0) * self.presence
