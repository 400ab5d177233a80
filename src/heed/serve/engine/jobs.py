"""How does one request of a client become work, and end: done, refused, too late, or left?

The work of a request is a plain function in a thread of its own, which waits for the worker's searches. While it waits
the server watches its client and the clock; when either gives up, so does the work, and its rows go to others.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as FutureTimeout
from functools import partial
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

from starlette.requests import Request as HttpRequest

from heed.core.errors import HeedError
from heed.decoding.hypothesis import Hypothesis
from heed.decoding.options import SearchOptions
from heed.decoding.request import Constraints, Request
from heed.decoding.translator import ModelTranslator
from heed.documents.text_translator import Step, Watch
from heed.serve.engine.scheduler import Outcome, Ticket
from heed.serve.engine.worker import Worker
from heed.serve.errors import ApiError, BadRequestError, LateError, OverloadError
from heed.serve.limits import Limits
from heed.serve.logs import Log
from heed.serve.metrics import Metrics

T = TypeVar("T")

NUM_APART = 8
"""Sentences that are searched at once where no others can be searched with them."""
WINDOW = 64
"""Sentences that one request has in the worker's hands at once."""
MAX_TERM_STEPS = 64
"""Tokens of all the terms that one output must hold: each of them makes its beam wider."""
RETRY_AFTER = 2
"""Seconds that a client is asked to wait when there is no room."""


class ClientLeftError(Exception):
    """The client has left, or the work was given up."""


class Job:
    """The work of one request of a client. Its methods block: they are for the thread of the work."""

    def __init__(self, worker: Worker, limits: Limits, metrics: Metrics, seconds: float) -> None:
        self._worker = worker
        self._metrics = metrics
        self._limits = limits
        self._admitted = time.monotonic()
        self._deadline = self._admitted + seconds
        self._inbox: SimpleQueue[tuple[Ticket | None, Outcome | None, list[int] | None]] = SimpleQueue()
        self._is_cancelled = threading.Event()
        self._has_had_a_turn = False

    def cancel(self) -> None:
        """Give up; asked from another thread."""
        self._is_cancelled.set()
        self._inbox.put((None, None, None))

    def translate(
        self, step: Step, texts: Sequence[str], options: SearchOptions, constraints: Sequence[Constraints] | None,
        watch: Watch | None = None,
    ) -> list[Hypothesis]:  # fmt: skip
        """What a model makes of each text, its searches made by the worker together with those of all other clients.

        What the guard says of the outputs is counted.
        """

        def find(requests: Sequence[Request], options: SearchOptions) -> dict[Request, Hypothesis]:
            return self.find(step.name, step.translator, requests, options, watch)

        found = step.translator.searched_by(find).translate(texts, options, constraints)
        for hypothesis in found:
            for flag in hypothesis.flags:
                self._metrics.flags.labels(step.name, flag).inc()
        return found

    def find(
        self, model: str, translator: ModelTranslator, requests: Sequence[Request], options: SearchOptions,
        watch: Watch | None = None,
    ) -> dict[Request, Hypothesis]:  # fmt: skip
        """What the worker finds for each."""
        found = self._find(translator, requests, options, watch)
        self._metrics.found(model, found)
        return found

    def call(self, work: Callable[[], T]) -> T:
        """Something else that needs a model. Raises what it raises."""
        future = self._worker.call(work)
        try:
            while True:
                self._has_had_a_turn |= future.running()
                self._require_time()
                try:
                    return future.result(timeout=0.1)
                except FutureTimeout:
                    if future.done():  # the work itself ran into a time-out
                        raise
                    if self._is_cancelled.is_set():
                        raise ClientLeftError from None
        finally:
            future.cancel()  # where nobody waits for it any longer; what is done or under way goes on

    def _find(
        self, translator: ModelTranslator, requests: Sequence[Request], options: SearchOptions, watch: Watch | None
    ) -> dict[Request, Hypothesis]:
        self._check(translator, requests)
        if options.coverage_penalty:  # looks at attention, and so flies alone, a few at a time for others to have turns
            apart: dict[Request, Hypothesis] = {}
            for first in range(0, len(requests), NUM_APART):
                some = requests[first : first + NUM_APART]
                apart |= self.call(partial(translator.in_batches, some, options))
            return apart
        if requests and not self._has_had_a_turn and self._worker.num_waiting >= self._limits.queue:
            raise OverloadError("The queue is full; try again later.", retry_after=RETRY_AFTER)
        found: dict[Request, Hypothesis] = {}
        todo, missing = list(reversed(requests)), dict[Ticket, Request]()
        try:
            while todo or missing:
                fresh = [
                    self._ticket(translator, todo.pop(), options, watch)
                    for _ in range(min(len(todo), WINDOW - len(missing)))
                ]
                missing.update((ticket, ticket.request) for ticket in fresh)
                if fresh:
                    self._worker.submit(fresh)
                ticket, outcome = self._next(missing, watch)
                request = missing.pop(ticket)
                found[request] = self._received(translator, outcome, options)
        finally:
            if missing:
                self._worker.cancel(list(missing))
        return found

    def _check(self, translator: ModelTranslator, requests: Sequence[Request]) -> None:
        """What can be refused before it costs anything."""
        most = self._limits.sentence_tokens
        for request in requests:
            if translator.num_steps(request) > MAX_TERM_STEPS:  # a term that cannot be written is told here
                raise BadRequestError("Too many terms must stand in one sentence.", "glossary")
            length = len(request.source) + len(request.prefix)
            if length > most:
                raise BadRequestError(
                    f"A sentence or prompt has {length:,} tokens; at most {most:,} are taken.", "text"
                )

    def _ticket(
        self, translator: ModelTranslator, request: Request, options: SearchOptions, watch: Watch | None
    ) -> Ticket:
        ticket = Ticket(
            translator, request, options, self, deliver=lambda outcome: self._inbox.put((ticket, outcome, None))
        )
        if watch is not None:
            ticket.watch = lambda ids: self._inbox.put((ticket, None, ids))
        return ticket

    def _next(self, missing: dict[Ticket, Request], watch: Watch | None) -> tuple[Ticket, Outcome]:
        """The next outcome; what is so far seen of others is told to the watch."""
        while True:
            if not self._has_had_a_turn:
                self._has_had_a_turn = any(ticket.has_departed for ticket in missing)
            self._require_time()
            try:
                ticket, outcome, ids = self._inbox.get(timeout=0.5)
            except Empty:
                continue
            if self._is_cancelled.is_set():
                raise ClientLeftError
            if ticket is None or ticket not in missing:
                continue
            if outcome is not None:
                self._has_had_a_turn = True
                return ticket, outcome
            if watch is not None and ids is not None:
                watch(missing[ticket], ids)

    def _require_time(self) -> None:
        now = time.monotonic()
        if now > self._deadline:
            raise LateError("The request took too long.")
        if not self._has_had_a_turn and now > self._admitted + self._limits.queue_seconds and self._worker.num_waiting:
            raise OverloadError("No turn came in time; try again later.", retry_after=RETRY_AFTER)

    def _received(self, translator: ModelTranslator, outcome: Outcome, options: SearchOptions) -> Hypothesis:
        failure = outcome if isinstance(outcome, Exception) else None
        self._worker.delivered(failure)
        if failure is not None:
            raise (
                failure if isinstance(failure, HeedError | ApiError) else ApiError("The model failed at this request.")
            ) from failure
        assert not isinstance(outcome, Exception)
        return translator.best_of(outcome, options)


