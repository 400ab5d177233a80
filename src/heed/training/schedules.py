"""How does the learning rate go up and down? Functions of the update's number, counted from 1."""

from __future__ import annotations

import math
from collections.abc import Callable

from heed.training.config import TrainingConfig

Schedule = Callable[[int], float]


def noam(config: TrainingConfig, d_model: int) -> Schedule:
    """lr · D^-0.5 · min(step^-0.5, step · warmup^-1.5) (Vaswani et al. 2017, equation 3; lr is 1 there)."""
    warmup = max(config.warmup_steps, 1)
    return lambda step: config.lr * d_model**-0.5 * min(step**-0.5, step * warmup**-1.5)


def inverse_sqrt(config: TrainingConfig, d_model: int) -> Schedule:
    """Linear warm-up to lr, then lr · (warmup / step)^0.5."""
    warmup = max(config.warmup_steps, 1)
    return lambda step: config.lr * min(step / warmup, (warmup / step) ** 0.5)


def cosine(config: TrainingConfig, d_model: int) -> Schedule:
    """Linear warm-up to lr, then half a cosine down to zero at max_steps (Loshchilov & Hutter 2017)."""
    warmup, total = config.warmup_steps, max(config.max_steps, config.warmup_steps + 1)

    def rate(step: int) -> float:
        if step <= warmup:
            return config.lr * step / max(warmup, 1)
        progress = min(1.0, (step - warmup) / (total - warmup))
        return config.lr * 0.5 * (1 + math.cos(math.pi * progress))

    return rate


def constant(config: TrainingConfig, d_model: int) -> Schedule:
    """Linear warm-up to lr, then lr."""
    warmup = max(config.warmup_steps, 1)
    return lambda step: config.lr * min(1.0, step / warmup)


SCHEDULES = {"noam": noam, "inverse_sqrt": inverse_sqrt, "cosine": cosine, "constant": constant}
