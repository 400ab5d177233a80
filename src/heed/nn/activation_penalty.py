"""Activation regularisation: a loss on large and quickly changing activations in training.

Activation regularisation (AR) and temporal activation regularisation (TAR) of Merity, McCann & Socher (2017,
"Revisiting activation regularization for language RNNs"): α times the mean square of the dropped output, β times the
mean square of the change of the plain output from one position to the next. A model lays both outputs side by side
into its features while it is trained, and the head takes them apart, so that the loop need not know of it.
"""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from heed.nn.contract import Head, Smoothing


class PenalisedHead(nn.Module):
    """Another head, whose loss has α · AR + β · TAR added for each token.

    Features have D values, or 2 D in training: the dropped output, then the plain one (`side_by_side`).
    """

    def __init__(self, head: Head, d_model: int, alpha: float, beta: float) -> None:
        super().__init__()
        self.head = head
        self.d_model = d_model
        self.alpha, self.beta = alpha, beta

    def log_probs(
        self, features: Float[Tensor, "... D"], subset: Int[Tensor, " N"] | None = None
    ) -> Float[Tensor, "... N"]:
        """Those of the other head."""
        return self.head.log_probs(features[..., : self.d_model], subset)

    def log_prob(self, features: Float[Tensor, "... D"], ids: Int[Tensor, "..."]) -> Float[Tensor, "..."]:
        """That of the other head."""
        return self.head.log_prob(features[..., : self.d_model], ids)

    def loss(
        self, features: Float[Tensor, "B T D"], tgt_out: Int[Tensor, "B T"], mask: Bool[Tensor, "B T"],
        smoothing: Smoothing,
    ) -> tuple[Tensor, Tensor, int]:  # fmt: skip
        """The other head's sums; with plain outputs beside the dropped ones, the penalty is a part of the first."""
        dropped, plain = torch.split(features, self.d_model, dim=-1) if self._is_paired(features) else (features, None)
        loss_sum, nll_sum, num_tokens = self.head.loss(dropped, tgt_out, mask, smoothing)
        if plain is not None:
            loss_sum = loss_sum + self._penalty(dropped.float(), plain.float(), mask)
        return loss_sum, nll_sum, num_tokens

    def _is_paired(self, features: Tensor) -> bool:
        return features.shape[-1] > self.d_model

    def _penalty(
        self, dropped: Float[Tensor, "B T D"], plain: Float[Tensor, "B T D"], mask: Bool[Tensor, "B T"]
    ) -> Float[Tensor, ""]:
        """The means over real tokens (and over pairs of neighbours), times the number of tokens."""
        size, both = mask.sum(), mask[:, 1:] & mask[:, :-1]
        ar = dropped.square().mean(-1)[mask].sum()
        change = (plain[:, 1:] - plain[:, :-1]).square().mean(-1)[both].sum() * size / both.sum().clamp(min=1)
        return self.alpha * ar + self.beta * change


def side_by_side(dropped: Float[Tensor, "B T D"], plain: Float[Tensor, "B T D"]) -> Float[Tensor, "B T C"]:
    """Features of which `PenalisedHead` takes the penalty (C = 2 D)."""
    return torch.cat((dropped, plain), dim=-1)
