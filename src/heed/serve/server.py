"""The uvicorn server: start, warm-up, signals, and graceful shutdown."""

from __future__ import annotations

import asyncio
import gc
import signal
import socket
import sys
from collections.abc import Callable
from types import FrameType

import uvicorn
from fastapi import FastAPI

from heed.core.errors import HeedError, UsageError
from heed.serve.connections import OTHER_FILES, end_overdue, limited
from heed.serve.service import Service

WATCH_EVERY = 0.25
"""Seconds between two looks at the connections."""
COLLECT_EVERY = 300.0
"""Seconds between two collections of all garbage."""
NEW_OBJECTS = 50_000
"""New objects after which Python looks for garbage among them, which holds up everybody. A body may have as many."""
ACCEPTED_AT_ONCE = OTHER_FILES // 8
"""Connections that are accepted before some of those that are too many are closed, which takes a few turns."""
WAITING_CONNECTIONS = 1024
"""Connections that the system holds until they are accepted."""
REPORT_EVERY = 30.0
"""Seconds between two reports of which model has not yet run once."""


class Server(uvicorn.Server):
    """uvicorn with a graceful shutdown: after SIGTERM or SIGINT, admitted requests are finished first.

    Meanwhile new requests and /ready get 503. A second signal ends the server at once.
    """

    def __init__(self, config: uvicorn.Config, service: Service, ready: Callable[[], None]) -> None:
        super().__init__(config)
        self.service = service
        self.ready = ready
        self.signals: list[int] = []
        self.failure: str | None = None
        self._tasks: list[asyncio.Task[None]] = []

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Start draining; at a second signal, end at once. uvicorn calls this."""
        self.signals.append(sig)
        self.service.jobs.is_draining = True
        if len(self.signals) > 1:
            self.should_exit = self.force_exit = True

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen, then wait in the background for the models."""
        await super().startup(sockets)
        for listener in sockets or ():
            listener.listen(WAITING_CONNECTIONS)  # asyncio has given it the number that it accepts at once
        parts = (self._await_models(), self._drain(), self._watch_connections(), self._collect_garbage())
        self._tasks = [asyncio.create_task(part) for part in parts]

    async def _watch_connections(self) -> None:
        """Close the connections of clients that are too slow."""
        while True:
            await asyncio.sleep(WATCH_EVERY)
            end_overdue(self.server_state.connections, asyncio.get_running_loop().time())

    async def _collect_garbage(self) -> None:
        """Collect garbage now and then. What a request leaves is little, and collected as it comes."""
        while True:
            await asyncio.sleep(COLLECT_EVERY)
            gc.collect()

    async def _await_models(self) -> None:
        """Call `ready` when the models are warm, or end the server if one fails. A slow machine may take its time."""
        clock = asyncio.get_running_loop().time
        begin = clock()
        next_report = begin + REPORT_EVERY
        while not self.service.worker.is_warm and not self.should_exit:
            await asyncio.sleep(0.05)
            if clock() >= next_report:
                seconds = round(clock() - begin)
                self.service.log.event("warming_up", model=self.service.catalogue.warming, seconds=seconds)
                next_report += REPORT_EVERY
            if self.service.worker.num_deaths:
                self.failure = "a model failed on its first sentence; see the log for details."
                self.should_exit = True
                return
        if not self.should_exit:
            self.ready()

    async def _drain(self) -> None:
        """After a signal, end when all requests are finished, or after a time limit."""
        while not self.service.jobs.is_draining:
            await asyncio.sleep(0.05)
        if self.signals:
            self.service.log.event("draining", requests=self.service.jobs.num_admitted)
        clock = asyncio.get_running_loop().time
        end = clock() + self.service.limits.drain_seconds
        while self.service.jobs.num_admitted and clock() < end:
            await asyncio.sleep(0.05)
        self.service.jobs.close()  # whoever is left gets an answer, too
        self.should_exit = True


def bound_socket(host: str, port: int) -> socket.socket:
    """A bound socket. Raises HeedError if the address is not available, and UsageError for none."""
    if not host:  # which the system takes for all networks
        raise UsageError("--host is empty. Pass 127.0.0.1 for this machine alone, or 0.0.0.0 for all networks.")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # With the protocol given, asyncio sets TCP_NODELAY. Without it, each answer waits 40 ms for an acknowledgement.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
    except (OSError, OverflowError) as error:
        listener.close()
        raise HeedError(
            f"cannot listen on {host}, port {port}: {error}. Choose another address with --host and --port."
        ) from error
    return listener


def url_of(listener: socket.socket) -> str:
    """The URL of a bound socket."""
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def make_server(app: FastAPI, service: Service, ready: Callable[[], None]) -> Server:
    """A server for sockets that are already bound."""
    config = uvicorn.Config(
        app, log_config=None, log_level="critical", access_log=False, server_header=False, proxy_headers=False,
        timeout_keep_alive=20, timeout_graceful_shutdown=3, h11_max_incomplete_event_size=64 << 10, lifespan="on",
        backlog=ACCEPTED_AT_ONCE, http=limited(service.limits), ws="none",
    )  # fmt: skip
    return Server(config, service, ready)


def serve(
    app: FastAPI, service: Service, listener: socket.socket, ready: Callable[[], None], change: Callable[[], None]
) -> int:
    """Serve until a signal. Returns the exit code: 0, or that of the signal that ended it at once.

    `change` is called for each SIGUSR1.
    """
    sys.setswitchinterval(0.001)  # so that the worker gets the interpreter lock back quickly
    signal.signal(signal.SIGUSR1, lambda number, frame: change())

    def warm() -> None:
        gc.collect()
        gc.freeze()  # what is loaded stays: looking for garbage in it holds up everybody
        gc.set_threshold(NEW_OBJECTS, *gc.get_threshold()[1:])
        ready()

    server = make_server(app, service, warm)
    server.run([listener])
    if server.failure is not None:
        raise HeedError(server.failure)
    return 128 + server.signals[-1] if server.force_exit else 0