class Jobs:
    """Admits requests, as many as there is room for."""

    def __init__(self, worker: Worker, limits: Limits, metrics: Metrics, log: Log) -> None:
        self._worker = worker
        self._limits = limits
        self._metrics = metrics
        self._log = log
        self._pool = ThreadPoolExecutor(limits.queue, thread_name_prefix="heed job")
        self.num_admitted = 0
        """Requests that have been admitted and whose work has not ended."""
        self.is_draining = False
        """Whether nothing new is admitted."""

    def close(self) -> None:
        """Take no more; threads that still wait end by themselves."""
        self.is_draining = True
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _admit(self, seconds: float) -> Job:
        if self.is_draining:
            raise OverloadError("The server is shutting down.", retry_after=RETRY_AFTER)
        if not self._worker.is_warm:
            raise OverloadError("The server is getting ready.", retry_after=RETRY_AFTER)
        if self.num_admitted >= self._limits.queue:
            raise OverloadError("The server is full; try again later.", retry_after=RETRY_AFTER)
        return Job(self._worker, self._limits, self._metrics, seconds)

    def _begin(self, job: Job, work: Callable[[Job], T]) -> asyncio.Future[T]:
        self.num_admitted += 1
        self._metrics.at_work.set(self.num_admitted)
        loop = asyncio.get_running_loop()
        future: Future[T] = self._pool.submit(work, job)
        future.add_done_callback(lambda _: loop.call_soon_threadsafe(self._ended))
        return asyncio.wrap_future(future)

    def _ended(self) -> None:
        self.num_admitted -= 1
        self._metrics.at_work.set(self.num_admitted)

    async def run(self, http: HttpRequest, work: Callable[[Job], T], seconds: float | None = None) -> T:
        """The work's result. Raises ApiError; ClientLeftError when the client has gone."""
        job = self._admit(seconds or self._limits.seconds)
        future = self._begin(job, work)
        leaving = asyncio.create_task(_leaves(http))
        both: set[asyncio.Future[Any]] = {future, leaving}
        try:
            await asyncio.wait(both, timeout=seconds or self._limits.seconds, return_when=asyncio.FIRST_COMPLETED)
            if not future.done():
                job.cancel()
                if leaving.done():
                    raise ClientLeftError
                raise LateError("The request took too long.")
            return future.result()
        finally:
            leaving.cancel()
            if not future.done():
                job.cancel()
                future.add_done_callback(_ignore)

    async def stream(self, work: Callable[[Job, Callable[[T], None]], None]) -> AsyncIterator[T]:
        """What the work sends, as it comes. Raises what it raises; when nobody takes it any longer, the work ends."""
        job = self._admit(self._limits.seconds)
        loop, sent = asyncio.get_running_loop(), asyncio.Queue[T | None]()

        def send(item: T) -> None:
            loop.call_soon_threadsafe(sent.put_nowait, item)

        future = self._begin(job, lambda job: work(job, send))
        future.add_done_callback(lambda _: sent.put_nowait(None))
        return self._sent(job, future, sent)

    async def _sent(self, job: Job, future: asyncio.Future[None], sent: asyncio.Queue[T | None]) -> AsyncIterator[T]:
        try:
            while (item := await sent.get()) is not None:
                yield item
            future.result()
        finally:
            if not future.done():
                job.cancel()
                future.add_done_callback(_ignore)


async def _leaves(http: HttpRequest) -> None:
    """Ends when the client does."""
    while True:
        message = await http.receive()
        if message["type"] == "http.disconnect":
            return


def _ignore(future: asyncio.Future[T]) -> None:
    """Nobody waits for it; what it raised is no matter."""
    if not future.cancelled():
        future.exception()
