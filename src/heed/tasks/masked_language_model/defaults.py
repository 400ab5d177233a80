"""Default settings of a masked language model, by the number of characters of its text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from heed.tasks.defaults import (
    Choices,
    Chosen,
    CorpusStats,
    Machine,
    TextModelSize,
    given_number,
    num_heads,
    tokens_per_epoch,
    trained_model_choices,
    updates_per_epoch,
    vocabulary,
    without,
)

SIZES = (
    TextModelSize(2e6, 2000, 256, 4, 128, 0.1),
    TextModelSize(2e7, 8000, 256, 4, 128, 0.1),
    TextModelSize(2e8, 16000, 512, 8, 254, 0.1),
    TextModelSize(2e9, 32000, 768, 12, 254, 0.1),
    TextModelSize(float("inf"), 32000, 768, 12, 510, 0.1),
)


def choose_masked_language_model(stats: CorpusStats, machine: Machine, given: Mapping[str, Any]) -> Choices:
    """Choose a pre-norm Transformer encoder that fits the text and the machine, around the keys `given`."""
    characters = stats.num_rows * (stats.characters_per_row + 1)
    size = TextModelSize.fitting(SIZES, characters)
    if machine.device == "cpu":
        size = replace(size, d_model=min(size.d_model, 256), num_layers=min(size.num_layers, 4), length=126)
    text = f"{characters:,.0f} characters"
    vocab_size = vocabulary(given, size.vocab_size, text)
    d_model = given_number(given, "model.d_model", size.d_model)
    most = size.length
    if given.get("model.positions") == "learned" and "model.max_len" in given:
        most = max(1, min(most, given_number(given, "model.max_len", 0) - 2))
    max_tokens = given_number(given, "data.max_tokens", most)
    batch = given_number(given, "training.tokens_per_batch", 4096 if machine.device == "cpu" else 32768)
    tokens = tokens_per_epoch(stats, given, given_number(given, "tokenizer.vocab_size", vocab_size[0]))
    eval_every = updates_per_epoch(tokens, given, batch * machine.num_processes)
    small = d_model <= 256
    chosen: Chosen = {
        **trained_model_choices(stats, machine, given, vocab_size, eval_every),
        "data.max_tokens": (max_tokens, "longer lines are cut into equal parts"),
        "model.kind": (given.get("model.kind", "encoder"), "a Transformer encoder"),
        "model.d_model": (d_model, text),
        "model.d_ff": (4 * d_model, "four times d_model"),
        "model.num_heads": (num_heads(d_model), "heads of about 64 features"),
        "model.num_layers": (size.num_layers, text),
        "model.positions": ("interleaved", "sinusoidal: short runs learn sooner with them (measured)"),
        "model.norm": ("pre", "allows a higher rate and a short warm-up"),
        "model.dropout": (size.dropout, "masks differ in each epoch, so little dropout is needed"),
        "training.tokens_per_batch": (batch, "of which 15 % are predicted"),
        "training.lr": (1e-3 if small else 5e-4, "peak, after the warm-up"),
        "training.warmup_steps": (200 if small else 2000, "updates"),
        "training.label_smoothing": (0.0, "for calibrated probabilities"),
        "training.patience": (10, "validations without a better score end the training"),
        "training.stop_metric": ("masked_perplexity", "with the same masks at each validation"),
    }
    if given.get("data.next_sentence"):
        chosen["model.begin"] = (True, "its features say whether the second text follows the first")
    return without(chosen, given)
