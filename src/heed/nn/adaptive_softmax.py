"""Adaptive softmax (Grave, Joulin, Cissé, Grangier & Jégou 2017, "Efficient softmax approximation for GPUs").

A softmax over a large vocabulary at about the cost of a small one: the vocabulary, in order of frequency, is split into
a shortlist and clusters of rarer words. The first softmax is over the shortlist and one entry for each cluster; a
second one, over the words of a cluster, uses fewer features the rarer the cluster is. It does not approximate another
model: P(w) = P(cluster) P(w | cluster) sums to one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import cast

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from heed.core.errors import UsageError
from heed.nn.contract import Smoothing
from heed.nn.embeddings import uniform_weight
from heed.nn.heads import LinearHead

REDUCTION = 4
"""Ratio of the number of features of each cluster to that of the next."""


class _Cluster(nn.Module):
    """The words of one cluster: a projection to fewer features, and a softmax."""

    def __init__(self, d_model: int, size: int, num_words: int) -> None:
        super().__init__()
        self.project = nn.Linear(d_model, size, bias=False)
        self.words = LinearHead(uniform_weight(num_words, size, size**-0.5), pad_id=0, bias=False)


class AdaptiveHead(nn.Module):
    """An adaptive softmax over `vocab_size` words whose ids are in order of frequency.

    `cutoffs`: the shortlist ends before the first of these ids, the first cluster before the second, and so on. Equal
    to `torch.nn.AdaptiveLogSoftmaxWithLoss`; a cluster is computed only for its words in the batch.
    """

    def __init__(self, d_model: int, vocab_size: int, cutoffs: Sequence[int]) -> None:
        super().__init__()
        bounds = [0, *cutoffs, vocab_size]
        if any(a >= b for a, b in pairwise(bounds)):
            raise UsageError(
                f"model.cutoffs must be ascending, above 0 and below the {vocab_size:,} words of the vocabulary, "
                f"got {list(cutoffs)}."
            )
        self.bounds = bounds[1:]
        shortlist, num_clusters = bounds[1], len(cutoffs)
        root_weight = uniform_weight(shortlist + num_clusters, d_model, d_model**-0.5)
        self.root = LinearHead(root_weight, pad_id=0, bias=False)
        sizes = [max(1, d_model // REDUCTION**number) for number in range(1, num_clusters + 1)]
        self.clusters = nn.ModuleList(
            _Cluster(d_model, size, b - a) for size, (a, b) in zip(sizes, pairwise(self.bounds), strict=True)
        )

    def _each(self) -> list[tuple[int, int, int, _Cluster]]:
        """(entry in the root, first word, end, cluster) of each cluster."""
        clusters = cast(Iterable[_Cluster], self.clusters)
        return [
            (self.bounds[0] + number, begin, end, cluster)
            for number, ((begin, end), cluster) in enumerate(zip(pairwise(self.bounds), clusters, strict=True))
        ]

    def _entries(self, ids: Tensor) -> Tensor:
        """The root's entry for each word: the word itself or its cluster."""
        clusters = torch.bucketize(ids, torch.tensor(self.bounds[:-1], device=ids.device), right=True)
        return torch.where(clusters == 0, ids, self.bounds[0] + clusters - 1)

    def log_probs(
        self, features: Float[Tensor, "... D"], subset: Int[Tensor, " N"] | None = None
    ) -> Float[Tensor, "... N"]:
        """Log-probabilities in float32 of the whole vocabulary, or of `subset` normalised over the subset."""
        root = self.root.log_probs(features)
        parts = [root[..., : self.bounds[0]]]
        for entry, _, _, cluster in self._each():
            parts.append(root[..., entry, None] + cluster.words.log_probs(cluster.project(features)))
        log_probs = torch.cat(parts, dim=-1)
        return log_probs if subset is None else log_probs[..., subset].log_softmax(dim=-1)

    def log_prob(self, features: Float[Tensor, "... D"], ids: Int[Tensor, "..."]) -> Float[Tensor, "..."]:
        """Log-probability of one given token for each feature; only clusters of these tokens are computed."""
        flat, words = features.reshape(-1, features.shape[-1]), ids.reshape(-1)
        log_prob = self.root.log_prob(flat, self._entries(words))
        for _, begin, end, cluster in self._each():
            rows = ((words >= begin) & (words < end)).nonzero().squeeze(1)
            inside = cluster.words.log_prob(cluster.project(flat[rows]), words[rows] - begin)
            log_prob = log_prob.index_add(0, rows, inside)
        return log_prob.view(ids.shape)

    def loss(
        self, features: Float[Tensor, "B T D"], tgt_out: Int[Tensor, "B T"], mask: Bool[Tensor, "B T"],
        smoothing: Smoothing,
    ) -> tuple[Tensor, Tensor]:  # fmt: skip
        """Sum over the real tokens of -log p (nats), twice. Raises UsageError for label smoothing."""
        if smoothing.epsilon:
            raise UsageError("an adaptive softmax does not support label smoothing: set training.label_smoothing = 0.")
        loss_sum, nll_sum = self.root.loss(features, self._entries(tgt_out), mask, smoothing)
        for _, begin, end, cluster in self._each():
            rows = mask & (tgt_out >= begin) & (tgt_out < end)
            projected = cluster.project(features[rows])[None]
            words = tgt_out[rows][None] - begin
            loss, nll = cluster.words.loss(projected, words, torch.ones_like(words, dtype=torch.bool), smoothing)
            loss_sum, nll_sum = loss_sum + loss, nll_sum + nll
        return loss_sum, nll_sum
