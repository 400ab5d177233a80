"""Admission of requests: limits, deadlines, and cancellation when a client disconnects."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

from starlette.requests import Request

from heed.serve.engine.job import RETRY_AFTER, ClientLeftError, Job
from heed.serve.engine.worker import Worker
from heed.serve.errors import ApiError
from heed.serve.limits import Limits
from heed.serve.telemetry import Metrics

T = TypeVar("T")


class Jobs:
    """Admits requests up to the limit of the queue, and runs their work."""

    def __init__(self, worker: Worker, limits: Limits, metrics: Metrics) -> None:
        self._worker = worker
        self._limits = limits
        self._metrics = metrics
        self._pool = ThreadPoolExecutor(limits.queue, thread_name_prefix="heed job")
        self.num_admitted = 0
        """Admitted requests whose work has not ended."""
        self.is_draining = False
        """Whether new requests are refused, as the server is shutting down."""

    def close(self) -> None:
        """Refuse new requests. Threads that still wait end by themselves."""
        self.is_draining = True
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _admit(self, seconds: float) -> Job:
        if self.is_draining:
            raise ApiError(503, "The server is shutting down.", retry_after=RETRY_AFTER)
        if not self._worker.is_warm:
            raise ApiError(503, "The server is loading its models.", retry_after=RETRY_AFTER)
        if self.num_admitted >= self._limits.queue:
            raise ApiError(503, "The server is full; retry later.", retry_after=RETRY_AFTER)
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

    async def run(self, http: Request, work: Callable[[Job], T], seconds: float | None = None) -> T:
        """The result of the work. Raises ApiError; ClientLeftError when the client has disconnected."""
        job = self._admit(seconds or self._limits.seconds)
        future = self._begin(job, work)
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

    async def stream(self, work: Callable[[Job, Callable[[T], None]], None]) -> AsyncIterator[T]:
        """The results that the work sends. Raises what the work raises; closing the iterator cancels the work."""
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


async def _disconnect(http: Request) -> None:
    """Wait until the client disconnects."""
    while True:
        message = await http.receive()
        if message["type"] == "http.disconnect":
            return


def _ignore(future: asyncio.Future[T]) -> None:
    """Retrieve the exception of work that nobody waits for."""
    if not future.cancelled():
        future.exception()
