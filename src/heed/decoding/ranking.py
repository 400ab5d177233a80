"""Ranking of hypotheses: length penalty, coverage penalty, minimum Bayes risk."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from heed.core.errors import UsageError
from heed.decoding.hypothesis import Hypothesis, single_spaced
from heed.metrics.pairwise import pairwise_scores
from heed.nn.contract import Trace

_SMALLEST = 1e-30
"""Attention that float32 rounds to zero still has a logarithm."""


@dataclass(frozen=True)
class LengthPenalty:
    """Length normalisation of scores: log P(y) divided by a function of |y|.

    "gnmt": ((5 + |y|) / 6)^α (Wu et al. 2016, equation 14); "mean": |y|^α, so α = 1 is the mean per token.
    α = 0 ranks by probability alone. |y| counts the end of sentence.
    """

    alpha: float = 0.6
    kind: str = "gnmt"

    def divisor(self, length: int) -> float:
        base = (5 + length) / 6 if self.kind == "gnmt" else max(length, 1)
        return float(base**self.alpha)


def cross_attention(trace: Trace) -> Float[Tensor, "B T S"]:
    """The mean attention to the source over the heads and blocks of the decoder's second half.

    The lower blocks attend less to translations. Raises UsageError for a model without such attention.
    """
    names = [name for name in trace.weights if name.endswith("cross")]  # from the lowest block to the highest
    if not names:
        raise UsageError(
            "this model has no attention to its source, which alignment and the coverage penalty need: "
            "leave out --alignment and coverage_penalty."
        )
    per_block = [torch.cat(trace.weights[name], dim=2).float().mean(dim=1) for name in names]
    return torch.stack(per_block[len(per_block) // 2 :]).mean(dim=0)


class Coverage:
    """Coverage penalty: cp(X; Y) = β Σ_i log min(Σ_j p_ij, 1) (Wu et al. 2016, equation 14).

    p_ij is the attention of the j-th target token to the i-th source token: a source token attended to less than once
    in total costs, more attention gains nothing. It is added to scores when hypotheses are ranked and never changes a
    log-probability.
    """

    def __init__(self, beta: float, trace: Trace, mask: Bool[Tensor, "N S"]) -> None:
        """`trace` is where the model records attention; `mask` is that of the batch's sources."""
        self.beta = beta
        self.trace = trace
        self._covered = self._before = (~mask).float()  # [R, S]; padding counts as covered

    def observe(self) -> None:
        """Add the attention of the latest step."""
        weights = cross_attention(self.trace)
        self.trace.weights.clear()
        rows_per_source = len(weights) // max(1, len(self._covered))  # at first there is one row per source
        self._before = self._covered.repeat_interleave(rows_per_source, dim=0) + weights[:, :-1].sum(dim=1)
        self._covered = self._before + weights[:, -1]

    def penalty(self, row: int, ended: bool) -> float:
        """cp of a row that ended with the latest step, or of the row before it."""
        covered = (self._covered if ended else self._before)[row]
        return self.beta * float(covered.clamp(min=_SMALLEST, max=1.0).log().sum())

    def select(self, rows: Int[Tensor, " N"]) -> None:
        self._covered = self._covered[rows]


def by_score(hypotheses: Sequence[Hypothesis]) -> list[Hypothesis]:
    """Best first."""
    return sorted(hypotheses, key=lambda hypothesis: -hypothesis.score)


def minimum_bayes_risk(
    hypotheses: Sequence[Hypothesis], metric: str, sampled: bool, language: str = ""
) -> list[Hypothesis]:
    """The distinct texts, ranked by expected utility, which becomes their score; unfinished ones last.

    argmax_h Σ_r w_r u(h, r) over the hypotheses themselves, u being the sentence chrF or BLEU of h against r as its
    reference. Samples (Eikema & Aziz 2020) have equal weights, each as often as it was drawn. Those of a beam (Kumar &
    Byrne 2004) are weighted by their probabilities; one that was cut off is not a reference unless none finished, since
    its probability is incomplete. `language` is that of the target: BLEU's word splitting depends on it.
    """
    texts = [single_spaced(hypothesis.text) for hypothesis in hypotheses]
    weights: dict[str, float] = {}
    for text, weight in zip(texts, _weights(hypotheses, sampled), strict=True):
        weights[text] = weights.get(text, 0.0) + weight
    scores = pairwise_scores(metric, list(weights), language or None)
    utilities = dict(zip(weights, (scores @ list(weights.values())).tolist(), strict=True))
    order = sorted(range(len(texts)), key=lambda i: (hypotheses[i].finished, hypotheses[i].log_prob))
    likeliest = {texts[i]: hypotheses[i] for i in order}
    scored = [replace(hypothesis, score=utilities[text]) for text, hypothesis in likeliest.items()]
    return sorted(scored, key=lambda hypothesis: (not hypothesis.finished, -hypothesis.score, -hypothesis.log_prob))


def _weights(hypotheses: Sequence[Hypothesis], sampled: bool) -> list[float]:
    """The weight of each hypothesis as a reference; they sum to 1."""
    if sampled:
        return [1 / len(hypotheses)] * len(hypotheses)
    any_finished = any(hypothesis.finished for hypothesis in hypotheses)
    is_reference = [hypothesis.finished or not any_finished for hypothesis in hypotheses]
    pairs = list(zip(hypotheses, is_reference, strict=True))
    best = max(hypothesis.log_prob for hypothesis, counts in pairs if counts)
    shares = [math.exp(hypothesis.log_prob - best) if counts else 0.0 for hypothesis, counts in pairs]
    return [share / sum(shares) for share in shares]
