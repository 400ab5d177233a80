"""Output head of models that attend to one place after another: the terms of their loss (Xu et al. 2015).

The features of a training pass have D values, then the S attention weights α_t, and for hard attention log p(s_t) of
the sampled place and the entropy of its distribution. Three terms are added to the loss of a row:

- doubly stochastic attention (section 4.2.1): λ Σ_i (1 - Σ_t α_ti)², so that every place is attended to;
- REINFORCE (section 4.1): -(log p(y | s) - b) Σ_t log p(s_t), where only log p(s_t) has a gradient;
- entropy of the places, subtracted with a weight: λ_e Σ_t H(s_t).

The baseline b is the moving average of the log-probability of a word (0.9 of the old value, 0.1 of the newest) times
the number of words of the row. The paper averages log p(y | s) of whole captions, which differ in length.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from heed.nn.contract import Head, Smoothing


@dataclass(frozen=True)
class AttentionTerms:
    """Weights of the terms; 0 leaves one out."""

    doubly_stochastic: float = 0.0
    """λ."""
    reward: float = 0.0
    """Weight of the REINFORCE term."""
    entropy: float = 0.0
    """λ_e."""


class CaptionHead(nn.Module):
    """Another head with the terms of attention in its loss."""

    def __init__(self, head: Head, d_model: int, terms: AttentionTerms, is_hard: bool) -> None:
        super().__init__()
        self.head = head
        self.d_model = d_model
        self.terms = terms
        self.is_hard = is_hard

    def log_probs(
        self, features: Float[Tensor, "... D"], subset: Int[Tensor, " N"] | None = None
    ) -> Float[Tensor, "... N"]:
        return self.head.log_probs(features[..., : self.d_model], subset)

    def log_prob(self, features: Float[Tensor, "... D"], ids: Int[Tensor, "..."]) -> Float[Tensor, "..."]:
        return self.head.log_prob(features[..., : self.d_model], ids)

    def loss(
        self, features: Float[Tensor, "B T D"], tgt_out: Int[Tensor, "B T"], mask: Bool[Tensor, "B T"],
        smoothing: Smoothing, moving_nll: float | None = None,
    ) -> tuple[Tensor, Tensor]:  # fmt: skip
        """The other head's sums, with the terms added to the first if the features are those of a training pass.

        `moving_nll`: the moving average of -log p (nats) of a word, before the first update None.
        """
        plain, training = features[..., : self.d_model], features[..., self.d_model :]
        loss_sum, nll_sum = self.head.loss(plain, tgt_out, mask, smoothing)
        if not training.shape[-1]:
            return loss_sum, nll_sum
        weights = training[..., :-2] if self.is_hard else training
        covered = (weights.float() * mask[..., None]).sum(1)  # [B, S]
        loss_sum = loss_sum + self.terms.doubly_stochastic * (1 - covered).square().sum()
        if self.is_hard:
            log_places, entropies = (training[..., -2:].float() * mask[..., None]).sum(1).unbind(-1)  # [B]
            advantage = self._advantage(plain, tgt_out, mask, moving_nll)
            loss_sum = loss_sum - self.terms.reward * (advantage * log_places).sum()
            loss_sum = loss_sum - self.terms.entropy * entropies.sum()
        return loss_sum, nll_sum

    @torch.no_grad()
    def _advantage(
        self, plain: Float[Tensor, "B T D"], tgt_out: Int[Tensor, "B T"], mask: Bool[Tensor, "B T"],
        moving_nll: float | None,
    ) -> Float[Tensor, " B"]:  # fmt: skip
        """log p(y | s) - b of each row; without an average yet, that of these rows."""
        log_probs = self.head.log_prob(plain, tgt_out).float() * mask
        baseline = log_probs.sum() / mask.sum() if moving_nll is None else -moving_nll
        return log_probs.sum(1) - baseline * mask.sum(1)
