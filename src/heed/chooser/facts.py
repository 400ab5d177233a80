"""What is known when a recipe is chosen, and what a choice is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch

from heed.core.environment import available_memory_bytes, distributed, num_cpus
from heed.nn.device import best_precision


@dataclass(frozen=True)
class Survey:
    """What the chooser knows of a corpus."""

    num_rows: int
    characters_per_row: float
    """Characters of the longer side of a row, on average."""
    num_in_parts: int = 0
    """Rows of further parts of the training data, of which none is held out."""
    num_repeated: int = 0
    """Further rows of an epoch, because parts are repeated."""
    growth: float = 1.0
    """Characters of the target for each of the source, on average."""
    languages: Mapping[str, str] = field(default_factory=dict)
    """Of each side, by "src" and "tgt", the language that its column is named by, or its script tells; empty: none."""

    @property
    def num_all(self) -> int:
        """Rows of all parts."""
        return self.num_rows + self.num_in_parts

    @property
    def num_in_epoch(self) -> int:
        """Rows of all parts, as often as they come."""
        return self.num_all + self.num_repeated


@dataclass(frozen=True)
class Machine:
    """What the chooser knows of the machine."""

    device: str
    num_cpus: int
    memory_bytes: int
    precision: str
    bfloat16_gain: float
    num_processes: int = 1
    """That train together."""

    @staticmethod
    def here(device: torch.device) -> Machine:
        """Ask this machine; takes a tenth of a second."""
        precision, gain = best_precision(device)
        memory = available_memory_bytes()
        if device.type == "cuda":
            memory = torch.cuda.get_device_properties(device).total_memory
        return Machine(device.type, num_cpus(), memory, precision, gain, distributed().world_size)

    def render(self) -> str:
        """One line for a person."""
        where = f"{self.num_cpus} CPU cores" if self.device == "cpu" else self.device
        return f"{where}, {self.memory_bytes / 2**30:.0f} GiB, bfloat16 {self.bfloat16_gain:.1f} times float32"

    def advice(self, precision: str) -> str:
        """What to say of a recipe's precision: nothing, or that the other one is faster here.

        There are CPUs with instructions for bfloat16 that take twice the time of those for float32.
        """
        if precision != "bfloat16" or self.bfloat16_gain > 0.9:
            return ""
        return (
            f"bfloat16 has {self.bfloat16_gain:.1f} times the speed of float32 on this machine. "
            "--training.precision=float32 takes less time."
        )


@dataclass(frozen=True)
class Choices:
    """Values by recipe key, and the reason for each."""

    values: Mapping[str, Any]
    reasons: Mapping[str, str]


Chooser = Callable[[Survey, Machine, Mapping[str, Any]], Choices]
"""Chooses for a corpus and a machine, around the keys that the user gave."""
