"""Pace of jobs: how much of the time they may compute, all together, while others wait for the interpreter.

Threads share one interpreter, and each that computes makes the others wait for it: the worker at every product. So a
job that reads a long text rests now and then.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

SLICE = 0.005
"""Seconds that a job computes before it rests. Most jobs are shorter."""
SHARE = 0.2
"""Maximum share of the time that all jobs with more to do compute."""


class Pace:
    """Gives slices of time to jobs, in the order in which they ask."""

    def __init__(
        self, clock: Callable[[], float] = time.monotonic, sleep: Callable[[float], None] = time.sleep
    ) -> None:
        self._clock = clock
        self._sleep = sleep
        self._next = 0.0  # when the next slice may begin
        self._lock = threading.Lock()

    def rest(self) -> None:
        """Wait for the next slice. Call it from the thread of a job that has used one."""
        with self._lock:
            now = self._clock()
            begin = max(now, self._next)
            self._next = begin + SLICE / SHARE
        self._sleep(begin - now)
