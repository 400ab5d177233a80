"""Which recipe fits this corpus and this machine, and why?

Rules by size of the corpus, device and measured speed of bfloat16. What is chosen is written into
`recipe.toml` with its reason, so that reruns and resumes obey the file and the machine is asked once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch

from heed.core.environment import available_memory_bytes, num_cpus
from heed.nn.device import best_precision


@dataclass(frozen=True)
class Survey:
    """What the chooser knows of a corpus."""

    num_rows: int
    characters_per_row: float
    """Characters of the longer side of a row, on average."""


@dataclass(frozen=True)
class Machine:
    """What the chooser knows of the machine."""

    device: str
    num_cpus: int
    memory_bytes: int
    precision: str
    bfloat16_gain: float

    @staticmethod
    def here(device: torch.device) -> Machine:
        """Ask this machine; takes a tenth of a second."""
        precision, gain = best_precision(device)
        memory = available_memory_bytes()
        if device.type == "cuda":
            memory = torch.cuda.get_device_properties(device).total_memory
        return Machine(device.type, num_cpus(), memory, precision, gain)

    def render(self) -> str:
        """One line for a person."""
        where = f"{self.num_cpus} CPU cores" if self.device == "cpu" else self.device
        return f"{where}, {self.memory_bytes / 2**30:.0f} GiB, bfloat16 {self.bfloat16_gain:.1f} times float32"


@dataclass(frozen=True)
class Choices:
    """Values by recipe key, and the reason for each."""

    values: Mapping[str, Any]
    reasons: Mapping[str, str]


@dataclass(frozen=True)
class Size:
    """What a corpus of at most so many pairs gets."""

    max_rows: int
    vocab_size: int
    d_model: int
    d_ff: int
    num_heads: int
    num_layers: int
    dropout: float


# The second line is what docs/results.md measures (Multi30k); the others are first guesses around it, not yet
# measured. The last line has no bound.
SIZES = (
    Size(10_000, 2000, 256, 512, 4, 3, 0.3),
    Size(60_000, 4000, 256, 1024, 4, 3, 0.3),
    Size(250_000, 8000, 256, 1024, 4, 4, 0.2),
    Size(1_000_000, 16000, 512, 2048, 8, 6, 0.1),
    Size(1 << 62, 32000, 512, 2048, 8, 6, 0.1),
)
CPU_MINUTES = 45.0


def size_for(num_rows: int) -> Size:
    """The line of the table for a corpus."""
    return next(size for size in SIZES if num_rows <= size.max_rows)


def choose_translation(survey: Survey, machine: Machine, given: Mapping[str, Any]) -> Choices:
    """A Transformer for this corpus and machine. `given` are the keys that the user chose; the others fit them."""
    size = size_for(survey.num_rows)
    pairs = f"{survey.num_rows:,} pairs"
    on_cpu = machine.device == "cpu"
    layers = min(size.num_layers, 4) if on_cpu else size.num_layers
    d_model = min(size.d_model, 256) if on_cpu else size.d_model
    small = " (kept small: no GPU)" if on_cpu and (layers, d_model) != (size.num_layers, size.d_model) else ""
    d_model = _given(given, "model.d_model", d_model)
    tokens_per_batch = 4096 if on_cpu else 16384
    epoch = _updates_per_epoch(
        survey,
        _given(given, "tokenizer.vocab_size", size.vocab_size),
        _given(given, "training.tokens_per_batch", tokens_per_batch) * _given(given, "training.accumulate", 1),
    )
    chosen: dict[str, tuple[Any, str]] = {
        **_held_out(survey, given),
        "tokenizer.kind": ("bpe", "byte-level: any text comes back exactly, nothing is unknown"),
        "tokenizer.vocab_size": (size.vocab_size, f"{pairs}: fewer pieces are seen more often each"),
        "model.kind": ("transformer", "the usual choice; --model.kind=rnn_attention is the other"),
        "model.d_model": (d_model, f"{pairs}{small}"),
        "model.d_ff": (min(size.d_ff, 4 * d_model), "inside the feed-forward layers"),
        "model.num_heads": (_num_heads(d_model), "heads of about 64 features"),
        "model.num_encoder_layers": (layers, f"{pairs}{small}"),
        "model.num_decoder_layers": (layers, "as many as in the encoder"),
        "model.norm": ("pre", "trains without a long warm-up"),
        "model.dropout": (size.dropout, f"{pairs}: the smaller the corpus, the more is dropped"),
        "training.tokens_per_batch": (tokens_per_batch, "fits the memory, and updates often enough"),
        "training.precision": (machine.precision, f"bfloat16 is {machine.bfloat16_gain:.1f} times as fast here"),
        "training.lr": (2e-3 if d_model <= 256 else 7e-4, "peak, after the warm-up"),
        "training.warmup_steps": (400 if d_model <= 256 else 4000, "updates"),
        "training.eval_every": (epoch, "about once an epoch, at least every 1,000 updates"),
        "training.save_every": (epoch, "as often as validated"),
        "training.patience": (10, "validations without a better score end the training"),
        "training.stop_metric": ("bleu", "what is wanted, and it goes on rising when the loss no longer falls"),
        "training.average": ("ema", "a mean of the last weights is steadier than the last ones"),
        "training.max_minutes": (CPU_MINUTES, "an hour of a CPU at most; --max-time changes it"),
        "decoding.beam_size": (5, "the usual width"),
    }  # fmt: skip
    if not on_cpu:
        del chosen["training.max_minutes"]
    return _without(chosen, given)


def choose_language_model(survey: Survey, machine: Machine, given: Mapping[str, Any]) -> Choices:
    """A counting model: the one kind of language model there is so far."""
    chosen: dict[str, tuple[Any, str]] = {
        **_held_out(survey, given),
        "tokenizer.kind": ("word", "counting models are compared per word"),
        "tokenizer.vocab_size": (50_000, "the most frequent words; the others are unknown"),
        "tokenizer.min_frequency": (1, "every word counts"),
        "model.kind": ("bigram", "counted, not trained"),
        "training.stop_metric": ("perplexity", "what a language model is measured by"),
    }
    return _without(chosen, given)


CHOOSERS = {"translation": choose_translation, "language-model": choose_language_model}


def fine_tuned(choices: Choices, trained: Mapping[str, Any], given: Mapping[str, Any]) -> Choices:
    """The choices when training begins with the weights of a run: its tokenizer and model, and a lower rate.

    `trained` are the tables of that run's recipe.
    """
    values, reasons = dict(choices.values), dict(choices.reasons)
    inherited = {f"{table}.{name}": value for table in ("tokenizer", "model") for name, value in trained[table].items()}
    for key in [key for key in values if key.startswith(("tokenizer.", "model."))]:
        del values[key], reasons[key]
    inherited["training.lr"] = trained["training"]["lr"] / 4
    for key, value in inherited.items():
        if key not in given:
            values[key] = value
            reasons[key] = "a quarter of the rate of --init" if key == "training.lr" else "as in --init"
    return Choices(values, reasons)


def _without(chosen: Mapping[str, tuple[Any, str]], given: Mapping[str, Any]) -> Choices:
    """The choices that are left when the user's own are taken out; another kind takes its whole table with it."""
    other_model = given.get("model.kind", chosen["model.kind"][0]) != chosen["model.kind"][0]
    left = {
        key: choice
        for key, choice in chosen.items()
        if key not in given and not (other_model and key.startswith("model.") and key != "model.kind")
    }
    return Choices({k: v for k, (v, _) in left.items()}, {k: reason for k, (_, reason) in left.items()})


