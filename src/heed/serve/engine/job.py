"""Job of one request: a function in a thread of its own, which waits for searches of the worker."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import TimeoutError as FutureTimeout
from functools import partial
from queue import Empty, SimpleQueue
from typing import Any, TypeVar, cast

from heed.core.errors import HeedError
from heed.decoding.hypothesis import Hypothesis
from heed.decoding.options import Constraints, Request, SearchOptions
from heed.documents.inline_tags import Links
from heed.documents.translation import Step, Watch
from heed.inference.alignment import links_of_pairs
from heed.inference.translator import ModelTranslator
from heed.serve.engine.pace import Pace, Slices
from heed.serve.engine.scheduler import Outcome, Ticket
from heed.serve.engine.worker import Worker
from heed.serve.errors import ApiError
from heed.serve.limits import Limits
from heed.serve.telemetry import Metrics

T = TypeVar("T")

SEPARATE_BATCH = 8
"""Sentences of a search that no other request can join, and inputs of a prediction, in one call of the worker."""
WINDOW = 64
"""Sentences of one request that are submitted to the worker at once."""
MAX_BEHIND = 64
"""Partial outputs that wait until their job has looked at them."""
MAX_TERM_STEPS = 64
"""Maximum tokens of all terms that one output must contain: each of them widens its beam."""
RETRY_AFTER = 2
"""Seconds that a client is asked to wait when the server is busy."""


class ClientLeftError(Exception):
    """The client has disconnected, or the work was cancelled."""


class Job:
    """The work of one request. Its methods block: call them from the thread of the work."""

    def __init__(self, worker: Worker, limits: Limits, metrics: Metrics, seconds: float, pace: Pace) -> None:
        self._worker = worker
        self._slices = Slices(pace)
        self._metrics = metrics
        self._limits = limits
        self._deadline = time.monotonic() + seconds
        self._waits_since: float | None = None  # for the worker
        self._inbox: SimpleQueue[tuple[Ticket | None, Outcome | None, list[int] | None]] = SimpleQueue()
        self._reason: Exception | None = None  # why it was cancelled
        self._has_started = False
        self.wants_tokens = False
        """Whether hypotheses must have the log-probabilities of their tokens, whatever searches."""

    def cancel(self, reason: Exception | None = None) -> None:
        """Cancel the work, from another thread. `reason`: what it raises, by default that its client has left."""
        self._reason = reason or ClientLeftError()
        self._inbox.put((None, None, None))

    def check(self) -> None:
        """Raise if the work was cancelled, or has taken too long. Rest if it has computed for long."""
        self._slices.rest_if_due()
        if self._reason is not None:
            raise self._reason
        self._require_time()

    def translate(
        self, step: Step, texts: Sequence[str], options: SearchOptions, constraints: Sequence[Constraints] | None,
        watch: Watch | None = None,
    ) -> list[Hypothesis]:  # fmt: skip
        """Translate texts with one model. The worker batches the searches with those of all other requests."""

        def find(requests: Sequence[Request], options: SearchOptions) -> dict[Request, Hypothesis]:
            return self.find(step.name, _model_of(step), requests, options, watch, step.engine)

        hypotheses = step.translator.searched_by(find).translate(texts, options, constraints)
        for hypothesis in hypotheses:
            for flag in hypothesis.flags:
                self._metrics.flags.labels(step.name, flag).inc()
        return hypotheses

    def find(
        self, model: str, translator: ModelTranslator, requests: Sequence[Request], options: SearchOptions,
        watch: Watch | None = None, engine: Any = None,
    ) -> dict[Request, Hypothesis]:  # fmt: skip
        """Search each request in the worker, or with the engine where it can."""
        self._check(translator, requests)
        if options.coverage_penalty:
            outputs = self._find_separately(translator, requests, options)
        else:
            outputs = self._find_batched(translator, requests, options, watch, engine)
        self._metrics.searched(model, outputs)
        return outputs

    def links(self, step: Step, pairs: Sequence[tuple[str, str]]) -> Sequence[Links]:
        """Word links between texts and one model's translations."""
        return self.call(partial(links_of_pairs, _model_of(step), pairs))

    def call(self, work: Callable[[], T]) -> T:
        """Run something else that needs a model in the worker's thread. Raises what it raises."""
        self._begin_to_wait()
        future = self._worker.call(work)
        try:
            while True:
                self._has_started |= future.running()
                self.check()
                try:
                    return future.result(timeout=0.1)
                except FutureTimeout:
                    if future.done():  # the work has just ended, or raised a time-out itself
                        return future.result()
        finally:
            future.cancel()  # no effect on what has started

    def _find_separately(
        self, translator: ModelTranslator, requests: Sequence[Request], options: SearchOptions
    ) -> dict[Request, Hypothesis]:
        """A search that needs attention cannot join a batch. It runs in parts, so that other requests get turns."""
        outputs: dict[Request, Hypothesis] = {}
        for first in range(0, len(requests), SEPARATE_BATCH):
            some = requests[first : first + SEPARATE_BATCH]
            outputs |= self.call(partial(translator.search_in_batches, some, options))
        return outputs

    def _find_batched(
        self, translator: ModelTranslator, requests: Sequence[Request], options: SearchOptions, watch: Watch | None,
        engine: Any,
    ) -> dict[Request, Hypothesis]:  # fmt: skip
        if requests and not self._has_started and self._worker.num_waiting >= self._limits.queue:
            raise ApiError(503, "The queue is full; retry later.", retry_after=RETRY_AFTER)
        outputs: dict[Request, Hypothesis] = {}
        todo, missing = list(reversed(requests)), dict[Ticket, Request]()
        self._begin_to_wait()
        try:
            while todo or missing:
                fresh = [
                    self._ticket(translator, todo.pop(), options, watch, engine)
                    for _ in range(min(len(todo), WINDOW - len(missing)))
                ]
                missing.update((ticket, ticket.request) for ticket in fresh)
                if fresh:
                    self._worker.submit(fresh)
                ticket, outcome = self._next(missing, watch)
                request = missing.pop(ticket)
                outputs[request] = best = self._received(translator, outcome, options)
                if watch is not None and engine is not None:  # which shows no partial outputs
                    watch(request, list(best.ids))
        finally:
            if missing:
                self._worker.cancel(list(missing))
        return outputs

    def _check(self, translator: ModelTranslator, requests: Sequence[Request]) -> None:
        """Raise ApiError for requests that are too long, before anything is searched."""
        limit = self._limits.sentence_tokens
        for request in requests:
            if translator.num_steps(request) > MAX_TERM_STEPS:  # also raises for a term that cannot be encoded
                raise ApiError(400, "A sentence has too many required terms.", "glossary")
            length = len(request.source) + len(request.prefix)
            if length > limit:
                raise ApiError(400, f"A sentence or prompt has {length:,} tokens; the limit is {limit:,}.", "text")

    def _ticket(
        self, translator: ModelTranslator, request: Request, options: SearchOptions, watch: Watch | None, engine: Any
    ) -> Ticket:
        with_tokens = self.wants_tokens or translator.checks.confidence is not None
        ticket = Ticket(
            translator, request, options, self, deliver=lambda outcome: self._inbox.put((ticket, outcome, None)),
            engine=engine, with_tokens=with_tokens,
        )  # fmt: skip
        if watch is not None:
            ticket.watch = lambda ids: self._grown(ticket, ids)
        return ticket

    def _grown(self, ticket: Ticket, ids: list[int]) -> None:
        """Pass a partial output on. A job that is behind, as its client reads slowly, gets only later ones."""
        if self._inbox.qsize() < MAX_BEHIND:
            self._inbox.put((ticket, None, ids))

    def _next(self, missing: dict[Ticket, Request], watch: Watch | None) -> tuple[Ticket, Outcome]:
        """The next outcome. `watch` sees the partial outputs that arrive before it."""
        while True:
            if not self._has_started:
                self._has_started = any(ticket.has_departed for ticket in missing)
            self._require_time()
            try:
                ticket, outcome, ids = self._inbox.get(timeout=0.5)
            except Empty:
                continue
            if self._reason is not None:
                raise self._reason
            if ticket is None or ticket not in missing:
                continue
            if outcome is not None:
                self._has_started = True
                return ticket, outcome
            if watch is not None and ids is not None:
                watch(missing[ticket], ids)

    def _begin_to_wait(self) -> None:
        """What the job does before it first needs the worker, such as reading a long text, is no time in the queue."""
        self._waits_since = self._waits_since or time.monotonic()

    def _require_time(self) -> None:
        now = time.monotonic()
        if now > self._deadline:
            raise ApiError(504, "The request took too long.")
        waited = now - (self._waits_since or now)
        if not self._has_started and waited > self._limits.queue_seconds and self._worker.num_waiting:
            raise ApiError(503, "The request waited too long in the queue; retry later.", retry_after=RETRY_AFTER)

    def _received(self, translator: ModelTranslator, outcome: Outcome, options: SearchOptions) -> Hypothesis:
        failure = outcome if isinstance(outcome, Exception) else None
        self._worker.delivered(failure)
        if failure is not None:
            raise (
                failure
                if isinstance(failure, HeedError | ApiError)
                else ApiError(500, "The model failed on this request.")
            ) from failure
        assert not isinstance(outcome, Exception)
        return translator.best_of(outcome, options)


def _model_of(step: Step) -> ModelTranslator:
    """The translator of a step; the server opens its runs with PyTorch."""
    return cast(ModelTranslator, step.translator)
