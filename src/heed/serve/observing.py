"""What is counted and written down of each request?"""

from __future__ import annotations

import time

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from heed.serve.logs import Log
from heed.serve.metrics import Metrics

CLIENT_CLOSED = 499
"""The status under which a request is counted whose client left; nobody gets it."""


class Observed:
    """Counts requests by route and status, and logs them without anything that was said."""

    def __init__(self, app: ASGIApp, metrics: Metrics, log: Log) -> None:
        self.app = app
        self.metrics = metrics
        self.log = log

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        begin, status = time.monotonic(), CLIENT_CLOSED

        async def seen(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self.app(scope, receive, seen)
        except Exception:  # which becomes an answer of 500 further out
            status = 500
            raise
        finally:
            route = getattr(scope.get("route"), "path", "other")
            seconds = time.monotonic() - begin
            self.metrics.requests.labels(route, str(status)).inc()
            self.metrics.seconds.labels(route).observe(seconds)
            self.log.event(
                "request", method=scope["method"][:10], route=route, status=status, seconds=round(seconds, 4)
            )
