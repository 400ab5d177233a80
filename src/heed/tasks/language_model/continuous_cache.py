"""Continuous cache: recent words raise the probability of the same words."""

from __future__ import annotations

import math

import torch
from jaxtyping import Float, Int
from torch import Tensor


class ContinuousCache:
    """The last `size` words with the features that each was predicted from (Grave, Joulin & Usunier 2017).

    A word is the likelier, the more similar the current features are to those that it was predicted from:
    p_cache(w) ∝ Σ_i 1{w_i = w} exp(θ h · h_i) and p = (1 - λ) p_model + λ p_cache.
    """

    def __init__(self, size: int, flatness: float, share: float) -> None:
        """`flatness` is θ: 0 weighs all words equally. `share` is λ."""
        self.size, self.flatness, self.share = size, flatness, share
        self._features: Float[Tensor, "N D"] | None = None
        self._words = torch.zeros(0, dtype=torch.long)

    def mixed(
        self, log_probs: Float[Tensor, " T"], features: Float[Tensor, "T D"], words: Int[Tensor, " T"]
    ) -> Float[Tensor, " T"]:
        """log P (nats) of the next words with the cache, given that without it; then adds the words to the cache.

        An empty cache changes nothing.
        """
        features = features.float()
        kept = features if self._features is None else torch.cat((self._features, features))
        kept_words = torch.cat((self._words.to(words.device), words))
        num_before, here = len(kept) - len(words), torch.arange(len(words), device=words.device)
        place, end = torch.arange(len(kept), device=words.device), num_before + here[:, None]
        seen = (place < end) & (place >= end - self.size)  # [T, N + T]
        weights = (self.flatness * features @ kept.t()).masked_fill(~seen, -math.inf).softmax(dim=-1)
        share = weights.masked_fill(kept_words != words[:, None], 0.0).sum(-1).clamp(min=0.0)
        mixed = torch.logaddexp(log_probs + math.log1p(-self.share), (self.share * share).log())
        self._features, self._words = kept[-self.size :], kept_words[-self.size :]
        return torch.where(seen.any(-1), mixed, log_probs)
