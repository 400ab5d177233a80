"""Default settings of word vectors, by the number of words of the text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from heed.models import MODELS
from heed.tasks.defaults import Choices, Chosen, CorpusStats, given_number, held_out, without

CHARACTERS_PER_WORD = 5.5
READ_WORDS = 60e6
"""Words that a training reads, over all epochs, unless that takes fewer than 5 epochs or more than 40 (measured)."""
RATE, RATE_OF_BAGS = 0.025, 0.1
"""Rates of skip-gram, as in word2vec, and CBOW, whose gradient is divided by the size of the window (measured)."""


def choose_word_vectors(stats: CorpusStats, given: Mapping[str, Any]) -> Choices:
    """Choose skip-gram with negative sampling, or settings for the user's kind of model, around the keys `given`."""
    kind = str(given.get("model.kind", "skip_gram"))
    num_words = max(1.0, stats.num_rows * stats.characters_per_row / CHARACTERS_PER_WORD)
    most = round(min(1e6, max(30e3, num_words / 50)))
    chosen: Chosen = {
        **held_out(stats, given),
        "data.max_tokens": (1_000_000, "long lines are read in parts"),
        "data.normaliser": ({"lowercase": True}, "The and the are one word"),
        "tokenizer.kind": ("word", "each word has a vector"),
        "tokenizer.vocab_size": (most, "at most; the most frequent words"),
        "tokenizer.min_frequency": (5, "rarer words have no context to learn from"),
        "model.kind": (kind, "given" if "model.kind" in given else "skip-gram; cbow is faster, ppmi_svd counts"),
        "training.stop_metric": ("negative_sampling", "the loss itself, on held-out lines"),
    }
    if kind in MODELS and not MODELS[kind].count_based:
        chosen |= _training(num_words, given, kind)
    return without(chosen, given, {key: chosen[key] for key in chosen if key.startswith("model.")})


def _training(num_words: float, given: Mapping[str, Any], kind: str) -> Chosen:
    size = given_number(given, "training.tokens_per_batch", round(min(1000.0, max(64.0, num_words / 100))))
    epochs = given_number(given, "training.max_epochs", round(min(40.0, max(5.0, READ_WORDS / num_words))))
    per_epoch = max(1, round(num_words / size))
    return {
        "training.tokens_per_batch": (size, "words of an update"),
        "training.reduction": ("sum", "each word pair contributes a full step, as in word2vec"),
        "training.optimizer": ("sgd", "an update changes only the vectors of its words"),
        "training.schedule": ("linear", "to zero at max_steps"),
        "training.lr": (RATE_OF_BAGS if kind == "cbow" else RATE, "per pair of words"),
        "training.warmup_steps": (0, "not needed"),
        "training.clip_norm": (0.0, "not needed"),
        "training.label_smoothing": (0.0, "the loss has no distribution over words"),
        "training.average": ("none", "the rate falls to zero"),
        "training.max_steps": (epochs * per_epoch, f"about {epochs} epochs of {num_words:,.0f} words"),
        "training.patience": (0, "the rate falls until the end"),
        "training.eval_every": (epochs * per_epoch, "at the end only: the last vectors are kept"),
        "training.save_every": (per_epoch, "about once an epoch"),
    }
