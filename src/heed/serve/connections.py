"""Connections of clients: limits on their number, and on the time that the server waits for what they send or read.

uvicorn limits the time between two requests, but neither that of a request's headers nor that of an answer.
"""

from __future__ import annotations

import asyncio
import resource
from collections.abc import Iterable

from uvicorn.protocols.http.h11_impl import H11Protocol

from heed.serve.limits import Limits

PORTION = 64 << 10
"""Bytes of an answer that a client must read in the time for them."""
OTHER_FILES = 64
"""File descriptors that are not connections."""


class Connection(H11Protocol):
    """A connection with limits; `limited` makes the class of a server."""

    limits: Limits
    max_connections: int

    # --- events --------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for the first request. With too many connections, one that waits for a client is closed."""
        super().connection_made(transport)
        self.waits_since = self.loop.time()
        self.num_answered = 0
        self._mark: tuple[float, int] | None = None  # when this much was left to be read
        if len(self.connections) > self.max_connections:
            waiting = [each for each in self.connections if isinstance(each, Connection) and each.waits_for_client]
            first = min(waiting, key=lambda each: (each.num_answered > 0, each.waits_since), default=self)
            first.transport.abort()
            self.connections.discard(first)

    def on_response_complete(self) -> None:
        """Begin to wait for the next request. uvicorn calls this."""
        self.waits_since = self.loop.time()
        self.num_answered += 1
        super().on_response_complete()

    # --- limits --------------------------------------------------------------------------------------

    @property
    def owes_request(self) -> bool:
        """Whether the headers of a request have not arrived."""
        return self.cycle is None or self.cycle.response_complete

    @property
    def waits_for_client(self) -> bool:
        """Whether the server cannot go on before the client has sent more."""
        return self.owes_request or self.cycle.more_body

    def end_if_overdue(self, now: float) -> None:
        """Close the connection of a client that has sent or read too little for too long."""
        if self._is_stalled(now):
            self.transport.abort()
        elif self.owes_request and now - self.waits_since > self.limits.header_seconds:
            self.transport.close()

    def _is_stalled(self, now: float) -> bool:
        size = self.transport.get_write_buffer_size()
        grows = not self.flow.write_paused and not self.owes_request and not self.transport.is_closing()
        if not size or grows:
            self._mark = None
        elif self._mark is None or size <= self._mark[1] - PORTION:
            self._mark = (now, size)
        return self._mark is not None and now - self._mark[0] > self.limits.write_seconds


def limited(limits: Limits) -> type[Connection]:
    """The connections of a server with these limits, fewer if the system allows it fewer files."""
    most = max(1, resource.getrlimit(resource.RLIMIT_NOFILE)[0] - OTHER_FILES)
    return type(
        "LimitedConnection", (Connection,), {"limits": limits, "max_connections": min(limits.connections, most)}
    )


def end_overdue(connections: Iterable[object], now: float) -> None:
    """Close the connections of clients that have sent or read too little for too long."""
    for connection in list(connections):
        if isinstance(connection, Connection):
            connection.end_if_overdue(now)
