"""Admission of requests: limits, deadlines, and cancellation when a client disconnects."""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing, suppress
from functools import partial
from typing import Any, TypeVar

from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from heed.serve.bodies import JSON, media_type_of
from heed.serve.engine.job import RETRY_AFTER, ClientLeftError, Job
from heed.serve.engine.outlet import Outlet
from heed.serve.engine.pace import Pace
from heed.serve.engine.threads import JobThreads
from heed.serve.engine.worker import Worker
from heed.serve.errors import ApiError
from heed.serve.limits import Limits
from heed.serve.telemetry import Metrics

T = TypeVar("T")

READ_AT_ONCE = 4096
"""Bytes of a body that is read on the event loop."""
ADMISSION = "heed.admission"
"""The key of a request's scope under which its admission is."""


class Admission:
    """The admission of one request, which begins with its first job and holds for the later ones."""


class Jobs:
    """Admits requests up to the limit of the queue, and runs their work."""

    def __init__(self, worker: Worker, limits: Limits, metrics: Metrics) -> None:
        self._worker = worker
        self._limits = limits
        self._metrics = metrics
        self._pace = Pace()
        self._jobs: dict[Job, object] = {}
        self._unanswered: set[Admission] = set()
        self._threads = JobThreads()
        self.is_draining = False
        """Whether new requests are refused, as the server is shutting down."""

    @property
    def num_admitted(self) -> int:
        """Admitted requests whose answer has not begun, or whose work has not ended."""
        return len({*self._unanswered, *self._jobs.values()})

    def close(self) -> None:
        """Refuse new requests, and cancel all others."""
        self.is_draining = True
        self._unanswered.clear()
        for job in self._jobs:
            job.cancel(_shutting_down())
        self._threads.close()

    def require_warm(self) -> None:
        """Raise ApiError unless every model has run once, and so is completely known."""
        if not self._worker.is_warm:
            raise ApiError(503, "The server is loading its models.", retry_after=RETRY_AFTER)

    def end(self, admission: Admission) -> None:
        """The answer to a request has begun, or it has none; work that goes on is still counted."""
        self._unanswered.discard(admission)
        self._metrics.at_work.set(self.num_admitted)

    def _admit(self, http: Request, seconds: float) -> Job:
        """A job of a request. Later jobs of an admitted request are always admitted. Raises ApiError."""
        admission = http.scope.get(ADMISSION)
        if admission not in self._unanswered:
            if self.is_draining:
                raise _shutting_down()
            self.require_warm()
            if self.num_admitted >= self._limits.queue:
                raise ApiError(503, "The server is full; retry later.", retry_after=RETRY_AFTER)
            if admission is not None:
                self._unanswered.add(admission)
        return Job(self._worker, self._limits, self._metrics, seconds, self._pace)

    def _begin(self, http: Request, job: Job, work: Callable[[Job], T]) -> asyncio.Future[T]:
        self._jobs[job] = http.scope.get(ADMISSION, job)
        self._metrics.at_work.set(self.num_admitted)
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()

        def run() -> None:
            complete = _completion(future, lambda: work(job))
            with suppress(RuntimeError):  # the loop has ended
                loop.call_soon_threadsafe(self._end, job, complete)

        self._threads.run(run)
        return future

    def _end(self, job: Job, complete: Callable[[], None]) -> None:
        del self._jobs[job]
        self._metrics.at_work.set(self.num_admitted)
        complete()

    async def read(self, http: Request, body: bytes, work: Callable[[Job], T]) -> T:
        """What a function makes of a body: in a job, or at once from JSON that takes less time than starting one."""
        if len(body) > READ_AT_ONCE or media_type_of(http.headers) != JSON:
            return await self.run(http, work)
        return work(self._admit(http, self._limits.seconds))

    async def run(self, http: Request, work: Callable[[Job], T], seconds: float | None = None) -> T:
        """The result of the work. Raises ApiError; ClientLeftError when the client has disconnected."""
        job = self._admit(http, seconds or self._limits.seconds)
        future = self._begin(http, job, work)
        leaving = asyncio.create_task(_disconnect(http))
        both: set[asyncio.Future[Any]] = {future, leaving}
        try:
            await asyncio.wait(both, timeout=seconds or self._limits.seconds, return_when=asyncio.FIRST_COMPLETED)
            if not future.done():
                job.cancel()
                if leaving.done():
                    raise ClientLeftError
                raise ApiError(504, "The request took too long.")
            return future.result()
        finally:
            leaving.cancel()
            if not future.done():
                job.cancel()
                future.add_done_callback(_ignore)

    async def stream(self, http: Request, work: Callable[[Job, Callable[[T], None]], None]) -> AsyncIterator[T]:
        """The results that the work sends. Raises what the work raises; closing the iterator cancels the work."""
        job = self._admit(http, self._limits.seconds)
        outlet = Outlet[T](job, asyncio.get_running_loop())

        def run(job: Job) -> None:
            work(job, outlet.put)
            outlet.await_taken()

        future = self._begin(http, job, run)
        future.add_done_callback(lambda _: outlet.close())
        sent = self._sent(job, future, outlet)
        weakref.finalize(sent, job.cancel)  # one whose client leaves before it begins has no end of its own
        return sent

    async def _sent(self, job: Job, future: asyncio.Future[None], outlet: Outlet[T]) -> AsyncIterator[T]:
        try:
            async with aclosing(outlet.taken()) as items:
                async for item in items:
                    yield item
            future.result()
        finally:
            if not future.done():
                job.cancel()
                future.add_done_callback(_ignore)


class Admissions:
    """Middleware that gives each request an admission, and ends it when the answer begins."""

    def __init__(self, app: ASGIApp, jobs: Jobs) -> None:
        self.app = app
        self.jobs = jobs

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        admission = scope[ADMISSION] = Admission()  # in the same scope, to which the routes add what `Observed` reads

        async def answered(message: Message) -> None:
            self.jobs.end(admission)
            await send(message)

        try:
            await self.app(scope, receive, answered)
        finally:
            self.jobs.end(admission)


def _shutting_down() -> ApiError:
    return ApiError(503, "The server is shutting down.", retry_after=RETRY_AFTER)


async def _disconnect(http: Request) -> None:
    """Wait until the client disconnects."""
    while True:
        message = await http.receive()
        if message["type"] == "http.disconnect":
            return


def _completion(future: asyncio.Future[T], work: Callable[[], T]) -> Callable[[], None]:
    """Do the work; the function that gives its result or error to the future, in the thread of the loop."""
    try:
        return partial(future.set_result, work())
    except BaseException as error:
        return partial(future.set_exception, error)


def _ignore(future: asyncio.Future[T]) -> None:
    """Retrieve the exception of work that nobody waits for."""
    if not future.cancelled():
        future.exception()
