"""Default settings: the statistics of a corpus and a machine that they depend on, and the choices that tasks share.

Each task chooses its own defaults (`Task.defaults`) from a `CorpusStats` and a `Machine`. The choices are written to
`recipe.toml` with their reasons, so that the machine is measured once, and reruns and resumes use the file.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from heed.core.environment import available_memory_bytes, distributed, num_cpus
from heed.nn.device import best_precision

Chosen = dict[str, tuple[Any, str]]
"""A value and the reason for it, by recipe key."""


@dataclass(frozen=True)
class CorpusStats:
    """Size and languages of a training corpus."""

    num_rows: int
    characters_per_row: float
    """Mean number of characters of the longer side of a row."""
    num_in_parts: int = 0
    """Rows in the further parts of the training data, which are never held out."""
    num_repeated: int = 0
    """Additional rows of an epoch, because parts are repeated."""
    growth: float = 1.0
    """Mean number of target characters per source character."""
    languages: Mapping[str, str] = field(default_factory=dict)
    """Language of each side ("src", "tgt"), from the name of its column or its script; empty if unknown."""
    measured: Mapping[str, float] = field(default_factory=dict)
    """All statistics of the diagnosis (`Diagnosis.statistics`)."""

    @property
    def num_all(self) -> int:
        """Rows of all parts."""
        return self.num_rows + self.num_in_parts

    @property
    def num_in_epoch(self) -> int:
        """Rows of an epoch: all parts, with repetitions."""
        return self.num_all + self.num_repeated

    def of_share(self, share: float) -> CorpusStats:
        """The statistics of a random share of the rows."""
        if share == 1:
            return self
        numbers = {name: round(share * getattr(self, name)) for name in ("num_in_parts", "num_repeated")}
        return replace(self, num_rows=max(1, round(share * self.num_rows)), **numbers)


@dataclass(frozen=True)
class Machine:
    """Device, memory and arithmetic of the machine that trains."""

    device: str
    num_cpus: int
    memory_bytes: int
    precision: str
    bfloat16_gain: float
    num_processes: int = 1
    """Processes that train together."""

    @staticmethod
    def here(device: torch.device) -> Machine:
        """Measure this machine, which takes a tenth of a second."""
        precision, gain = best_precision(device)
        memory = available_memory_bytes()
        if device.type == "cuda":
            memory = torch.cuda.get_device_properties(device).total_memory
        return Machine(device.type, num_cpus(), memory, precision, gain, distributed().world_size)

    def render(self) -> str:
        """One line of text."""
        processor = f"{self.num_cpus} CPU cores" if self.device == "cpu" else self.device
        return f"{processor}, {self.memory_bytes / 2**30:.0f} GiB, {self.bfloat16_speed}"

    @property
    def bfloat16_speed(self) -> str:
        """Speed of bfloat16 relative to float32, in words."""
        if self.bfloat16_gain < 0.1:
            return "no usable bfloat16 arithmetic"
        return f"bfloat16 {self.bfloat16_gain:.1f} times as fast as float32"

    def advice(self, precision: str) -> str:
        """Warning about a recipe's precision, or "": some CPUs have bfloat16 instructions that are half as fast."""
        if precision != "bfloat16" or self.bfloat16_gain > 0.9:
            return ""
        return f"this machine has {self.bfloat16_speed}; --training.precision=float32 takes less time."


@dataclass(frozen=True)
class Choices:
    """Values by recipe key, and the reason for each."""

    values: Mapping[str, Any]
    reasons: Mapping[str, str]


@dataclass(frozen=True)
class TextModelSize:
    """Sizes of a model of running text, for texts of at most `max_characters`."""

    max_characters: float
    vocab_size: int
    d_model: int
    num_layers: int
    length: int
    """Tokens that the model reads at once."""
    dropout: float

    @staticmethod
    def fitting(sizes: Sequence[TextModelSize], num_characters: float) -> TextModelSize:
        """The first size for so long a text."""
        return next(size for size in sizes if num_characters <= size.max_characters)


CPU_MINUTES = 45.0
"""Default time limit on a CPU."""
WARM_UP = "training.warmup_steps"
SCHEDULE = ("training.optimizer", "training.lr", WARM_UP)
"""Settings that depend on the number of updates."""
NOAM_FACTOR = 1.0
"""training.lr of the Noam schedule as published (see heed.training.schedules)."""
WARM_UPS = (800, 400, 200, 100, 50, 25)
"""Lengths of a shortened warm-up. After 440 updates, BLEU was 7.2 with a warm-up of 100 and 6.0 with 800."""
TABLES = ("data", "tokenizer", "model", "head", "training", "decoding")
"""Order in which choices are listed."""


