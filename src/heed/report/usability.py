"""Usability: whether the validation scores of a run are those of a model that has learned something.

A model is not usable yet if every score that has a limit (`Metric.usable_from`) is below it. Below BLEU 5 and chrF2 30
outputs rarely convey their source: sentences paired at random often reach chrF2 15 to 20. A language model is not
usable yet if its perplexity is hardly lower than that of the frequencies of tokens in the validation text itself.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from typing import Any

from heed.core.errors import HeedError
from heed.metrics import METRICS
from heed.run import Run
from heed.tasks.prepare import read_valid
from heed.training.metrics_log import read_metrics

NEAR_UNIGRAM = 0.9
"""Perplexity as a share of that of token frequencies from which a language model is not usable."""


def usability(run: Run) -> str:
    """`BLEU 0.4 on validation: not usable yet`; empty for a usable run, or if nothing is known."""
    events = [event for event in read_metrics(run.folder) if event["event"] == "validation" and event.get("best")]
    return usability_of(run, events[-1]) if events else ""


def usability_of(run: Run, scores: Mapping[str, Any]) -> str:
    """The same for the validation scores of a run, by metric."""
    limits = {name: metric.usable_from for name, metric in METRICS.items() if metric.usable_from is not None}
    limited = {name: scores[name] for name in limits if isinstance(scores.get(name), int | float)}
    if limited:
        poor = [METRICS[name].higher_is_better == (value < limits[name]) for name, value in limited.items()]
        name, value = next(iter(limited.items()))
        return f"{METRICS[name].title} {value:.1f} on validation: not usable yet" if all(poor) else ""
    perplexity = scores.get("perplexity")
    if not isinstance(perplexity, int | float) or (unigram := unigram_perplexity(run)) is None:
        return ""
    if perplexity < NEAR_UNIGRAM * unigram:
        return ""
    return (
        f"perplexity per token {perplexity:.1f} on validation, where token frequencies alone give {unigram:.1f}: "
        "not usable yet"
    )


def unigram_perplexity(run: Run) -> float | None:
    """Perplexity per token of the validation text by the frequencies of its own tokens; None without that text."""
    try:
        lines = [run.recipe.data.normaliser.apply(row[-1]) for row in read_valid(run.folder)]
    except HeedError:
        return None
    counts = Counter(id for ids in run.tokenizers["tgt"].encode(lines) for id in ids)
    counts[-1] = len(lines)  # the ends of lines
    total = sum(counts.values())
    return math.exp(-sum(count / total * math.log(count / total) for count in counts.values() if count))
