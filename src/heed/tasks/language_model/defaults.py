"""Default settings of a language model, by the number of characters of its training text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from heed.models import MODELS
from heed.tasks.defaults import (
    Choices,
    Chosen,
    CorpusStats,
    Machine,
    TextModelSize,
    given_number,
    held_out,
    num_heads,
    tokens_per_epoch,
    trained_model_choices,
    updates_per_epoch,
    vocabulary,
    without,
)

# Not measured yet.
SIZES = (
    TextModelSize(2e6, 1000, 256, 4, 128, 0.3),
    TextModelSize(2e7, 4000, 256, 4, 128, 0.2),
    TextModelSize(2e8, 8000, 512, 8, 256, 0.1),
    TextModelSize(2e9, 16000, 512, 12, 512, 0.1),
    TextModelSize(float("inf"), 32000, 768, 12, 1024, 0.0),
)
QUICK_MINUTES = 2.0
"""Time limit below which a count-based model is chosen."""
RECURRENT_CONTEXT = 70
"""Tokens of a segment for a model that carries its state from one to the next."""
STOP_METRIC = ("perplexity", "the usual measure of a language model")


def choose_language_model(stats: CorpusStats, machine: Machine, given: Mapping[str, Any]) -> Choices:
    """Choose a decoder-only Transformer, or settings for the user's kind of model, around the keys `given`."""
    kind, why = _kind(given)
    if kind not in MODELS or MODELS[kind].count_based:
        return without(_count_based(stats, given, kind, why), given)
    characters = stats.num_rows * (stats.characters_per_row + 1)
    size = TextModelSize.fitting(SIZES, characters)
    if machine.device == "cpu":
        size = replace(
            size, d_model=min(size.d_model, 256), num_layers=min(size.num_layers, 4), length=min(size.length, 128)
        )
    d_model = given_number(given, "model.d_model", size.d_model)
    reads = given.get("data.text_as")
    reads = reads if reads in _HOW_READ else MODELS[kind].reads
    context = given_number(given, "training.context", RECURRENT_CONTEXT if reads == "stream" else size.length)
    text = f"{characters:,.0f} characters"
    vocab_size = vocabulary(given, size.vocab_size, text)
    batches, tokens_per_update = _batches(machine, given, reads, context)
    tokens = tokens_per_epoch(stats, given, given_number(given, "tokenizer.vocab_size", vocab_size[0]))
    eval_every = updates_per_epoch(tokens, given, tokens_per_update)
    chosen: Chosen = {
        **trained_model_choices(stats, machine, given, vocab_size, eval_every),
        "data.text_as": (reads, _HOW_READ[reads]),
        "data.keep_blank_lines": (given.get("data.text_as", reads) != "lines", "blank lines separate parts of a text"),
        "model.kind": (kind, why),
        **_shape(kind, size, d_model, context, text),
        "training.context": (context, "tokens per segment or window"),
        **batches,
        "training.lr": (1e-3 if d_model <= 256 else 5e-4, "peak, after the warm-up"),
        "training.warmup_steps": (200 if d_model <= 256 else 2000, "updates"),
        "training.label_smoothing": (0.0, "for calibrated probabilities"),
        "training.patience": (5, "validations without a better score end the training"),
        "training.stop_metric": STOP_METRIC,
    }
    return without(chosen, given)


def _kind(given: Mapping[str, Any]) -> tuple[str, str]:
    minutes = given.get("training.max_minutes")
    if "model.kind" in given:
        return str(given["model.kind"]), "given"
    if isinstance(minutes, float | int) and 0 < minutes < QUICK_MINUTES:
        return "ngram", "counted in seconds; the time limit is too short for a network"
    return "gpt", "a decoder-only Transformer; --model.kind=rnn is recurrent, ngram is count-based"


def _count_based(stats: CorpusStats, given: Mapping[str, Any], kind: str, why: str) -> Chosen:
    """Choices for a count-based model: independent lines of words, or of bytes for LZ78."""
    tokenizer: Chosen = {
        "tokenizer.kind": ("word", "the usual unit of count-based models"),
        "tokenizer.vocab_size": (50_000, "the most frequent words; others are unknown"),
        "tokenizer.min_frequency": (1, "all words"),
    }
    if kind == "lz78":
        tokenizer = {"tokenizer.kind": ("byte", "phrases of words hardly repeat")}
    return {
        **held_out(stats, given),
        "data.max_tokens": (100_000, "counting needs no limit on length"),
        **tokenizer,
        "model.kind": (kind, why),
        "training.stop_metric": STOP_METRIC,
    }


_HOW_READ = {
    "lines": "lines are independent of each other",
    "windows": "independent windows of tokens, because this model has a limited context",
    "stream": "the state is carried from each segment to the next",
}


def _shape(kind: str, size: TextModelSize, d_model: int, context: int, text: str) -> Chosen:
    """Sizes of a GPT or a recurrent network; other models keep their own."""
    positions: Chosen = {"model.max_len": (context, "as many positions as the context has tokens")}
    dropout = (size.dropout, f"{text}: more dropout for a smaller text")
    if kind == "gpt":
        return {
            "model.d_model": (d_model, text),
            "model.d_ff": (4 * d_model, "four times d_model"),
            "model.num_heads": (num_heads(d_model), "heads of about 64 features"),
            "model.num_layers": (size.num_layers, text),
            **positions,
            "model.dropout": dropout,
            "model.attention_dropout": dropout,
        }
    if kind == "rnn":
        return {
            "model.d_model": (d_model, text),
            "model.hidden_size": (2 * d_model, "twice d_model"),
            "model.dropout": dropout,
        }
    return positions if "max_len" in MODELS[kind].Config.model_fields else {}


def _batches(machine: Machine, given: Mapping[str, Any], reads: str, context: int) -> tuple[Chosen, int]:
    """The size of a batch, and the number of tokens of an update."""
    processes = machine.num_processes
    if reads == "stream":
        streams = given_number(given, "training.num_streams", -(-32 // processes) * processes)
        return {"training.num_streams": (streams, "parallel streams of the text")}, streams * context
    size = given_number(given, "training.tokens_per_batch", 2048 if machine.device == "cpu" else 16384)
    return {"training.tokens_per_batch": (size, "fits into memory, with enough updates")}, processes * size
