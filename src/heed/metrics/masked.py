"""Measures of a masked language model (Devlin et al. 2019): perplexity and accuracy at the masks of a text, and loss
and accuracy of the prediction of next sentences.

Those at the masks depend on the tokenizer and on which pieces are masked, which their signatures name.
"""

from __future__ import annotations

import math

from heed.metrics.metric import Metric, Score


class MaskedPerplexity(Metric):
    """exp of the mean -log p of the masked pieces."""

    title = "masked perplexity"
    higher_is_better = False
    needs = "likelihoods"


class MaskedAccuracy(Metric):
    """Percentage of the masked pieces that are the most probable ones."""

    title = "masked accuracy"
    needs = "likelihoods"


class NextSentenceLoss(Metric):
    """Mean -log p (nats) of whether the second text of a pair follows the first."""

    title = "next sentence loss"
    higher_is_better = False
    needs = "likelihoods"


class NextSentenceAccuracy(Metric):
    """Percentage of pairs of texts for which this is predicted rightly."""

    title = "next sentence accuracy"
    needs = "likelihoods"


def score_next_sentence(nll_sum: float, num_right: int, num_pairs: int) -> dict[str, Score]:
    """Both scores, from the sum of -log p (nats) and the number of right predictions."""
    signature, number = f"unit:pair|n:{num_pairs}", max(1, num_pairs)
    return {
        "next_sentence_loss": Score(NextSentenceLoss.title, nll_sum / number, signature),
        "next_sentence_accuracy": Score(NextSentenceAccuracy.title, 100 * num_right / number, signature),
    }


def score_masked(nll_sum: float, num_right: int, num_masked: int, how: str) -> dict[str, Score]:
    """Both scores, from the sum of -log p (nats) and the number of right predictions; `how` the text was masked."""
    mean, signature = nll_sum / max(1, num_masked), f"unit:token|n:{num_masked}|{how}"
    return {
        "masked_perplexity": Score(MaskedPerplexity.title, math.exp(mean) if mean < 709 else math.inf, signature),
        "masked_accuracy": Score(MaskedAccuracy.title, 100 * num_right / max(1, num_masked), signature),
    }
