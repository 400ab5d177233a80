"""What does the server count? Prometheus metrics; no label is ever a text, a key or an address."""

from __future__ import annotations

from collections.abc import Mapping

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from heed.decoding.hypothesis import Hypothesis
from heed.decoding.request import Request

_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)


class Metrics:
    """The counts of one server."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.requests = Counter(
            "heed_requests", "Requests by route and status.", ["route", "status"], registry=self.registry
        )
        self.seconds = Histogram(
            "heed_request_seconds", "Time of a request.", ["route"], buckets=_SECONDS, registry=self.registry
        )
        self.at_work = Gauge("heed_requests_at_work", "Requests admitted and not yet answered.", registry=self.registry)
        self.queue = Gauge("heed_queue_depth", "Sentences and prompts that wait for a turn.", registry=self.registry)
        self.steps = Counter("heed_steps", "Steps of the decoding loop.", registry=self.registry)
        self.rows = Counter("heed_step_rows", "Rows of all steps; by heed_steps the mean fill.", registry=self.registry)
        self.fill = Gauge("heed_batch_rows", "Rows of the last step: sentences times beam.", registry=self.registry)
        self.tokens = Counter(
            "heed_tokens", "Tokens read (in) and written (out).", ["model", "direction"], registry=self.registry
        )
        self.searches = Counter(
            "heed_searches", "Searches made, those that the guard asks for included.", ["model"], registry=self.registry
        )
        self.truncations = Counter(
            "heed_truncations", "Outputs cut off at their longest length.", ["model"], registry=self.registry
        )
        self.flags = Counter(
            "heed_guard_flags", "Outputs that the guard found wrong.", ["model", "flag"], registry=self.registry
        )
        self.failures = Counter("heed_search_failures", "Searches that failed.", registry=self.registry)
        self.deaths = Counter(
            "heed_worker_restarts", "Times the worker had to be started again.", registry=self.registry
        )
        self.heartbeat = Gauge(
            "heed_worker_heartbeat_age_seconds", "Time since the worker's last turn.", registry=self.registry
        )

    def stepped(self, num_rows: int) -> None:
        """A step with so many rows."""
        self.steps.inc()
        self.rows.inc(num_rows)
        self.fill.set(num_rows)

    def found(self, model: str, outputs: Mapping[Request, Hypothesis]) -> None:
        """Outputs that a model made."""
        self.searches.labels(model).inc(len(outputs))
        self.tokens.labels(model, "in").inc(sum(len(request.source or request.prefix) for request in outputs))
        self.tokens.labels(model, "out").inc(sum(len(best.ids) for best in outputs.values()))
        self.truncations.labels(model).inc(sum(not best.finished for best in outputs.values()))

    def render(self) -> bytes:
        """In Prometheus' text format."""
        return generate_latest(self.registry)
