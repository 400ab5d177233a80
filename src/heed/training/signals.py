"""Signal handlers of a training.

SIGINT, SIGTERM, and the SIGHUP of a closed terminal request a stop: the training finishes the update, or interrupts a
validation, and saves a checkpoint. A second signal ends the process at once.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType


class ValidationInterrupted(Exception):  # noqa: N818, not an error
    """A signal interrupted a validation, which is repeated when the training is resumed."""


@dataclass
class StopRequest:
    """The signal that this process received, and the one that all ranks stop for."""

    signal: int | None = None
    agreed: int | None = None
    in_validation: bool = False

    def __call__(self, number: int, frame: FrameType | None) -> None:
        if self.signal is not None and number == signal.SIGHUP:  # the kernel and the shell may both send one
            return
        if self.signal is not None:
            sys.exit(128 + number)
        self.signal = number
        if self.in_validation:
            raise ValidationInterrupted


def stop_signals() -> list[signal.Signals]:
    """The signals that request a stop, without SIGHUP where it is ignored (`nohup`)."""
    hangup = [] if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN else [signal.SIGHUP]
    return [signal.SIGINT, signal.SIGTERM, *hangup]


@contextmanager
def signal_handlers() -> Iterator[StopRequest]:
    """Install the handlers, and restore the previous ones at the end."""
    stop, previous = StopRequest(), {}
    try:
        for number in stop_signals():
            previous[number] = signal.signal(number, stop)
    except ValueError:  # Python sets handlers in the main thread only
        pass
    try:
        yield stop
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
