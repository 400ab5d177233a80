"""The worker: one thread that owns the models and runs all of PyTorch's searches and other calls in turn.

Searches that an engine can make have threads of their own (`heed.serve.engine.engine_queue`).

Other threads submit tickets and calls. If the worker dies, it is restarted: work in progress gets an error, and waiting
work is kept.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, TypeVar

from heed.core.allocator import give_memory_back
from heed.core.errors import HeedError
from heed.serve.engine.engine_queue import EngineQueue
from heed.serve.engine.scheduler import Scheduler, Ticket
from heed.serve.errors import ApiError
from heed.serve.telemetry import Log, Metrics

T = TypeVar("T")

STALE = 10.0
"""Seconds without a turn after which the worker counts as stuck."""
TOO_MANY_FAILURES = 5
"""Consecutive failures after which the model is at fault rather than the requests."""
IDLE = 1.0
"""Seconds between two turns without work."""
LONGEST_WAIT = 30.0
"""Maximum seconds before a worker that keeps dying is restarted."""


@dataclass(eq=False)
class _Call:
    """A call that needs a model, other than a search."""

    work: Callable[[], Any]
    future: Future[Any]

    def run(self) -> None:
        """Run it, unless it has been cancelled."""
        if not self.future.set_running_or_notify_cancel():
            return
        try:
            self.future.set_result(self.work())
        except Exception as error:
            self.future.set_exception(error)


class Worker:
    """The thread and its queues."""

    def __init__(self, warm_up: Callable[[], None], metrics: Metrics, log: Log) -> None:
        """`warm_up` runs every model once, in the thread, before any work."""
        self._warm_up = warm_up
        self._metrics = metrics
        self._log = log
        self._wake = threading.Condition()
        self._commands: deque[Callable[[Scheduler], None]] = deque()
        self._calls: deque[_Call] = deque()
        self._call: _Call | None = None
        self._num_submitted = 0  # tickets not yet given to the scheduler
        self._num_waiting = 0  # tickets that the scheduler has not started
        self._scheduler = Scheduler()
        self._engines = EngineQueue(self._schedule, lambda error: log.error("engine_failed", error))
        self._thread: threading.Thread | None = None
        self._beat = time.monotonic()
        self._is_stopping = False
        self._has_worked = False  # since memory was released
        self.num_deaths = 0
        """Deaths since the last turn."""
        self._died_at = 0.0
        self._failures = 0
        self.is_warm = False
        """Whether every model has run since the thread was started."""

    # --- called from other threads -------------------------------------------------------------------

    def submit(self, tickets: Sequence[Ticket]) -> None:
        """Queue searches. Outcomes are delivered in the worker's thread or in one of the engines."""
        by_engine = [ticket for ticket in tickets if self._engines.takes(ticket)]
        if len(by_engine) < len(tickets):
            self._schedule([ticket for ticket in tickets if ticket not in by_engine])
        self._engines.submit(by_engine)

    def _schedule(self, tickets: Sequence[Ticket]) -> None:
        """Queue searches of PyTorch."""

        def take(scheduler: Scheduler) -> None:
            self._num_submitted -= len(tickets)
            for ticket in tickets:
                scheduler.submit(ticket)

        with self._wake:
            self._num_submitted += len(tickets)
            self._commands.append(take)
            self._wake.notify()

    def cancel(self, tickets: Sequence[Ticket]) -> None:
        """Cancel searches."""
        self._engines.cancel(tickets)

        def forget(scheduler: Scheduler) -> None:
            for ticket in tickets:
                scheduler.cancel(ticket)

        with self._wake:
            self._commands.append(forget)
            self._wake.notify()

    def call(self, work: Callable[[], T]) -> Future[T]:
        """Run something else that needs a model, between two steps."""
        future: Future[T] = Future()
        with self._wake:
            self._calls.append(_Call(work, future))
            self._wake.notify()
        return future

    @property
    def num_waiting(self) -> int:
        """Searches that have not started."""
        return self._num_waiting + self._num_submitted + self._engines.num_waiting

    @property
    def heartbeat_age(self) -> float:
        """Seconds since the last turn."""
        return time.monotonic() - self._beat

    @property
    def trouble(self) -> str | None:
        """The problem of the worker; None if it works."""
        if self._thread is None or not self._thread.is_alive():
            return "the worker has died and is being restarted"
        if not self.is_warm:
            return "the worker is warming up"
        if self.heartbeat_age > STALE:
            return "the worker is stuck"
        if self._failures >= TOO_MANY_FAILURES:
            return "the last searches all failed"
        return None

    # --- life cycle ----------------------------------------------------------------------------------

    def start(self) -> None:
        """Start the thread."""
        self._is_stopping = False
        self._beat = time.monotonic()
        self._thread = threading.Thread(target=self._main, name="heed worker", daemon=True)
        self._thread.start()

    def stop(self, timeout: float = 5.0) -> None:
        """Stop after the work in progress, or after the time-out."""
        with self._wake:
            self._is_stopping = True
            self._wake.notify()
        self._engines.stop()
        if self._thread is not None:
            self._thread.join(timeout)

    def revive(self) -> None:
        """Restart a dead thread, after a pause if it keeps dying. Call it regularly."""
        if self._thread is None or self._thread.is_alive() or self._is_stopping:
            return
        if time.monotonic() - self._died_at < min(LONGEST_WAIT, float(self.num_deaths - 1)):
            return
        self._metrics.deaths.inc()
        self._log.event("worker_restarted")
        self.start()

    def _main(self) -> None:
        try:
            self._warm_up()
            self.is_warm = True
            while self._turn():
                self.num_deaths = 0
        except BaseException as error:  # even SystemExit must be logged
            self._log.error("worker_died", error)
            self.num_deaths += 1
        finally:
            self.is_warm = False
            self._died_at = time.monotonic()
            self._clean_up()

    def _clean_up(self) -> None:
        """Fail the work in progress, and keep what waits."""
        lost = ApiError(500, "The worker died while it handled this request.")
        old, self._scheduler = self._scheduler, Scheduler()
        call, self._call = self._call, None
        if call is not None and not call.future.done():
            call.future.set_exception(lost)
        for ticket in old.tickets:
            if ticket.has_departed:
                ticket.deliver(lost)
            else:
                self._scheduler.submit(ticket)

    def _turn(self) -> bool:
        """Take new work, and run one step. Returns False to stop."""
        with self._wake:
            if not self._commands and not self._calls and self._scheduler.is_idle:
                if self._is_stopping:
                    return False
                if not self._wake.wait(IDLE) and self._has_worked:
                    give_memory_back()  # a busy time leaves memory that a quiet one does not need
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
        """Record an outcome. Failures that are not the request's own fault are counted."""
        if failure is None:
            self._failures = 0
        elif not isinstance(failure, HeedError | ApiError):
            self._failures += 1
            self._metrics.failures.inc()
            self._log.error("search_failed", failure)
