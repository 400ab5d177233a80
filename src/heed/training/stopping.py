"""Stop signals and detection of divergence.

SIGINT, SIGTERM and the SIGHUP of a lost terminal let it finish the update, or break a validation off, and save; a
second signal leaves at once. A loss that stays far above its best is told once, with advice: the weights with the best
score are kept in any case.
"""

from __future__ import annotations

import math
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

FAR_ABOVE_BEST = 1.0
"""Nats per token by which a training that diverges is worse than it was."""
FOR_LONG = 10
"""Lines of the log in a row."""


class ValidationInterrupted(Exception):  # noqa: N818, not an error
    """A signal interrupted a validation, which is repeated when the training is resumed."""


@dataclass
class Stop:
    """What a signal has asked for, and what all ranks have agreed on."""

    signal: int | None = None
    agreed: int | None = None
    in_validation: bool = False
    handlers: dict[int, Any] = field(default_factory=dict)

    def __call__(self, number: int, frame: FrameType | None) -> None:
        if self.signal is not None and number == signal.SIGHUP:  # the kernel and the shell may both send one
            return
        if self.signal is not None:
            sys.exit(128 + number)
        self.signal = number
        if self.in_validation:
            raise ValidationInterrupted


def asking_to_stop() -> list[signal.Signals]:
    """The signals that ask a training to stop; SIGHUP is none where it is ignored, as `nohup` has it."""
    hung_up = [] if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN else [signal.SIGHUP]
    return [signal.SIGINT, signal.SIGTERM, *hung_up]


@contextmanager
def signal_handlers() -> Iterator[Stop]:
    """Handle signals: the first one finishes the step and saves, a second one exits at once. `nohup` is respected."""
    stop = Stop()
    try:
        for number in asking_to_stop():
            stop.handlers[int(number)] = signal.signal(number, stop)
    except ValueError:  # not in the main thread: signals are someone else's business
        pass
    try:
        yield stop
    finally:
        for caught, handler in stop.handlers.items():
            signal.signal(caught, handler)


@dataclass
class Divergence:
    """Watches the training loss, one line of the log after the other; kept in a checkpoint."""

    best: float | None = None
    best_step: int = 0
    lines_above: int = 0

    def see(self, loss: float, step: int) -> str:
        """What to tell after this line of the log, once; mostly nothing. A loss that is not finite says nothing."""
        if not math.isfinite(loss):
            return ""
        if self.best is None or loss < self.best:
            self.best, self.best_step = loss, step
        self.lines_above = self.lines_above + 1 if loss > self.best + FAR_ABOVE_BEST else 0
        if self.lines_above != FOR_LONG:
            return ""
        return (
            f"the training diverges: the loss is {loss:.2f} at update {step:,}, it was {self.best:.2f} at update "
            f"{self.best_step:,}. Start again with a lower --training.lr or more --training.warmup_steps; the weights "
            "with the best validation score are kept."
        )
