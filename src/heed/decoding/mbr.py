"""Which of several hypotheses is most like all the others? Minimum Bayes risk.

argmax_h Σ_r w_r u(h, r) over the hypotheses themselves, u the sentence chrF or BLEU of h against r as its reference.
Drawn hypotheses (Eikema & Aziz 2020) count alike, each as often as it was drawn: they stand for the model as they
are. Those of a beam (Kumar & Byrne 2004) weigh as their probabilities do. What was cut off at the longest allowed
length is chosen only where nothing ended, and is no reference for a beam's: its probability lacks what is missing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from heed.decoding.hypothesis import Hypothesis, single_spaced
from heed.metrics.pairwise import pairwise_scores


def by_utility(hypotheses: Sequence[Hypothesis], metric: str, drawn: bool, language: str = "") -> list[Hypothesis]:
    """The distinct texts, the finished one of highest expected utility first; its score becomes that utility.

    `language` is that of the target, for how BLEU cuts words.
    """
    said = [single_spaced(h.text) for h in hypotheses]
    weights: dict[str, float] = {}
    for text, weight in zip(said, _weights(hypotheses, drawn), strict=True):
        weights[text] = weights.get(text, 0.0) + weight
    scores = pairwise_scores(metric, list(weights), language or None)
    utilities = dict(zip(weights, (scores @ list(weights.values())).tolist(), strict=True))
    order = sorted(range(len(said)), key=lambda at: (hypotheses[at].finished, hypotheses[at].log_prob))
    best = {said[at]: hypotheses[at] for at in order}  # of one text the likeliest
    scored = [replace(h, score=utilities[text]) for text, h in best.items()]
    return sorted(scored, key=lambda h: (not h.finished, -h.score, -h.log_prob))


def _weights(hypotheses: Sequence[Hypothesis], drawn: bool) -> list[float]:
    """The weight of each as a reference; together 1."""
    if drawn:
        return [1 / len(hypotheses)] * len(hypotheses)
    any_finished = any(h.finished for h in hypotheses)
    counts = [h.finished or not any_finished for h in hypotheses]
    best = max(h.log_prob for h, is_counted in zip(hypotheses, counts, strict=True) if is_counted)
    shares = [
        math.exp(h.log_prob - best) if is_counted else 0.0 for h, is_counted in zip(hypotheses, counts, strict=True)
    ]
    return [share / sum(shares) for share in shares]
