"""Cross-attention of a decoder, and the coverage penalty that is computed from it."""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from heed.core.errors import UsageError
from heed.nn.contract import Trace

_SMALLEST = 1e-30
"""Attention that float32 rounds to zero still has a logarithm."""


def cross_attention(trace: Trace) -> Float[Tensor, "B T S"]:
    """The mean attention to the source over the heads and blocks of the decoder's second half.

    The lower blocks attend less to translations. Raises UsageError for a model without such attention.
    """
    per_block = [weights.mean(dim=1) for weights in attention_by_block(trace)]
    return torch.stack(per_block[len(per_block) // 2 :]).mean(dim=0)


def attention_by_block(trace: Trace) -> list[Float[Tensor, "B H T S"]]:
    """The attention to the source in each block of the decoder, from the lowest. Raises as `cross_attention`."""
    names = [name for name in trace.weights if name.endswith("cross")]
    if not names:
        raise UsageError(
            "this model has no attention to its source, which alignment, the coverage penalty and the replacement of "
            'unknown words need: leave out --alignment, coverage_penalty and unknown = "replace".'
        )
    return [torch.cat(trace.weights[name], dim=2).float() for name in names]


class Coverage:
    """Coverage penalty: cp(X; Y) = β Σ_i log min(Σ_j p_ij, 1) (Wu et al. 2016, equation 14).

    p_ij is the attention of the j-th target token to the i-th source token: a source token attended to less than once
    in total costs, more attention gains nothing. It is added to scores when hypotheses are ranked and never changes a
    log-probability.
    """

    def __init__(self, beta: float, trace: Trace, mask: Bool[Tensor, "N S"]) -> None:
        """`trace` is where the model records attention; `mask` is that of the batch's sources."""
        self.beta = beta
        self.trace = trace
        self._covered = self._before = (~mask).float()  # [R, S]; padding counts as covered

    def observe(self) -> None:
        """Add the attention of the latest step."""
        weights = cross_attention(self.trace)
        self.trace.weights.clear()
        rows_per_source = len(weights) // max(1, len(self._covered))  # at first there is one row per source
        self._before = self._covered.repeat_interleave(rows_per_source, dim=0) + weights[:, :-1].sum(dim=1)
        self._covered = self._before + weights[:, -1]

    def penalty(self, row: int, ended: bool) -> float:
        """cp of a row that ended with the latest step, or of the row before it."""
        covered = (self._covered if ended else self._before)[row]
        return self.beta * float(covered.clamp(min=_SMALLEST, max=1.0).log().sum())

    def select(self, rows: Int[Tensor, " N"]) -> None:
        self._covered = self._covered[rows]
