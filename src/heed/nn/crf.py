"""Linear-chain conditional random field (Lafferty et al. 2001): scores of whole tag sequences, in exact arithmetic.

The score of tags y_1 … y_W is Σ_t e_t(y_t) + Σ_t A(y_{t-1}, y_t) + b(y_1) + c(y_W). `Chain` sums and maximises over
all sequences: the partition function and marginals by the forward and backward algorithms, the best sequences by
Viterbi's (k best with k scores in each cell). Illegal steps have the score -∞.

The partition function multiplies scaled probabilities in float64, so a step is one product with exp(A), and sequences
with less than e^-700 of the mass of a step count as impossible. If none would be left, it is computed from logarithms,
as marginals always are.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from numpy.typing import NDArray
from torch import Tensor

_IMPOSSIBLE = -1e100
"""Score of a step that is not legal, in sums over sequences."""


class Legal(NamedTuple):
    """Which tags may begin a sentence, follow each other and end a sentence."""

    begin: Bool[Tensor, " K"]
    step: Bool[Tensor, "K K"]
    end: Bool[Tensor, " K"]


class Path(NamedTuple):
    """A tag sequence and its score."""

    tags: list[int]
    score: float


@dataclass(frozen=True)
class Chain:
    """Scores of the tag sequences of a batch of sentences; padding is at the end of a row."""

    emissions: Float[Tensor, "B W K"]
    """e, with b added at the first and c at the last word (float64)."""
    transitions: Float[Tensor, "K K"]
    """A, from row to column (float64)."""
    mask: Bool[Tensor, "B W"]

    @staticmethod
    def of(
        emissions: Float[Tensor, "B W K"], transitions: Float[Tensor, "K K"], begin: Float[Tensor, " K"],
        end: Float[Tensor, " K"], mask: Bool[Tensor, "B W"], legal: Legal | None = None,
    ) -> Chain:  # fmt: skip
        """The chain of these scores, without the sequences that are not legal."""
        emissions, transitions, begin, end = (x.double() for x in (emissions, transitions, begin, end))
        if legal is not None:
            begin, end = (_only(x, allowed) for x, allowed in ((begin, legal.begin), (end, legal.end)))
            transitions = _only(transitions, legal.step)
        positions = torch.arange(mask.shape[1], device=mask.device)
        emissions = torch.where((positions == 0)[:, None], emissions + begin, emissions)
        last = positions == mask.sum(1, keepdim=True) - 1
        return Chain(torch.where(last[..., None], emissions + end, emissions), transitions, mask)

    @cached_property
    def lengths(self) -> NDArray[np.int64]:
        """The number of words of each sentence."""
        lengths: NDArray[np.int64] = self.mask.sum(1).cpu().numpy()
        return lengths

    def scores(self, tags: Int[Tensor, "B W"]) -> Float[Tensor, " B"]:
        """The score of one tag sequence for each sentence; tags of padding are ignored."""
        emitted = self.emissions.gather(-1, tags[..., None])[..., 0]
        steps = self.transitions[tags[:, :-1], tags[:, 1:]]
        steps = steps.masked_fill(~self.mask[:, 1:], 0.0)  # those of the padding may be illegal
        return (emitted * self.mask).sum(1) + steps.sum(1)

    def log_partition(self) -> Float[Tensor, " B"]:
        """log Σ exp(score) over all tag sequences of each sentence; differentiable."""
        scaled = self._scaled_log_partition()
        return scaled if bool(scaled.isfinite().all()) else self.forward()[:, -1].logsumexp(-1)

    def _scaled_log_partition(self) -> Float[Tensor, " B"]:
        """The same from products of probabilities, not finite where all of a step underflow."""
        highest, top = self.emissions.detach().amax(-1), self.transitions.detach().max()
        factors, steps = (self.emissions - highest[..., None]).exp(), (self.transitions - top).exp()
        values = factors[:, 0]
        total = values.sum(-1, keepdim=True)
        values, scales = values / total, [total]
        for t in range(1, self.mask.shape[1]):
            new = (values @ steps) * factors[:, t]
            total = new.sum(-1, keepdim=True)
            inside = self.mask[:, t, None]
            values = torch.where(inside, new / total, values)
            scales.append(torch.where(inside, total, 1.0))
        num_steps = self.mask.sum(1) - 1
        return torch.cat(scales, dim=1).log().sum(1) + (highest * self.mask).sum(1) + num_steps * top

    def forward(self) -> Float[Tensor, "B W K"]:
        """At word t, the log of the mass (nats) of all beginnings of the sentence that end with each tag."""
        emissions, transitions = self._finite_scores()
        masses = [emissions[:, 0]]
        for t in range(1, self.mask.shape[1]):
            new = _log_product(masses[-1], transitions) + emissions[:, t]
            masses.append(torch.where(self.mask[:, t, None], new, masses[-1]))
        return torch.stack(masses, 1)

    def backward(self) -> Float[Tensor, "B W K"]:
        """At word t, the log of the mass (nats) of all continuations of the sentence after each tag."""
        emissions, transitions = self._finite_scores()
        masses = [torch.zeros_like(emissions[:, 0])]
        for t in range(self.mask.shape[1] - 1, 0, -1):
            new = _log_product(emissions[:, t] + masses[-1], transitions.T)
            masses.append(torch.where(self.mask[:, t, None], new, masses[-1]))
        return torch.stack(masses[::-1], 1)

    def _finite_scores(self) -> tuple[Tensor, Tensor]:
        """The emissions and transitions with `_IMPOSSIBLE` instead of -∞, whose differences are not defined."""
        return self.emissions.clamp(min=_IMPOSSIBLE), self.transitions.clamp(min=_IMPOSSIBLE)

    @torch.no_grad()
    def marginals(self) -> Float[Tensor, "B W K"]:
        """P(y_t = k) at each word; undefined in the padding."""
        return (self.forward() + self.backward()).softmax(-1)

    @torch.no_grad()
    def best(self, number: int = 1) -> list[list[Path]]:
        """The `number` best tag sequences of each sentence (fewer if there are no more), the best first."""
        num_rows, num_words, num_tags = self.emissions.shape
        scores = self.emissions.new_full((num_rows, num_tags, number), -torch.inf)
        scores[..., 0] = self.emissions[:, 0]
        pointers: list[Tensor] = []
        for t in range(1, num_words):
            steps = scores[..., None] + self.transitions[:, None]  # [B, K, number, K]
            new, origin = _highest(steps.flatten(1, 2), number)
            new = new + self.emissions[:, t, :, None]
            scores = torch.where(self.mask[:, t, None, None], new, scores)
            pointers.append(origin)
        last, order = _highest(scores.flatten(1)[..., None], number)
        back = torch.stack(pointers, 1).cpu().numpy() if pointers else np.empty((num_rows, 0, num_tags, number), int)
        ends = zip(last[:, 0].tolist(), order[:, 0].tolist(), strict=True)
        return [
            [
                _traced(back[row], end, number, length, score)
                for score, end in zip(*of_row, strict=True)
                if score > -math.inf
            ]
            for row, (length, of_row) in enumerate(zip(self.lengths.tolist(), ends, strict=True))
        ]


def _only(scores: Tensor, allowed: Tensor) -> Tensor:
    return scores.masked_fill(~allowed, -torch.inf)


def _log_product(logs: Float[Tensor, "B K"], log_matrix: Float[Tensor, "K K"]) -> Tensor:
    """The logarithms of a product of vectors and a matrix, given as logarithms."""
    return (logs[..., None] + log_matrix).logsumexp(1)


def _highest(scores: Float[Tensor, "B N K"], number: int) -> tuple[Tensor, Tensor]:
    """The highest of N scores and their places, [B, K, number] each."""
    if number == 1:
        values, places = scores.max(1, keepdim=True)
    else:
        values, places = scores.topk(min(number, scores.shape[1]), dim=1)
        if missing := number - values.shape[1]:
            values = torch.nn.functional.pad(values, (0, 0, 0, missing), value=-torch.inf)
            places = torch.nn.functional.pad(places, (0, 0, 0, missing))
    return values.transpose(1, 2), places.transpose(1, 2)


def _traced(back: NDArray[np.int64], end: int, number: int, length: int, score: float) -> Path:
    """The path that ends in cell `end` = tag · `number` + rank, by the pointers [W - 1, K, number]."""
    tags = [end // number]
    for t in range(length - 2, -1, -1):
        end = int(back[t, end // number, end % number])
        tags.append(end // number)
    return Path(tags[::-1], score)
