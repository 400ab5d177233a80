"""Pooling heads: from the features of all positions of a text to the outputs of a task.

The features are joined into one vector: their mean, their maximum (Kim 2014), their mean weighted by attention
α_i = softmax(u · tanh(W h_i + b)) (Yang et al. 2016, equations 5 to 7), the first one ("cls", Devlin et al. 2019), or
the last one, the maximum and the mean ("concat", Howard & Ruder 2018, section 3.3). A linear layer follows, after
dropout.
"""

from __future__ import annotations

from typing import Literal

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from heed.nn.contract import Trace
from heed.nn.dropout_keys import DropoutKeys, dropout

Pooling = Literal["mean", "max", "attention", "cls", "concat"]
_SITE = 700
"""Site of the dropout, apart from those of readers."""


def attention_weights(
    hidden: nn.Module, query: Float[Tensor, " D"], features: Float[Tensor, "B S D"], mask: Bool[Tensor, "B S"]
) -> Float[Tensor, "B S"]:
    """The share of each position, softmax(query · tanh(hidden(h_i))); 0 for padding (Yang et al. 2016)."""
    scores: Tensor = hidden(features).tanh() @ query
    return scores.masked_fill(~mask, -torch.inf).softmax(1)


class PoolingHead(nn.Module):
    """Outputs [B, K] of pooled features."""

    def __init__(self, num_features: int, num_outputs: int, pooling: Pooling, dropout: float) -> None:
        super().__init__()
        self.pooling, self.dropout = pooling, dropout
        if pooling == "attention":
            self.hidden = nn.Linear(num_features, num_features)
            self.query = nn.Parameter(torch.randn(num_features) / num_features**0.5)
        self.output = nn.Linear(3 * num_features if pooling == "concat" else num_features, num_outputs)

    def forward(
        self, features: Float[Tensor, "B S D"], mask: Bool[Tensor, "B S"], dropout_keys: DropoutKeys | None = None,
        trace: Trace | None = None,
    ) -> Float[Tensor, "B K"]:  # fmt: skip
        """The outputs of each text."""
        pooled = dropout(self.pool(features, mask, trace)[:, None], self.dropout, dropout_keys, _SITE)[:, 0]
        outputs: Tensor = self.output(pooled)
        return outputs

    def pool(
        self, features: Float[Tensor, "B S D"], mask: Bool[Tensor, "B S"], trace: Trace | None = None
    ) -> Float[Tensor, "B P"]:
        """One vector for each text, in which padding has no share."""
        if self.pooling == "cls":
            return features[:, 0]
        if self.pooling == "max":
            return _maximum(features, mask)
        if self.pooling == "attention":
            weights = attention_weights(self.hidden, self.query, features, mask)
        else:
            weights = (mask / mask.sum(1, keepdim=True)).to(features.dtype)
        if trace is not None:
            trace.record("pooling", weights[:, None, None])
        mean: Tensor = (weights[..., None] * features.masked_fill(~mask[..., None], 0)).sum(1)
        if self.pooling != "concat":
            return mean
        last = features[torch.arange(len(mask), device=mask.device), mask.sum(1) - 1]
        return torch.cat((last, _maximum(features, mask), mean), 1)


def _maximum(features: Float[Tensor, "B S D"], mask: Bool[Tensor, "B S"]) -> Float[Tensor, "B D"]:
    """The largest value of each feature."""
    return features.masked_fill(~mask[..., None], -torch.inf).amax(1)
