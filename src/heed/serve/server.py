"""How does the server run, and how does it end without losing what it has admitted?"""

from __future__ import annotations

import asyncio
import contextlib
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from types import FrameType

import uvicorn
from fastapi import FastAPI

from heed.core.errors import HeedError
from heed.serve.service import Service

WARM_UP_SECONDS = 300.0
"""A model that does not answer once in this time is not served."""


class Server(uvicorn.Server):
    """uvicorn, which on SIGTERM or SIGINT first finishes the requests that were admitted, and then ends.

    Until then new ones get 503, and /ready says so. A second signal ends it at once.
    """

    def __init__(self, config: uvicorn.Config, service: Service, ready: Callable[[], None]) -> None:
        super().__init__(config)
        self.service = service
        self.ready = ready
        self.signals: list[int] = []
        self.failure: str | None = None
        self._tasks: list[asyncio.Task[None]] = []

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """In place of uvicorn's own handlers; only a main thread may have any."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        names = (signal.SIGTERM, signal.SIGINT)
        before = {name: signal.signal(name, self.handle_exit) for name in names}
        try:
            yield
        finally:
            for name, handler in before.items():
                signal.signal(name, handler)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """A signal has come."""
        self.signals.append(sig)
        self.service.jobs.is_draining = True
        if len(self.signals) > 1:
            self.should_exit = self.force_exit = True

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen; then tell when the models are warm."""
        await super().startup(sockets)
        self._tasks = [asyncio.create_task(self._tell_ready()), asyncio.create_task(self._drain())]

    async def _tell_ready(self) -> None:
        """Warm-up has an end, and its failure is one of the start."""
        waited = 0.0
        while not self.service.worker.is_warm and not self.should_exit:
            await asyncio.sleep(0.05)
            waited += 0.05
            if self.service.worker.num_deaths or waited > WARM_UP_SECONDS:
                self.failure = "a model failed at its first sentence; the log says where."
                self.should_exit = True
                return
        self.ready()

    async def _drain(self) -> None:
        """End when a signal has come and nothing is at work any longer, or it takes too long."""
        while not self.service.jobs.is_draining:
            await asyncio.sleep(0.05)
        if self.signals:
            self.service.log.event("draining", requests=self.service.jobs.num_admitted)
        left = self.service.limits.drain_seconds
        while self.service.jobs.num_admitted and left > 0:
            await asyncio.sleep(0.05)
            left -= 0.05
        self.should_exit = True


def bound_socket(host: str, port: int) -> socket.socket:
    """A socket that is bound. Raises HeedError where the address cannot be had."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # Named as TCP, so that asyncio sends small pieces at once: else each answer waits 40 ms to be acknowledged.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
    except (OSError, OverflowError) as error:
        listener.close()
        raise HeedError(
            f"cannot listen on {host}, port {port}: {error}. Name others with --host and --port."
        ) from error
    return listener


def url_of(listener: socket.socket) -> str:
    """Where a bound socket is reached."""
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def make_server(app: FastAPI, service: Service, ready: Callable[[], None]) -> Server:
    """A server for sockets that are bound already."""
    config = uvicorn.Config(
        app, log_config=None, log_level="critical", access_log=False, server_header=False, proxy_headers=False,
        timeout_keep_alive=20, timeout_graceful_shutdown=5, h11_max_incomplete_event_size=64 << 10, lifespan="on",
        backlog=1024,
    )  # fmt: skip
    return Server(config, service, ready)


def serve(app: FastAPI, service: Service, listener: socket.socket, ready: Callable[[], None]) -> int:
    """Until a signal comes. The exit code: 0, or that of the signal that ended it at once."""
    sys.setswitchinterval(0.001)  # the worker must not wait long for threads that read and write
    server = make_server(app, service, ready)
    server.run([listener])
    if server.failure is not None:
        raise HeedError(server.failure)
    return 128 + server.signals[-1] if server.force_exit else 0
