"""Threads for jobs: one is always ready, so that the event loop never waits until a thread has started.

They are daemons: the end of the process waits for none, whatever it does.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from queue import SimpleQueue

MOST_IDLE = 8
"""Threads that are kept for later jobs."""


class JobThreads:
    """As many threads as there are jobs, and a spare one. Whoever takes the last one starts the next.

    Where the system allows no more threads, work waits until a thread has done what it does.
    """

    def __init__(self) -> None:
        self._work: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._lock = threading.Lock()
        self._num_idle = 0
        self._has_begun = self._is_closed = False

    def run(self, work: Callable[[], None]) -> None:
        """Run something that raises nothing in a thread."""
        self._work.put(work)
        if not self._has_begun:
            self._has_begun = self._start()

    def close(self) -> None:
        """End the idle threads now, and each of the others after its work."""
        with self._lock:
            self._is_closed = True
            for _ in range(self._num_idle):
                self._work.put(None)

    def _start(self) -> bool:
        """Start a thread. Returns whether there is one more."""
        with self._lock:
            if self._is_closed:
                return False
            try:
                threading.Thread(target=self._main, name="heed job", daemon=True).start()
            except RuntimeError:  # the system allows no more
                return False
            self._num_idle += 1
            return True

    def _main(self) -> None:
        while (work := self._work.get()) is not None:
            with self._lock:
                self._num_idle -= 1
                is_last = self._num_idle == 0
            if is_last:
                self._start()
            work()
            del work  # an idle thread keeps nothing in memory
            with self._lock:
                if self._is_closed or self._num_idle >= MOST_IDLE:
                    return
                self._num_idle += 1
