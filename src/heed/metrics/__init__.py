"""Metrics: how good outputs and models are. Every score carries a signature, and an interval where one was computed.

A metric is one class (`heed.metrics.metric`) and one key of `METRICS`.
"""

from __future__ import annotations

from heed.core.errors import UsageError
from heed.metrics.likelihood import (
    BitsPerByte,
    BitsPerCharacter,
    PerplexityPerCharacter,
    PerplexityPerToken,
    PerplexityPerWord,
)
from heed.metrics.metric import Metric
from heed.metrics.translation import Bleu, Chrf, ChrfPlusPlus, Ter

__all__ = ["METRICS", "register", "require_metric"]

METRICS: dict[str, type[Metric]] = {
    "bleu": Bleu,
    "chrf": Chrf,
    "chrf++": ChrfPlusPlus,
    "ter": Ter,
    "perplexity": PerplexityPerToken,
    "perplexity_per_word": PerplexityPerWord,
    "perplexity_per_character": PerplexityPerCharacter,
    "bits_per_character": BitsPerCharacter,
    "bits_per_byte": BitsPerByte,
}


def register(name: str, metric: type[Metric]) -> None:
    """Add a metric under a new name. Raises UsageError if another metric has the name."""
    if METRICS.setdefault(name, metric) is not metric:
        raise UsageError(f"there is already a metric named {name!r}. Choose another name.")


def require_metric(name: str) -> type[Metric]:
    """The metric of this name. Raises UsageError if there is none."""
    if name not in METRICS:
        raise UsageError(f"unknown metric {name!r}. Allowed: {', '.join(METRICS)}.")
    return METRICS[name]