def without(chosen: Chosen, given: Mapping[str, Any], any_kind: Mapping[str, tuple[Any, str]] = {}) -> Choices:
    """Remove the keys that the user gave; another model kind removes all of `[model]` but the choices `any_kind`.

    With the user's choice of the Noam schedule, the rate is a factor on the published one.
    """
    kind, _ = chosen["model.kind"]
    if given.get("model.kind", kind) != kind:
        chosen = {key: choice for key, choice in chosen.items() if not key.startswith("model.")}
    if given.get("training.schedule") == "noam" and "training.lr" in chosen:
        chosen = {**chosen, "training.lr": (NOAM_FACTOR, "a factor: the rate as published")}
    left = {key: choice for key, choice in {**chosen, **any_kind}.items() if key not in given}
    keys = sorted(left, key=lambda key: TABLES.index(key.split(".")[0]))
    return Choices({key: left[key][0] for key in keys}, {key: left[key][1] for key in keys})


def given_number(given: Mapping[str, Any], key: str, default: int) -> int:
    """The user's number, or `default` where it is missing or invalid; the check of the recipe reports invalid ones."""
    value = given.get(key, default)
    return value if isinstance(value, int) and value > 0 else default


def held_out(stats: CorpusStats, given: Mapping[str, Any]) -> Chosen:
    """Number of rows to hold out for validation; empty if a validation file is given."""
    if any(value for key, value in given.items() if key.startswith("data.valid_") and key != "data.valid_tag"):
        return {}
    number = max(1, min(1000, stats.num_rows // 4, max(20, stats.num_rows // 20)))
    return {"data.hold_out": (number, "lines for validation, held out of the training data")}


def trained_model_choices(
    stats: CorpusStats, machine: Machine, given: Mapping[str, Any], vocab_size: tuple[int, str], eval_every: int
) -> Chosen:
    """The choices for a model that is trained by gradients, whatever its task."""
    chosen: Chosen = {
        **held_out(stats, given),
        "tokenizer.kind": ("bpe", "byte-level: text is restored exactly, and nothing is unknown"),
        "tokenizer.vocab_size": vocab_size,
        "training.precision": (machine.precision, machine.bfloat16_speed),
        "training.eval_every": (eval_every, "about once an epoch, at least every 1,000 updates"),
        "training.save_every": (eval_every, "with each validation"),
        "training.average": ("ema", "averaged weights are better than the last ones (measured)"),
    }
    if machine.device == "cpu":
        chosen["training.max_minutes"] = (CPU_MINUTES, "less than an hour of a CPU; --max-time changes it")
    return chosen


def shorter_warm_up(warmup_steps: int, num_updates: float, free: Collection[str]) -> Chosen:
    """A warm-up of at most a quarter of a training's updates; empty if it is short enough or not `free` to choose."""
    if WARM_UP not in free or num_updates >= 4 * warmup_steps:
        return {}
    steps = next((steps for steps in WARM_UPS if steps <= num_updates / 4), max(1, int(num_updates / 4)))
    return {WARM_UP: (steps, "updates; a quarter of those that the limit allows")}


def num_heads(d_model: int) -> int:
    """The number of heads of at least 64 features that divides `d_model`."""
    return next(heads for heads in range(max(1, d_model // 64), 0, -1) if d_model % heads == 0)


def characters_per_token(vocab_size: int, kind: str = "bpe", shortlist: int = 0) -> float:
    """Estimate without a tokenizer, measured on English, German and Swahili with byte-level BPE."""
    if kind in ("word", "char-bigram"):
        return 5.5 if kind == "word" else 4.2 if shortlist else 2.0
    if kind in ("byte", "character"):
        return 1.0
    return 3.0 if vocab_size < 3000 else 3.8 if vocab_size < 12000 else 4.5


def tokens_per_epoch(stats: CorpusStats, given: Mapping[str, Any], vocab_size: int) -> float:
    """Estimated number of tokens of an epoch."""
    shortlist = given_number(given, "tokenizer.shortlist", 0)
    per_token = characters_per_token(vocab_size, str(given.get("tokenizer.kind", "bpe")), shortlist)
    return stats.num_in_epoch * (stats.characters_per_row / per_token + 1)


def updates_per_epoch(tokens: float, given: Mapping[str, Any], tokens_per_update: int) -> int:
    """Updates of an epoch, between 20 and 1,000."""
    return max(20, min(1000, round(tokens / (tokens_per_update * given_number(given, "training.accumulate", 1)))))


def vocabulary(given: Mapping[str, Any], num_subwords: int, corpus: str) -> tuple[int, str]:
    """Size of the vocabulary for the user's kind of tokenizer, and the reason."""
    kind = given.get("tokenizer.kind", "bpe")
    if kind in _VOCABULARIES:
        return _VOCABULARIES[kind]
    return num_subwords, f"{corpus}: more pieces for a larger corpus"


_VOCABULARIES = {
    "word": (30_000, "the most frequent words; others are unknown"),
    "char-bigram": (30_000, "words of the shortlist, and pairs of characters"),
    "character": (4000, "the most frequent characters; others are unknown"),
    "byte": (260, "256 bytes and four special tokens"),
}