def _given(given: Mapping[str, Any], key: str, otherwise: int) -> int:
    """A number that the user chose, or the one that would be chosen; nonsense is the recipe's to refuse."""
    value = given.get(key, otherwise)
    return value if isinstance(value, int) and value > 0 else otherwise


def _held_out(survey: Survey, given: Mapping[str, Any]) -> dict[str, tuple[Any, str]]:
    """How many lines to hold out for validation, where no validation data is given."""
    if any(given.get(f"data.valid_{part}") for part in ("src", "tgt", "pairs", "text")):
        return {}
    number = max(1, min(1000, survey.num_rows // 4, max(20, survey.num_rows // 20)))
    return {"data.hold_out": (number, "lines for validation, taken out of the training data")}


def _num_heads(d_model: int) -> int:
    """The number of heads of at least 64 features that divides `d_model`."""
    return next(heads for heads in range(max(1, d_model // 64), 0, -1) if d_model % heads == 0)


def characters_per_token(vocab_size: int) -> float:
    """An estimate before there is a tokenizer: measured on English, German and Swahili with byte-level BPE."""
    return 3.0 if vocab_size < 3000 else 3.8 if vocab_size < 12000 else 4.5


def _updates_per_epoch(survey: Survey, vocab_size: int, tokens_per_batch: int) -> int:
    tokens = survey.num_rows * (survey.characters_per_row / characters_per_token(vocab_size) + 1)
    return max(20, min(1000, round(tokens / tokens_per_batch)))
