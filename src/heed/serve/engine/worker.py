"""Who owns the models? One thread, which makes the searches of all clients, and what else needs a model, in turn.

Others hand it tickets and calls, and it delivers. When it dies, of whatever, it is started again: what was under way
gets an error, what waits goes on waiting.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, TypeVar

from heed.core.errors import HeedError
from heed.nn.device import give_memory_back
from heed.serve.engine.scheduler import Scheduler, Ticket
from heed.serve.errors import ApiError
from heed.serve.telemetry import Log, Metrics

T = TypeVar("T")

STALE = 10.0
"""Seconds without a turn after which a worker counts as stuck."""
TOO_MANY_FAILURES = 5
"""So many searches that fail one after the other mean that the model fails, and not the request."""
IDLE = 1.0
"""Seconds between two turns of a worker without work."""
LONGEST_WAIT = 30.0
"""Seconds before a worker that dies again and again is started once more."""


@dataclass(eq=False)
class _Call:
    """Something to be done with a model, apart from searches."""

    work: Callable[[], Any]
    future: Future[Any]

    def run(self) -> None:
        """Do it, unless nobody waits any longer."""
        if not self.future.set_running_or_notify_cancel():
            return
        try:
            self.future.set_result(self.work())
        except Exception as error:
            self.future.set_exception(error)


class Worker:
    """The thread, and what it is asked to do."""

    def __init__(
        self, warm_up: Callable[[], None], metrics: Metrics, log: Log,
        make_scheduler: Callable[[], Scheduler] = Scheduler,
    ) -> None:  # fmt: skip
        """`warm_up` uses every model once, in the thread, before it takes work."""
        self._warm_up = warm_up
        self._metrics = metrics
        self._log = log
        self._make_scheduler = make_scheduler
        self._wake = threading.Condition()
        self._commands: deque[Callable[[Scheduler], None]] = deque()
        self._calls: deque[_Call] = deque()
        self._call: _Call | None = None
        self._num_submitted = 0  # tickets that the scheduler has not got yet
        self._num_waiting = 0  # those that it has got, and that have not departed
        self._scheduler = make_scheduler()
        self._thread: threading.Thread | None = None
        self._beat = time.monotonic()
        self._is_stopping = False
        self._has_worked = False  # since memory was given back
        self._deaths = 0
        self._died_at = 0.0
        self._failures = 0
        self.is_warm = False
        """Whether every model has worked since the thread was started."""

    # --- asked from other threads --------------------------------------------------------------------

    def submit(self, tickets: Sequence[Ticket]) -> None:
        """Queue searches; each ticket gets its outcome in the worker's thread."""

        def take(scheduler: Scheduler) -> None:
            self._num_submitted -= len(tickets)
            for ticket in tickets:
                scheduler.submit(ticket)

        with self._wake:
            self._num_submitted += len(tickets)
            self._commands.append(take)
            self._wake.notify()

    def cancel(self, tickets: Sequence[Ticket]) -> None:
        """Nobody waits for these any longer."""

        def forget(scheduler: Scheduler) -> None:
            for ticket in tickets:
                scheduler.cancel(ticket)

        with self._wake:
            self._commands.append(forget)
            self._wake.notify()

    def call(self, work: Callable[[], T]) -> Future[T]:
        """Do something else with a model, between two steps."""
        future: Future[T] = Future()
        with self._wake:
            self._calls.append(_Call(work, future))
            self._wake.notify()
        return future

    @property
    def num_waiting(self) -> int:
        """Searches that have not departed."""
        return self._num_waiting + self._num_submitted

    @property
    def heartbeat_age(self) -> float:
        """Seconds since the last turn."""
        return time.monotonic() - self._beat

    @property
    def num_deaths(self) -> int:
        """How often it has died since its last turn."""
        return self._deaths

    @property
    def trouble(self) -> str | None:
        """What is wrong with the worker; None when nothing is."""
        if self._thread is None or not self._thread.is_alive():
            return "the worker has died and is started again"
        if not self.is_warm:
            return "the worker is warming up"
        if self.heartbeat_age > STALE:
            return "the worker is stuck"
        if self._failures >= TOO_MANY_FAILURES:
            return "the last searches all failed"
        return None

    # --- living and dying ----------------------------------------------------------------------------

    def start(self) -> None:
        """Begin to work."""
        self._is_stopping = False
        self._beat = time.monotonic()
        self._thread = threading.Thread(target=self._main, name="heed worker", daemon=True)
        self._thread.start()

    def stop(self, timeout: float = 5.0) -> None:
        """End when what is under way is done, or after the time-out."""
        with self._wake:
            self._is_stopping = True
            self._wake.notify()
        if self._thread is not None:
            self._thread.join(timeout)

    def revive(self) -> bool:
        """Start again when the thread has died; to be asked now and then. Whether it did."""
        if self._thread is None or self._thread.is_alive() or self._is_stopping:
            return False
        if time.monotonic() - self._died_at < min(LONGEST_WAIT, float(self._deaths - 1)):
            return False
        self._metrics.deaths.inc()
        self._log.event("worker_restarted")
        self.start()
        return True

    def _main(self) -> None:
        try:
            self._warm_up()
            self.is_warm = True
            while self._turn():
                self._deaths = 0
        except BaseException as error:  # also what would end an interpreter must end in words
            self._log.error("worker_died", error)
            self._deaths += 1
        finally:
            self.is_warm = False
            self._died_at = time.monotonic()
            self._bury()

    def _bury(self) -> None:
        """What was under way fails; what waits is handed on."""
        lost = ApiError("The worker died while it was at this request.")
        old, self._scheduler = self._scheduler, self._make_scheduler()
        call, self._call = self._call, None
        if call is not None and not call.future.done():
            call.future.set_exception(lost)
        for ticket in old.tickets:
            if ticket.has_departed:
                ticket.deliver(lost)
            else:
                self._scheduler.submit(ticket)

    def _turn(self) -> bool:
        """Take what came, and go one step; whether to go on."""
        with self._wake:
            if not self._commands and not self._calls and self._scheduler.is_idle:
                if self._is_stopping:
                    return False
                if not self._wake.wait(IDLE) and self._has_worked:
                    give_memory_back()  # a busy hour leaves much that the next quiet one does not need
                    self._has_worked = False
            commands = list(self._commands)
            self._commands.clear()
            self._call = self._calls.popleft() if self._calls else None
        self._beat = time.monotonic()
        for command in commands:
            command(self._scheduler)
        if self._call is not None:
            self._call.run()
            self._call = None
        if not self._scheduler.is_idle:
            num_rows = self._scheduler.step()
            self._has_worked = True
            if num_rows:
                self._metrics.stepped(num_rows)
        self._num_waiting = self._scheduler.num_waiting
        self._metrics.queue.set(self.num_waiting)
        return True

    def delivered(self, failure: Exception | None) -> None:
        """To be told of each outcome: failures that are not the request's own are counted."""
        if failure is None:
            self._failures = 0
        elif not isinstance(failure, HeedError | ApiError):
            self._failures += 1
            self._metrics.failures.inc()
            self._log.error("search_failed", failure)
