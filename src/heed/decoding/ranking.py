"""Ranking of hypotheses: length penalty, minimum Bayes risk."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from heed.decoding.hypothesis import Hypothesis, single_spaced


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
    from heed.metrics.pairwise import pairwise_scores  # sacreBLEU takes a while to import

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
