"""Outlet of a job: a bounded queue from its thread to the event loop, for what it sends before it ends."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator
from typing import Generic, TypeVar

from heed.serve.engine.job import Job

T = TypeVar("T")

CAPACITY = 16
"""Items that wait for the client. A job that has sent more waits until the client has read some."""
LOOK_EVERY = 0.25
"""Seconds between two looks of a waiting job at whether it was cancelled."""


class Outlet(Generic[T]):
    """The queue. A thread puts items in, and the loop takes them out."""

    def __init__(self, job: Job, loop: asyncio.AbstractEventLoop) -> None:
        self._job = job
        self._loop = loop
        self._items = asyncio.Queue[T | None]()
        self._free = threading.Semaphore(CAPACITY)

    def put(self, item: T) -> None:
        """Send an item, when there is room for it. Raises what the job raises when it was cancelled or is late."""
        self._reserve()
        self._loop.call_soon_threadsafe(self._items.put_nowait, item)

    def await_taken(self) -> None:
        """Wait until everything was taken, so that the job counts as long as its client has something to read."""
        for _ in range(CAPACITY):
            self._reserve()

    def close(self) -> None:
        """End the items. Call it in the loop."""
        self._items.put_nowait(None)

    async def taken(self) -> AsyncGenerator[T, None]:
        """The items, until the end. Each leaves its place to another when the next one is asked for."""
        while (item := await self._items.get()) is not None:
            yield item
            self._free.release()

    def _reserve(self) -> None:
        self._job.check()
        while not self._free.acquire(timeout=LOOK_EVERY):
            self._job.check()
