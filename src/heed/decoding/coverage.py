"""Has every source word been attended to? The coverage penalty, and the attention that it is made from.

cp(X; Y) = β Σ_i log min(Σ_j p_ij, 1), with p_ij the attention of the j-th target token to the i-th source token (Wu
et al. 2016, equation 14): what was looked at less than once in all costs, what was looked at more often gains nothing.
It ranks hypotheses beside the length penalty and never changes a log-probability.
"""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from heed.core.errors import UsageError
from heed.nn.contract import Trace

_LEAST = 1e-30
"""Attention that float32 rounds to nothing still has a logarithm."""


def cross_attention(trace: Trace) -> Float[Tensor, "B T S"]:
    """The mean attention to the source over the heads and blocks of the decoder's second half.

    The lower blocks attend less to translations. Raises UsageError for a model without such attention.
    """
    names = [name for name in trace.weights if name.endswith("cross")]  # from the lowest block to the highest
    if not names:
        raise UsageError(
            "this model has no attention to its source, so there is neither alignment nor a coverage penalty: "
            "leave out --alignment and coverage_penalty."
        )
    per_block = [torch.cat(trace.weights[name], dim=2).float().mean(dim=1) for name in names]
    return torch.stack(per_block[len(per_block) // 2 :]).mean(dim=0)


class Coverage:
    """How much attention each source token has had from each row, and what the lack of it costs."""

    def __init__(self, beta: float, trace: Trace, mask: Bool[Tensor, "N S"]) -> None:
        """`trace` is where the model records; `mask` is that of the batch's sources."""
        self.beta = beta
        self.trace = trace
        self._covered = self._before = (~mask).float()  # [R, S]; padding counts as covered

    def observe(self) -> None:
        """Take in the attention of the latest step."""
        weights = cross_attention(self.trace)
        self.trace.weights.clear()
        rows_per_source = len(weights) // max(1, len(self._covered))  # the first time there is a row for each source
        self._before = self._covered.repeat_interleave(rows_per_source, dim=0) + weights[:, :-1].sum(dim=1)
        self._covered = self._before + weights[:, -1]

    def penalty(self, row: int, ended: bool) -> float:
        """cp of a row that ends with this step, or of what it was before."""
        covered = (self._covered if ended else self._before)[row]
        return self.beta * float(covered.clamp(min=_LEAST, max=1.0).log().sum())

    def select(self, rows: Int[Tensor, " N"]) -> None:
        """Go on with these rows."""
        self._covered = self._covered[rows]
