"""Learning rate schedules.

Functions of the update, counted from 1, and of the number of complete epochs before it. "plateau" is constant here; its
factor follows from the validation scores (`Progress.rate_scale`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Protocol

from heed.training.config import TrainingConfig


class Schedule(Protocol):
    """A learning rate schedule."""

    def __call__(self, step: int, epoch: int = 0) -> float:
        """The learning rate of update `step` (from 1) in epoch `epoch` (from 0)."""
        ...


def noam(config: TrainingConfig, d_model: int) -> Schedule:
    """lr · D^-0.5 · min(step^-0.5, step · warmup^-1.5) (Vaswani et al. 2017, equation 3; lr is 1 there)."""
    warmup = max(config.warmup_steps, 1)
    return lambda step, epoch=0: config.lr * d_model**-0.5 * min(step**-0.5, step * warmup**-1.5)


def inverse_sqrt(config: TrainingConfig, d_model: int) -> Schedule:
    """Linear warm-up to lr, then lr · (warmup / step)^0.5."""
    warmup = max(config.warmup_steps, 1)
    return lambda step, epoch=0: config.lr * min(step / warmup, (warmup / step) ** 0.5)


def cosine(config: TrainingConfig, d_model: int) -> Schedule:
    """Linear warm-up to lr, then half a cosine down to zero at max_steps (Loshchilov & Hutter 2017)."""
    warmup, total = config.warmup_steps, max(config.max_steps, config.warmup_steps + 1)

    def rate(step: int, epoch: int = 0) -> float:
        if step <= warmup:
            return config.lr * step / max(warmup, 1)
        progress = min(1.0, (step - warmup) / (total - warmup))
        return config.lr * 0.5 * (1 + math.cos(math.pi * progress))

    return rate


def linear(config: TrainingConfig, d_model: int) -> Schedule:
    """Linear warm-up to lr, then linearly down, to zero after the last of max_steps updates (Mikolov et al. 2013)."""
    warmup, total = config.warmup_steps, max(config.max_steps, config.warmup_steps + 1)
    return lambda step, epoch=0: (
        config.lr * (step / warmup if step < warmup else max(0, total - max(step - 1, warmup)) / (total - warmup))
    )


def constant(config: TrainingConfig, d_model: int) -> Schedule:
    """Linear warm-up to lr, then lr."""
    warmup = max(config.warmup_steps, 1)
    return lambda step, epoch=0: config.lr * min(1.0, step / warmup)


def by_epoch(config: TrainingConfig, d_model: int) -> Schedule:
    """Constant for `decay_after` epochs, then divided by `lr_decay` before each epoch (Zaremba et al. 2014, § 4.1)."""
    peak = constant(config, d_model)
    return lambda step, epoch=0: peak(step) * config.lr_decay ** -max(0, epoch + 1 - config.decay_after)


SCHEDULES: dict[str, Callable[[TrainingConfig, int], Schedule]] = {
    "noam": noam, "inverse_sqrt": inverse_sqrt, "cosine": cosine, "linear": linear, "constant": constant,
    "epochs": by_epoch, "plateau": constant,
}  # fmt: skip
FALL_TO_ZERO = ("cosine", "linear")
"""Schedules whose rate is zero after max_steps updates."""
