"""Head of a masked language model (Devlin et al. 2019): a transformation of the features and the tied output layer.

    h = LayerNorm(gelu(W x + b)),   P(w | x) = softmax(E h + c)

E are the token embeddings of the reader. Only the positions that are predicted are computed. With next sentences, the
features of the begin b give P(next | b) = softmax(V tanh(U b + c) + d), whose first row is "next".
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from pydantic import Field
from torch import Tensor, nn

from heed.core.config import Config, KeyOf
from heed.nn.contract import Smoothing
from heed.nn.heads import LinearHead

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {"gelu": F.gelu, "relu": F.relu, "silu": F.silu}


class MaskedHeadConfig(Config):
    """The `[head]` table of a masked language model."""

    activation: Annotated[str, KeyOf(ACTIVATIONS)] = "gelu"
    """Activation of the transformation."""
    norm_epsilon: float = Field(default=1e-12, gt=0, lt=1)
    """Added to the variance in its normalisation."""


class MaskedHead(nn.Module):
    """Distributions over the vocabulary at any positions of a text."""

    def __init__(
        self, config: MaskedHeadConfig, vectors: nn.Parameter, pad_id: int, next_sentence: bool = False
    ) -> None:
        super().__init__()
        size = vectors.shape[1]
        self.transform = nn.Linear(size, size)
        self.activation = ACTIVATIONS[config.activation]
        self.norm = nn.LayerNorm(size, config.norm_epsilon)
        self.output = LinearHead(vectors, pad_id)
        self.next_sentence = NextSentence(size) if next_sentence else None
        if not vectors.is_meta:
            nn.init.normal_(self.transform.weight, std=0.02)
            nn.init.zeros_(self.transform.bias)

    def hidden(self, features: Float[Tensor, "... D"]) -> Float[Tensor, "... D"]:
        """The transformed features, which the output layer reads."""
        hidden: Tensor = self.norm(self.activation(self.transform(features)))
        return hidden

    def logits(self, features: Float[Tensor, "... D"]) -> Float[Tensor, "... V"]:
        """Unnormalised scores of the whole vocabulary."""
        return self.output.logits(self.hidden(features))

    def log_probs(
        self, features: Float[Tensor, "... D"], subset: Int[Tensor, " N"] | None = None
    ) -> Float[Tensor, "... N"]:
        """Log-probabilities of the whole vocabulary, or of `subset` normalised over the subset."""
        return self.output.log_probs(self.hidden(features), subset)

    def log_prob(self, features: Float[Tensor, "... D"], ids: Int[Tensor, "..."]) -> Float[Tensor, "..."]:
        """Log-probability of one given token for each feature."""
        return self.output.log_prob(self.hidden(features), ids)

    def loss(
        self, features: Float[Tensor, "B T D"], tgt_out: Int[Tensor, "B T"], mask: Bool[Tensor, "B T"],
        smoothing: Smoothing,
    ) -> tuple[Tensor, Tensor]:  # fmt: skip
        """Sum over the positions in `mask` of the smoothed loss and of -log p (nats)."""
        chosen = features[mask][None]
        return self.output.loss(self.hidden(chosen), tgt_out[mask][None], mask[mask][None], smoothing)


class NextSentence(nn.Module):
    """Whether the second of two texts follows the first one, from the features of their begin."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.pool = nn.Linear(size, size)
        self.output = nn.Linear(size, 2)
        for layer in (self.pool, self.output):
            if not layer.weight.is_meta:
                nn.init.normal_(layer.weight, std=0.02)
                nn.init.zeros_(layer.bias)

    def forward(self, begin: Float[Tensor, "B D"]) -> Float[Tensor, "B 2"]:
        """Unnormalised scores of "next" and "not next"."""
        logits: Tensor = self.output(self.pool(begin).tanh())
        return logits

    def loss(self, begin: Float[Tensor, "B D"], is_next: Bool[Tensor, " B"]) -> Float[Tensor, ""]:
        """Sum of -log p (nats)."""
        return F.cross_entropy(self(begin).float(), (~is_next).long(), reduction="sum")
