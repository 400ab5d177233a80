"""How does a model make use of the words that it has just seen, without being trained on them?

The continuous cache (Grave, Joulin & Usunier 2017): the features that the last words were predicted from are kept with
those words, and a word is the likelier the more alike the features now are to those it was found at:
p_cache(w) ∝ Σ_i 1{w_i = w} exp(θ h · h_i) and p = (1 - λ) p_model + λ p_cache.
"""

from __future__ import annotations

import math

import torch
from jaxtyping import Float, Int
from torch import Tensor


class ContinuousCache:
    """The last `size` words, each with the features that it was predicted from."""

    def __init__(self, size: int, flatness: float, share: float) -> None:
        """`flatness` is θ: 0 counts all words alike. `share` is λ."""
        self.size, self.flatness, self.share = size, flatness, share
        self._features: Float[Tensor, "N D"] | None = None
        self._words = torch.zeros(0, dtype=torch.long)

    def mixed(
        self, log_probs: Float[Tensor, " T"], features: Float[Tensor, "T D"], words: Int[Tensor, " T"]
    ) -> Float[Tensor, " T"]:
        """log P (nats) of the next words of the text with the cache, from that without; then they are in it too.

        While the cache is empty nothing is mixed in.
        """
        features = features.float()
        kept = features if self._features is None else torch.cat((self._features, features))
        kept_words = torch.cat((self._words.to(words.device), words))
        num_before, here = len(kept) - len(words), torch.arange(len(words), device=words.device)
        place, end = torch.arange(len(kept), device=words.device), num_before + here[:, None]
        seen = (place < end) & (place >= end - self.size)  # [T, N + T]
        weights = (self.flatness * features @ kept.t()).masked_fill(~seen, -math.inf).softmax(dim=-1)
        found = weights.masked_fill(kept_words != words[:, None], 0.0).sum(-1).clamp(min=0.0)
        mixed = torch.logaddexp(log_probs + math.log1p(-self.share), (self.share * found).log())
        self._features, self._words = kept[-self.size :], kept_words[-self.size :]
        return torch.where(seen.any(-1), mixed, log_probs)
