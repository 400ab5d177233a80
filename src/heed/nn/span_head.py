"""Span head: one distribution over all legal spans of a context, and over having no answer.

The score of the span of words i … j, with features f, is

    s(i, j) = a · f_i + b · f_j + w · ReLU(A f_i + B f_j + c) + l_{j-i},

the sum of the scores of its ends, of both together (Lee et al. 2016, "Learning recurrent span representations for
extractive question answering", equations 6 to 8), and of its length. Legal spans have at most L words, all in the
context, and where there are candidates are among them. They are few enough to be listed, so the softmax over all of
them (Lee et al. 2016, section 3.3) and the search are exact.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn


@dataclass(frozen=True)
class SpanScores:
    """Scores of the spans of a batch; illegal ones have -∞."""

    spans: Float[Tensor, "B W L"]
    """By the first word and the number of further words."""
    none: Float[Tensor, " B"]
    """That there is no answer; -∞ if there always is one."""

    def log_partition(self) -> Float[Tensor, " B"]:
        """log Σ exp(score) over everything that may be answered."""
        return torch.logsumexp(torch.cat((self.spans.flatten(1), self.none[:, None]), 1), 1)

    def of(self, answers: Int[Tensor, "B K 2"]) -> Float[Tensor, "B K"]:
        """The scores of spans, each its first word and the number of further ones."""
        places = answers[..., 0] * self.spans.shape[2] + answers[..., 1]
        return self.spans.flatten(1).gather(1, places)


class SpanHead(nn.Module):
    """Scores of spans from the features of words (D)."""

    def __init__(self, num_features: int, hidden_size: int, max_words: int, no_answer: bool) -> None:
        super().__init__()
        self.max_words, self.no_answer = max_words, no_answer
        self.ends = nn.Linear(num_features, 2)
        self.lengths = nn.Parameter(torch.zeros(max_words))
        if hidden_size:
            self.hidden = nn.Linear(num_features, 2 * hidden_size)
            self.together = nn.Parameter(torch.randn(hidden_size) / hidden_size**0.5)
        if no_answer:
            self.none = nn.Linear(num_features, 1)

    def forward(
        self, features: Float[Tensor, "B W D"], context: Bool[Tensor, "B W"],
        candidates: Bool[Tensor, "B W L"] | None = None,
    ) -> SpanScores:  # fmt: skip
        """The scores of all spans of words of which `context` is True, or only of the candidates."""
        scores = self._scores(features)
        legal = self._following(context, False) & context[..., None]
        legal = legal if candidates is None else legal & candidates
        dtype = torch.promote_types(scores.dtype, torch.float32)
        return SpanScores(scores.to(dtype).masked_fill(~legal, -torch.inf), self._none(features, context).to(dtype))

    def _scores(self, features: Float[Tensor, "B W D"]) -> Float[Tensor, "B W L"]:
        first, last = self.ends(features).unbind(-1)
        scores: Tensor = first[..., None] + self._following(last, 0.0) + self.lengths
        if hasattr(self, "hidden"):
            of_first, of_last = self.hidden(features).chunk(2, dim=-1)
            both = torch.relu(of_first[:, :, None] + self._following(of_last, 0.0))
            scores = scores + both @ self.together
        return scores

    def _following(self, x: Tensor, beyond: float) -> Tensor:
        """For each word the values of it and of the words after it, [B, W, L, ...]; `beyond` after the last one."""
        padded = nn.functional.pad(x, (0, 0) * (x.ndim - 2) + (0, self.max_words - 1), value=beyond)
        windows = padded.unfold(1, self.max_words, 1)
        return windows.movedim(-1, 2)

    def _none(self, features: Float[Tensor, "B W D"], context: Bool[Tensor, "B W"]) -> Float[Tensor, " B"]:
        if not self.no_answer:
            return features.new_full((len(features),), -torch.inf)
        strongest = features.masked_fill(~context[..., None], -torch.inf).amax(1)
        score: Tensor = self.none(strongest)[:, 0]
        return score

    def loss(
        self, scores: SpanScores, answers: Int[Tensor, "B K 2"], weights: Float[Tensor, "B K"],
    ) -> Tensor:  # fmt: skip
        """-log p of the answers of each question, the mean over them by their weights; summed over the questions.

        What is missing from a sum of weights of 1 is the weight of having no answer.
        """
        known = weights > 0
        of_answers = torch.where(known, scores.of(answers).masked_fill(~known, 0.0), 0.0)
        rest = 1 - weights.sum(1)
        none = torch.where(rest > 0.5, scores.none, 0.0)
        return (scores.log_partition() - (weights * of_answers).sum(1) - none).sum()


def as_grid(spans: Int[Tensor, "B C 2"], given: Bool[Tensor, "B C"], num_words: int, length: int) -> Tensor:
    """Where the given spans are in a grid [B, W, L]; rows without any allow every span."""
    grid = torch.zeros(len(spans), num_words * length, dtype=torch.bool, device=spans.device)
    places = spans[..., 0] * length + spans[..., 1]
    grid.scatter_(1, torch.where(given, places, 0), given)
    # a place that is not given is written as False to cell 0, which a real span there must win
    grid[:, 0] = ((places == 0) & given).any(1)
    return grid.view(len(spans), num_words, length) | ~given.any(1)[:, None, None]
