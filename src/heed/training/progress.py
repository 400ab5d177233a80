"""Progress of a training: the counters and scores that a checkpoint keeps, its limits, and detection of divergence."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from heed.core.progress import format_minutes
from heed.data.schedule import Position
from heed.training.config import TrainingConfig
from heed.training.metrics_log import Window
from heed.training.weights import Trigger

DIVERGENCE = 1.0
"""Nats per token above the best loss at which a training diverges."""
DIVERGENT_LINES = 10
"""Consecutive lines of the log after which a divergence is reported."""

MOVING = 0.9
"""Share of the old value in the moving average of -log p (Xu et al. 2015, section 4.1)."""


@dataclass
class Divergence:
    """Watches the training loss over the lines of the log."""

    best: float | None = None
    best_step: int = 0
    lines_above: int = 0

    def update(self, loss: float, step: int) -> str:
        """Add a line of the log; return a warning when a divergence is detected, else "". Ignores a loss of NaN."""
        if not math.isfinite(loss):
            return ""
        if self.best is None or loss < self.best:
            self.best, self.best_step = loss, step
        self.lines_above = self.lines_above + 1 if loss > self.best + DIVERGENCE else 0
        if self.lines_above != DIVERGENT_LINES:
            return ""
        return (
            f"the training diverges: the loss is {loss:.2f} at update {step:,}, and was {self.best:.2f} at update "
            f"{self.best_step:,}. Start again with a lower --training.lr or more --training.warmup_steps. The weights "
            "with the best validation score are kept."
        )


@dataclass
class Progress:
    """Plain values, stored in `state.json` of a checkpoint."""

    step: int = 0
    position: Position = field(default_factory=Position)
    num_tokens: int = 0
    seconds: float = 0.0
    num_validations: int = 0
    validated_at: int = -1
    best_score: float | None = None
    best_step: int = 0
    best_perplexity: float | None = None
    """Tie breaker of the best score."""
    best_on_schedule: float | None = None
    """Best score without the validation at a limit, which a longer training would not have had."""
    best_perplexity_on_schedule: float | None = None
    validations_since_best: int = 0
    """Without the validation at a limit."""
    average: str = ""
    """`training.average`, which the averaged weights follow; empty in checkpoints of older versions."""
    average_updates: int = 0
    trigger: Trigger = field(default_factory=Trigger)
    rate_scale: float = 1.0
    """Factor on the learning rate that follows from the validation scores (schedule "plateau")."""
    skipped_in_a_row: int = 0
    moving_nll: float | None = None
    """Moving average of -log p (nats) of a target over the updates; None before the first."""
    max_positions: int = 0
    divergence: Divergence = field(default_factory=Divergence)
    window: Window = field(default_factory=Window)

    def add_nll(self, nll: float) -> None:
        """Add the mean -log p of a target in an update."""
        self.moving_nll = nll if self.moving_nll is None else MOVING * self.moving_nll + (1 - MOVING) * nll

    def reached_limit(self, config: TrainingConfig) -> str:
        """The limit that ends the training; "" if none is reached."""
        if self.step >= config.max_steps:
            return f"reached {config.max_steps:,} update{'s' * (config.max_steps != 1)} (training.max_steps)"
        if config.max_epochs and self.position.epoch >= config.max_epochs:
            return f"reached {config.max_epochs} epoch{'s' * (config.max_epochs != 1)} (training.max_epochs)"
        if config.max_minutes and self.seconds >= 60 * config.max_minutes:
            return f"reached {format_minutes(config.max_minutes)} (training.max_minutes)"
        if config.patience and self.validations_since_best >= config.patience:
            return f"no better {config.stop_metric} in {config.patience} validations (training.patience)"
        return ""

    def share_done(self, config: TrainingConfig, batches_per_epoch: int) -> float:
        """Share of the training that is done, by the nearest limit; `patience` may end it earlier."""
        shares = [self.step / config.max_steps]
        if config.max_minutes:
            shares.append(self.seconds / (60 * config.max_minutes))
        if config.max_epochs:
            shares.append((self.position.epoch + self.position.batch / batches_per_epoch) / config.max_epochs)
        return min(1.0, max(shares))
