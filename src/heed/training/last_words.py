"""Last words of a rank: the message and the exit after another rank was lost.

The thread that watches the others interrupts the main thread, which ends with an error as with any other. A main thread
that does not listen, because it waits in a library for the process that is gone, is not waited for long.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from heed.core.errors import HeedError
from heed.core.progress import message

PATIENCE = 5.0
"""Seconds that the main thread has to end by itself; less than the launcher gives the process."""


class LastWords:
    """Ends this process with a message, unless it ends by itself."""

    def __init__(self) -> None:
        self._sentence = ""
        self._over = threading.Event()
        self._main = threading.main_thread()
        self._interrupts = threading.current_thread() is self._main

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Raise HeedError in the main thread when `say` is called, until `over` is called or the with-block ends."""
        before = signal.signal(signal.SIGUSR1, self._raise) if self._interrupts else None
        try:
            yield
        finally:
            self.over()
            if self._interrupts:
                signal.signal(signal.SIGUSR1, before)

    def over(self) -> None:
        """This process ends by itself."""
        self._over.set()

    def say(self, sentence: str) -> None:
        """Interrupt the main thread; end the process when that does not help."""
        self._sentence = sentence
        if self._interrupts and self._main.ident is not None and not self._over.is_set():
            signal.pthread_kill(self._main.ident, signal.SIGUSR1)
        threading.Thread(target=self._insist, name="last words", daemon=True).start()

    def _raise(self, number: int, frame: FrameType | None) -> None:
        if not self._over.is_set():
            raise HeedError(self._sentence)

    def _insist(self) -> None:
        if not self._over.wait(PATIENCE):
            message(f"error: {self._sentence}")
            os._exit(HeedError.exit_code)
