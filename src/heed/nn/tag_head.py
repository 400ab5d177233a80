"""Heads of tagging: scores of the tags of words, with a linear-chain CRF or independent (softmax).

Both search among legal tag sequences only. The CRF is also normalised over these, and is trained on whole sequences.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from heed.nn.contract import Smoothing
from heed.nn.crf import Chain, Legal


class TagHead(nn.Module):
    """A linear layer from the features of a word to the scores of its tags (K)."""

    def __init__(self, num_features: int, legal: Legal) -> None:
        super().__init__()
        num_tags = len(legal.begin)
        self.output = nn.Linear(num_features, num_tags)
        for name, allowed in zip(Legal._fields, legal, strict=True):
            self.register_buffer(f"legal_{name}", allowed, persistent=False)

    @property
    def legal(self) -> Legal:
        """The legal tag sequences."""
        parts: Any = (getattr(self, f"legal_{name}") for name in Legal._fields)
        return Legal(*parts)

    @abstractmethod
    def loss(
        self,
        features: Float[Tensor, "B W D"],
        tags: Int[Tensor, "B W"],
        mask: Bool[Tensor, "B W"],
        smoothing: Smoothing,
    ) -> tuple[Tensor, Tensor]:
        """The loss and -log p of the tags, summed over the batch."""

    @abstractmethod
    def chain(self, features: Float[Tensor, "B W D"], mask: Bool[Tensor, "B W"]) -> Chain:
        """The scores of all tag sequences, of which log p is a normalised score."""

    @abstractmethod
    def searched(self, features: Float[Tensor, "B W D"], mask: Bool[Tensor, "B W"]) -> Chain:
        """The same without sequences that are not legal."""


class CrfHead(TagHead):
    """A linear-chain CRF over the scores of tags (Huang et al. 2015; Lample et al. 2016, section 2.2)."""

    def __init__(self, num_features: int, legal: Legal) -> None:
        super().__init__(num_features, legal)
        num_tags = len(legal.begin)
        self.transitions = nn.Parameter(torch.zeros(num_tags, num_tags))
        self.begin = nn.Parameter(torch.zeros(num_tags))
        self.end = nn.Parameter(torch.zeros(num_tags))

    def chain(self, features: Float[Tensor, "B W D"], mask: Bool[Tensor, "B W"]) -> Chain:
        return Chain.of(self.output(features), self.transitions, self.begin, self.end, mask, self.legal)

    searched = chain

    def loss(
        self,
        features: Float[Tensor, "B W D"],
        tags: Int[Tensor, "B W"],
        mask: Bool[Tensor, "B W"],
        smoothing: Smoothing,
    ) -> tuple[Tensor, Tensor]:
        chain = self.chain(features, mask)
        nll = (chain.log_partition() - chain.scores(tags)).sum()
        return nll, nll.detach()


class SoftmaxHead(TagHead):
    """Independent tags: a softmax for each word."""

    def _chain(self, features: Tensor, mask: Tensor, legal: Legal | None) -> Chain:
        scores = self.output(features)
        zeros = scores.new_zeros(scores.shape[-1])
        return Chain.of(scores, zeros.expand(len(zeros), -1), zeros, zeros, mask, legal)

    def chain(self, features: Float[Tensor, "B W D"], mask: Bool[Tensor, "B W"]) -> Chain:
        return self._chain(features, mask, None)

    def searched(self, features: Float[Tensor, "B W D"], mask: Bool[Tensor, "B W"]) -> Chain:
        return self._chain(features, mask, self.legal)

    def loss(
        self,
        features: Float[Tensor, "B W D"],
        tags: Int[Tensor, "B W"],
        mask: Bool[Tensor, "B W"],
        smoothing: Smoothing,
    ) -> tuple[Tensor, Tensor]:
        scores, targets = self.output(features[mask]), tags[mask]
        scores = scores.to(torch.promote_types(scores.dtype, torch.float32))
        loss = nn.functional.cross_entropy(scores, targets, reduction="sum", label_smoothing=smoothing.epsilon)
        if not smoothing.epsilon:
            return loss, loss.detach()
        return loss, nn.functional.cross_entropy(scores.detach(), targets, reduction="sum")


TAG_HEADS: dict[str, type[TagHead]] = {"crf": CrfHead, "softmax": SoftmaxHead}
