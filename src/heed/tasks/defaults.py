"""Defaults: what is known of a corpus and a machine when a recipe is completed, and what tasks choose alike.

Each task chooses its own defaults (`Task.defaults`) from a `CorpusStats` and a `Machine`. What is chosen is written to
`recipe.toml` with its reason, so that reruns and resumes use the file and the machine is measured once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import torch

from heed.core.environment import available_memory_bytes, distributed, num_cpus
from heed.nn.device import best_precision


@dataclass(frozen=True)
class CorpusStats:
    """Size and languages of a training corpus."""

    num_rows: int
    characters_per_row: float
    """Characters of the longer side of a row, on average."""
    num_in_parts: int = 0
    """Rows of the further parts of the training data, none of which is held out."""
    num_repeated: int = 0
    """Additional rows of an epoch, because parts are repeated."""
    growth: float = 1.0
    """Target characters per source character, on average."""
    languages: Mapping[str, str] = field(default_factory=dict)
    """Language of each side ("src", "tgt"), from the name of its column or its script; empty where unknown."""

    @property
    def num_all(self) -> int:
        """Rows of all parts."""
        return self.num_rows + self.num_in_parts

    @property
    def num_in_epoch(self) -> int:
        """Rows of an epoch: all parts, with repetitions."""
        return self.num_all + self.num_repeated


@dataclass(frozen=True)
class Machine:
    """The device, memory and measured arithmetic of the machine that trains."""

    device: str
    num_cpus: int
    memory_bytes: int
    precision: str
    bfloat16_gain: float
    num_processes: int = 1
    """Processes that train together."""

    @staticmethod
    def here(device: torch.device) -> Machine:
        """Measure this machine; takes a tenth of a second."""
        precision, gain = best_precision(device)
        memory = available_memory_bytes()
        if device.type == "cuda":
            memory = torch.cuda.get_device_properties(device).total_memory
        return Machine(device.type, num_cpus(), memory, precision, gain, distributed().world_size)

    def render(self) -> str:
        """One line for a person."""
        where = f"{self.num_cpus} CPU cores" if self.device == "cpu" else self.device
        return f"{where}, {self.memory_bytes / 2**30:.0f} GiB, {self.bfloat16_speed}"

    @property
    def bfloat16_speed(self) -> str:
        """How fast bfloat16 is compared with float32, in words."""
        if self.bfloat16_gain < 0.1:
            return "no usable bfloat16 arithmetic"
        return f"bfloat16 {self.bfloat16_gain:.1f} times as fast as float32"

    def advice(self, precision: str) -> str:
        """Warning about a recipe's precision; empty where there is nothing to warn of.

        Some CPUs have bfloat16 instructions that take twice the time of those for float32.
        """
        if precision != "bfloat16" or self.bfloat16_gain > 0.9:
            return ""
        return f"this machine has {self.bfloat16_speed}; --training.precision=float32 takes less time."


@dataclass(frozen=True)
class Choices:
    """Values by recipe key, and the reason for each."""

    values: Mapping[str, Any]
    reasons: Mapping[str, str]


CPU_MINUTES = 45.0
"""Default time limit on a CPU: less than the hour that people wait for."""


def without(chosen: Mapping[str, tuple[Any, str]], given: Mapping[str, Any]) -> Choices:
    """Remove the keys that the user gave; another model kind removes the whole `[model]` table."""
    other_model = given.get("model.kind", chosen["model.kind"][0]) != chosen["model.kind"][0]
    left = {
        key: choice
        for key, choice in chosen.items()
        if key not in given and not (other_model and key.startswith("model.") and key != "model.kind")
    }
    return Choices({k: v for k, (v, _) in left.items()}, {k: reason for k, (_, reason) in left.items()})


def given_number(given: Mapping[str, Any], key: str, otherwise: int) -> int:
    """The number that the user gave, else `otherwise`; the recipe's own check refuses invalid values."""
    value = given.get(key, otherwise)
    return value if isinstance(value, int) and value > 0 else otherwise


def held_out(stats: CorpusStats, given: Mapping[str, Any]) -> dict[str, tuple[Any, str]]:
    """How many rows to hold out for validation, where no validation file is given."""
    if any(value for key, value in given.items() if key.startswith("data.valid_") and key != "data.valid_tag"):
        return {}
    number = max(1, min(1000, stats.num_rows // 4, max(20, stats.num_rows // 20)))
    return {"data.hold_out": (number, "lines for validation, taken out of the training data")}


def num_heads(d_model: int) -> int:
    """The number of heads of at least 64 features that divides `d_model`."""
    return next(heads for heads in range(max(1, d_model // 64), 0, -1) if d_model % heads == 0)


def characters_per_token(vocab_size: int, kind: str = "bpe", shortlist: int = 0) -> float:
    """An estimate before there is a tokenizer: measured on English, German and Swahili with byte-level BPE."""
    if kind in ("word", "char-bigram"):
        return 5.5 if kind == "word" else 4.2 if shortlist else 2.0
    if kind in ("byte", "character"):
        return 1.0
    return 3.0 if vocab_size < 3000 else 3.8 if vocab_size < 12000 else 4.5


def tokens_per_epoch(stats: CorpusStats, given: Mapping[str, Any], vocab_size: int) -> float:
    shortlist = given_number(given, "tokenizer.shortlist", 0)
    per_token = characters_per_token(vocab_size, str(given.get("tokenizer.kind", "bpe")), shortlist)
    return stats.num_in_epoch * (stats.characters_per_row / per_token + 1)


def updates_per_epoch(tokens: float, given: Mapping[str, Any], tokens_per_update: int) -> int:
    return max(20, min(1000, round(tokens / (tokens_per_update * given_number(given, "training.accumulate", 1)))))


def vocabulary(given: Mapping[str, Any], num_subwords: int, corpus: str) -> tuple[int, str]:
    """The size of the vocabulary and why, for the kind of tokenizer that the user named."""
    kind = given.get("tokenizer.kind", "bpe")
    if kind in _VOCABULARIES:
        return _VOCABULARIES[kind]
    return num_subwords, f"{corpus}: the larger the text, the more pieces it fills"


_VOCABULARIES = {
    "word": (30_000, "the most frequent words; the others are unknown"),
    "char-bigram": (30_000, "words of the shortlist, and pairs of characters"),
    "character": (4000, "the most frequent characters; the others are unknown"),
    "byte": (260, "256 bytes and four that are special"),
}
