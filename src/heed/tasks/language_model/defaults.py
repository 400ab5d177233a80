"""Which language model for a text of so many characters?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from heed.models import MODELS
from heed.tasks.defaults import (
    CPU_MINUTES,
    Choices,
    CorpusStats,
    Machine,
    given_number,
    held_out,
    num_heads,
    tokens_per_epoch,
    updates_per_epoch,
    vocabulary,
    without,
)


@dataclass(frozen=True)
class LanguageSize:
    """What a language model of a text of at most so many characters gets."""

    max_characters: float
    vocab_size: int
    d_model: int
    num_layers: int
    context: int
    dropout: float


# First guesses, not yet measured. The last line has no bound.
LANGUAGE_SIZES = (
    LanguageSize(2e6, 1000, 256, 4, 128, 0.3),
    LanguageSize(2e7, 4000, 256, 4, 128, 0.2),
    LanguageSize(2e8, 8000, 512, 8, 256, 0.1),
    LanguageSize(2e9, 16000, 512, 12, 512, 0.1),
    LanguageSize(float("inf"), 32000, 768, 12, 1024, 0.0),
)
QUICK_MINUTES = 2.0
"""In less time no network gets far."""


def choose_language_model(stats: CorpusStats, machine: Machine, given: Mapping[str, Any]) -> Choices:
    """A model of the kind that the user named, or a decoder-only Transformer; where time is very short, counts."""
    kind, why = _language_kind(given)
    if kind not in MODELS or MODELS[kind].count_based:
        return without(_counted(stats, given, kind, why), given)
    characters = stats.num_rows * (stats.characters_per_row + 1)
    size = next(size for size in LANGUAGE_SIZES if characters <= size.max_characters)
    on_cpu = machine.device == "cpu"
    d_model = given_number(given, "model.d_model", min(size.d_model, 256) if on_cpu else size.d_model)
    context = given_number(
        given, "training.context", _context_of(kind, min(size.context, 128) if on_cpu else size.context)
    )
    text = f"{characters:,.0f} characters"
    vocab_size, why_size = vocabulary(given, size.vocab_size, text)
    chosen: dict[str, tuple[Any, str]] = {
        **held_out(stats, given),
        "data.text_as": (MODELS[kind].reads, _HOW_READ[MODELS[kind].reads]),
        "data.keep_blank_lines": (given.get("data.text_as") != "lines", "where lines follow one another they say much"),
        "tokenizer.kind": ("bpe", "byte-level: any text comes back exactly, nothing is unknown"),
        "tokenizer.vocab_size": (vocab_size, why_size),
        "model.kind": (kind, why),
        **_language_shape(kind, size, d_model, context, on_cpu, text),
        "training.context": (context, "tokens that are read at once"),
        **_language_batches(stats, machine, given, kind, vocab_size, context),
        "training.precision": (machine.precision, machine.bfloat16_speed),
        "training.lr": (1e-3 if d_model <= 256 else 5e-4, "peak, after the warm-up"),
        "training.warmup_steps": (200 if d_model <= 256 else 2000, "updates"),
        "training.label_smoothing": (0.0, "the probabilities are what is wanted"),
        "training.patience": (5, "validations without a better score end the training"),
        "training.stop_metric": ("perplexity", "what a language model is measured by"),
        "training.average": ("ema", "a mean of the last weights is steadier than the last ones"),
        "training.max_minutes": (CPU_MINUTES, "less than an hour of a CPU; --max-time changes it"),
    }  # fmt: skip
    if not on_cpu:
        del chosen["training.max_minutes"]
    return without(chosen, given)


def _counted(stats: CorpusStats, given: Mapping[str, Any], kind: str, why: str) -> dict[str, tuple[Any, str]]:
    """What fits a model that is counted: line by line, by words, but for the one whose phrases are of characters."""
    tokenizer: dict[str, tuple[Any, str]] = {
        "tokenizer.kind": ("word", "counting models are compared per word"),
        "tokenizer.vocab_size": (50_000, "the most frequent words; the others are unknown"),
        "tokenizer.min_frequency": (1, "every word counts"),
    }
    if kind == "lz78":
        tokenizer = {"tokenizer.kind": ("byte", "a phrase of words hardly comes again")}
    return {
        **held_out(stats, given),
        "data.max_tokens": (100_000, "counts take lines of any length"),
        **tokenizer,
        "model.kind": (kind, why),
        "training.stop_metric": ("perplexity", "what a language model is measured by"),
    }


_HOW_READ = {
    "lines": "lines are independent of each other",
    "windows": "each window of tokens stands alone, as this model's context has an end",
    "stream": "the state is carried from each segment to the next",
}


def _language_kind(given: Mapping[str, Any]) -> tuple[str, str]:
    minutes = given.get("training.max_minutes")
    if "model.kind" in given:
        return str(given["model.kind"]), "as you said"
    if isinstance(minutes, float | int) and 0 < minutes < QUICK_MINUTES:
        return "ngram", "counted in seconds: there is no time for training a network"
    return "gpt", "a decoder-only Transformer; --model.kind=rnn is a recurrent network, ngram counts"


def _context_of(kind: str, wanted: int) -> int:
    """Back-propagation through time is cut sooner: a recurrent model remembers beyond its segment."""
    return 70 if MODELS[kind].reads == "stream" else wanted


def _language_shape(
    kind: str, size: LanguageSize, d_model: int, context: int, on_cpu: bool, text: str
) -> dict[str, tuple[Any, str]]:
    """The sizes of a model; of the kinds that are for study, their own."""
    dropout = (size.dropout, f"{text}: the smaller the text, the more is dropped")
    if kind == "gpt":
        return {
            "model.d_model": (d_model, text),
            "model.d_ff": (4 * d_model, "four times d_model"),
            "model.num_heads": (num_heads(d_model), "heads of about 64 features"),
            "model.num_layers": (min(size.num_layers, 4) if on_cpu else size.num_layers, text),
            "model.max_len": (context, "as many positions as the context has tokens"),
            "model.dropout": dropout,
            "model.attention_dropout": dropout,
        }
    if kind == "rnn":
        return {
            "model.d_model": (d_model, text),
            "model.hidden_size": (2 * d_model, "twice d_model"),
            "model.dropout": dropout,
        }
    return {"model.max_len": (context, "as many as the context has tokens")} if kind == "one_layer" else {}


def _language_batches(
    stats: CorpusStats, machine: Machine, given: Mapping[str, Any], kind: str, vocab_size: int, context: int
) -> dict[str, tuple[Any, str]]:
    """How much is read for an update, and how often is validated."""
    vocab_size, processes = given_number(given, "tokenizer.vocab_size", vocab_size), machine.num_processes
    tokens_per_batch = given_number(given, "training.tokens_per_batch", 2048 if machine.device == "cpu" else 16384)
    streams = given_number(given, "training.num_streams", -(-32 // processes) * processes)
    found: dict[str, tuple[Any, str]] = {}
    if MODELS[kind].reads == "stream":
        found["training.num_streams"] = (streams, "parallel places of the text")
        tokens_per_update = streams * context
    else:
        found["training.tokens_per_batch"] = (tokens_per_batch, "fits the memory, and updates often enough")
        tokens_per_update = processes * tokens_per_batch
    epoch = updates_per_epoch(tokens_per_epoch(stats, given, vocab_size), given, tokens_per_update)
    found["training.eval_every"] = (epoch, "about once an epoch, at least every 1,000 updates")
    found["training.save_every"] = (epoch, "as often as validated")
    return found
