"""Telemetry: the log, Prometheus metrics, and the middleware that records each request.

Neither ever contains a text, a key or an address.
"""

from __future__ import annotations

import json
import threading
import time
import traceback
from collections.abc import Mapping
from functools import partial
from pathlib import PurePath
from typing import TextIO

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from heed.core.progress import BestEffort
from heed.decoding.hypothesis import Hypothesis
from heed.decoding.options import Request

Value = str | int | float | bool | None
CLIENT_CLOSED = 499
"""The recorded status of a request whose client disconnected; it is never sent."""
_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)


class Log:
    """Writes one JSON object per event to stderr. `quiet`: only errors."""

    def __init__(self, quiet: bool = False, stream: TextIO | None = None) -> None:
        self.quiet = quiet
        self._stream = stream
        self._lock = threading.Lock()

    def event(self, name: str, **fields: Value) -> None:
        """Log a normal event."""
        if not self.quiet:
            self._write("info", name, fields)

    def error(self, name: str, error: BaseException | None = None, **fields: Value) -> None:
        """Log an error. Of an exception only its type and place, as its message may quote a text."""
        if error is not None:
            fields = {**fields, "kind": type(error).__name__, "at": _place(error)}
        self._write("error", name, fields)

    def _write(self, level: str, name: str, fields: dict[str, Value]) -> None:
        moment = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        line = json.dumps({"time": moment, "level": level, "event": name, **fields}, ensure_ascii=True)
        stream = BestEffort(self._stream)  # ignores a closed stderr
        with self._lock:
            stream.write(line + "\n")
            stream.flush()


def _place(error: BaseException) -> str:
    """`scheduler.py:120 < worker.py:88 < ...`: innermost frame first."""
    frames = traceback.extract_tb(error.__traceback__)[-6:]
    return " < ".join(f"{PurePath(frame.filename).name}:{frame.lineno}" for frame in reversed(frames))


class Metrics:
    """Prometheus metrics of one server."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        counter, gauge = partial(Counter, registry=self.registry), partial(Gauge, registry=self.registry)
        self.requests = counter("heed_requests", "Requests by route and status.", ["route", "status"])
        self.seconds = Histogram(
            "heed_request_seconds", "Time of a request.", ["route"], buckets=_SECONDS, registry=self.registry
        )
        self.at_work = gauge("heed_requests_at_work", "Requests admitted and not yet answered.")
        self.queue = gauge("heed_queue_depth", "Sentences and prompts waiting to be searched.")
        self.steps = counter("heed_steps", "Steps of the decoding loop.")
        self.rows = counter("heed_step_rows", "Rows of all steps; divided by heed_steps, the mean batch.")
        self.fill = gauge("heed_batch_rows", "Rows of the last step: sentences times beam size.")
        self.tokens = counter("heed_tokens", "Source tokens (in) and output tokens (out).", ["model", "direction"])
        self.searches = counter("heed_searches", "Searches, including those repeated by the output checks.", ["model"])
        self.truncations = counter("heed_truncations", "Outputs cut off at the maximum length.", ["model"])
        self.flags = counter("heed_guard_flags", "Outputs flagged by the output checks.", ["model", "flag"])
        self.failures = counter("heed_search_failures", "Searches that failed.")
        self.deaths = counter("heed_worker_restarts", "Restarts of the worker.")
        self.heartbeat = gauge("heed_worker_heartbeat_age_seconds", "Seconds since the worker's last turn.")

    def stepped(self, num_rows: int) -> None:
        """Record a decoding step."""
        self.steps.inc()
        self.rows.inc(num_rows)
        self.fill.set(num_rows)

    def searched(self, model: str, outputs: Mapping[Request, Hypothesis]) -> None:
        """Record the outputs of a model."""
        self.searches.labels(model).inc(len(outputs))
        self.tokens.labels(model, "in").inc(sum(len(request.source or request.prefix) for request in outputs))
        self.tokens.labels(model, "out").inc(sum(len(best.ids) for best in outputs.values()))
        self.truncations.labels(model).inc(sum(not best.finished for best in outputs.values()))

    def render(self) -> bytes:
        """All metrics in Prometheus' text format."""
        return generate_latest(self.registry)


class Observed:
    """Middleware that counts and logs requests by route and status."""

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

        async def observe(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self.app(scope, receive, observe)
        except Exception:  # answered with 500 by an outer middleware
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
