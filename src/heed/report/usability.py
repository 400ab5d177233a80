"""Usability: whether the validation scores of a run are those of a model that has learned almost nothing.

A model is not usable yet if every score that has a limit (`Metric.usable_from`) is below it. Below BLEU 5 and chrF2 30
outputs rarely convey their source: sentences paired at random often reach chrF2 15 to 20. A language model is not
usable yet if its perplexity is hardly lower than that of the frequencies of tokens in its training text.

This module and all that it imports do without PyTorch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from heed.core.errors import HeedError
from heed.core.own_files import own_folder
from heed.data.validation import read_valid
from heed.metrics import METRICS
from heed.text.tokenizers import Tokenizer, encode_ended
from heed.training.metrics_log import read_metrics

Event = Mapping[str, Any]

NEAR_UNIGRAM = 0.9
"""Perplexity relative to that of token frequencies from which a language model is not usable."""


class Validated(Protocol):
    """What is read of a run."""

    @property
    def folder(self) -> Path:
        """The run folder."""
        ...

    @property
    def recipe(self) -> Any:
        """Its recipe, of which the normaliser of `[data]` is read."""
        ...

    @property
    def tokenizers(self) -> Mapping[str, Tokenizer]:
        """The tokenizer of each side."""
        ...


def kept_validation(events: Sequence[Event]) -> Event | None:
    """The validation of the weights that were kept, the last one marked best."""
    best = [event for event in events if event["event"] == "validation" and event.get("best")]
    return best[-1] if best else None


def usability(run: Validated) -> str:
    """`BLEU 0.4 on validation: not usable yet`; empty for a usable run, or if nothing is known."""
    try:
        kept = kept_validation(read_metrics(run.folder))
    except HeedError:  # a log that cannot be read says nothing of the weights
        return ""
    return usability_of(run, kept) if kept else ""


def usability_of(run: Validated, scores: Mapping[str, Any]) -> str:
    """`usability` for given validation scores of the run, by metric."""
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


def unigram_perplexity(run: Validated) -> float | None:
    """Perplexity per token of the validation text by the frequencies of tokens in the training text, each plus one.

    None if one of the two texts is missing.
    """
    import numpy as np

    from heed.data.store import TRAIN, TokenStore

    tokenizer, data = [*run.tokenizers.values()][-1], run.recipe.data
    try:
        lines = [data.normaliser.apply(row[-1]) for row in read_valid(run.folder) if row]
        store = TokenStore.open(own_folder(run.folder, TRAIN))
    except HeedError:
        return None
    line_end: Any = getattr(data, "line_end", "none")
    ended = encode_ended(tokenizer, lines, line_end)
    ids = np.array([id for of_line in ended for id in of_line], dtype=np.int64)
    if not len(ids):
        return None
    size = len(tokenizer.vocabulary)
    counts = np.bincount(store.all_tokens(store.sides[-1])[0], minlength=size) + 1.0
    if line_end == "eos" and data.text_as == "lines":
        counts[tokenizer.vocabulary.eos_id] += len(store)  # each line ends, but the store has no ends of separate lines
    return float(np.exp(np.mean(np.log(counts.sum()) - np.log(counts[ids]))))
