"""Pace of jobs: how much of the time they may compute, all together, while others wait for the interpreter.

Threads share one interpreter, and each that computes makes the others wait for it: the worker at every product. So a
job that reads a long text rests now and then.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

SLICE = 0.005
"""Seconds that a job computes before it rests."""
FREE = 3 * SLICE
"""Seconds that a job computes before its first slice. Most jobs are shorter."""
SHARE = 0.5
"""Maximum share of the time that all jobs with more to do compute."""
STRETCH = 4
"""How many times longer than a slice it may take to compute one, on a busy machine, with a rest that fits."""


class Pace:
    """Gives slices of time to jobs, in the order in which they ask."""

    def __init__(
        self, clock: Callable[[], float] = time.monotonic, sleep: Callable[[float], None] = time.sleep
    ) -> None:
        self._clock = clock
        self._sleep = sleep
        self._next = 0.0  # when the next slice may begin
        self._lock = threading.Lock()

    def rest(self, taken: float = SLICE) -> None:
        """Wait for the next slice. Call it from the thread of a job that has used one, in `taken` seconds.

        Where other programs use the processors, a thread holds the interpreter longer for what it computes, so the
        rests are longer by as much.
        """
        with self._lock:
            now = self._clock()
            begin = max(now, self._next)
            self._next = begin + min(max(taken, SLICE), STRETCH * SLICE) / SHARE
        self._sleep(begin - now)


class Slices:
    """The slices of one job. Its `rest_if_due` costs next to nothing until it can be due."""

    def __init__(
        self, pace: Pace, clock: Callable[[], float] = time.monotonic, computed: Callable[[], float] = time.thread_time
    ) -> None:
        self._pace = pace
        self._clock = clock
        self._computed = computed  # asks the system, which takes several microseconds
        self._allowed = FREE
        self._rested: float | None = None  # what the thread had computed when it last rested, or began
        self._begun = clock()
        self._due = self._begun + SLICE  # at the earliest

    def rest_if_due(self) -> None:
        """Rest if the thread of this job has computed for a slice. Call it from that thread."""
        now = self._clock()
        if now < self._due:
            return
        computed = self._computed()
        if self._rested is None:  # what it computed for jobs before this one does not count
            self._rested, self._begun = computed, now
        used = computed - self._rested
        if used > self._allowed:
            self._pace.rest((now - self._begun) * SLICE / used)
            self._rested, self._begun, used, self._allowed = self._computed(), self._clock(), 0.0, SLICE
        self._due = self._clock() + max(self._allowed - used, 0.1 * SLICE)
