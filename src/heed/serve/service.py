"""Services that all routes of a server share."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeVar

from pydantic import BaseModel
from starlette.requests import Request

from heed.core.errors import HeedError, StorageError
from heed.memory.shared import SharedMemory
from heed.memory.store import NearMatch
from heed.serve.auth import ApiKeys, RateLimiter
from heed.serve.bodies import json_body
from heed.serve.downloads import Downloads
from heed.serve.engine.admission import Jobs
from heed.serve.engine.catalogue import Catalogue, Route
from heed.serve.engine.document_processes import DocumentProcesses
from heed.serve.engine.job import Job
from heed.serve.engine.worker import Worker
from heed.serve.errors import ApiError
from heed.serve.limits import Limits
from heed.serve.telemetry import Log, Metrics
from heed.text.language.identify import LanguageIdentifier

M = TypeVar("M", bound=BaseModel)


@dataclass(frozen=True)
class Service:
    """The services of one server."""

    catalogue: Catalogue
    detector: LanguageIdentifier
    worker: Worker
    jobs: Jobs
    limits: Limits
    keys: ApiKeys
    rates: RateLimiter
    metrics: Metrics
    log: Log
    downloads: Downloads = field(default_factory=Downloads)
    documents: DocumentProcesses = field(default_factory=DocumentProcesses)
    memory: SharedMemory | None = None
    """Translations by people, if the server has a translation memory."""
    public_url: str = ""
    """The URL by which clients reach the server, with a slash at its end; empty for that of each request."""

    def remembered(self, route: Route, text: str) -> str | None:
        """The translation of exactly this text by a person."""
        return self.memory.translation(*route.codes, text) if self.memory is not None and route.path else None

    def matches(self, job: Job, route: Route, text: str) -> list[NearMatch]:
        """Translations of a sentence and of similar ones by people."""
        return self.memory.matches(*route.codes, text, job.check) if self.memory is not None and route.path else []

    def admit(self, request: Request, key: str | None) -> None:
        """Raise ApiError for a client with too many requests, or without a valid key."""
        self.count(request, key)
        self.keys.check(key)

    def count(self, request: Request, key: str | None) -> None:
        """Count a request. Raises ApiError for a client with too many.

        A client without a valid key is known by its address, and its guesses count.
        """
        client = request.client.host if request.client else ""
        self.rates.check(key if key and self.keys.required and self.keys.accept(key) else client)

    async def admit_bearer(self, request: Request) -> None:
        """`admit` with the key in the header Authorization; a dependency of routes."""
        self.admit(request, bearer_key(request))

    async def read(self, request: Request, kind: type[M]) -> M:
        """The JSON body of an admitted request. Raises ApiError."""
        body = await request.body()
        return await self.jobs.read(request, body, lambda job: json_body(kind, request.headers, body))

    def reported(self, error: Exception, event: str = "stream_failed") -> ApiError:
        """The error to send to a client. An unexpected one is logged, and its message is not sent.

        So is one of the translation memory, the only file that a server writes: its place is nobody's business.
        """
        if isinstance(error, ApiError):
            return error
        if isinstance(error, HeedError) and not isinstance(error, StorageError):
            return ApiError(400, str(error))
        self.log.error(event, error)
        if isinstance(error, StorageError):
            text = "The server's translation memory cannot be used now. If this lasts, contact the server operator."
            return ApiError(503, text, code="unavailable")
        return ApiError(500, "The server failed to handle this request.")


def make_service(
    catalogue: Catalogue, limits: Limits | None = None, keys: ApiKeys | None = None, per_minute: int = 0,
    log: Log | None = None, memory: SharedMemory | None = None, public_url: str = "",
) -> Service:  # fmt: skip
    """The services of a server. The worker is not started."""
    limits, log, metrics = limits or Limits(), log or Log(), Metrics()
    worker = Worker(catalogue.warm_up, metrics, log)
    jobs = Jobs(worker, limits, metrics)
    return Service(
        catalogue,
        catalogue.detector(),
        worker,
        jobs,
        limits,
        keys or ApiKeys(),
        RateLimiter(per_minute),
        metrics,
        log,
        memory=memory,
        public_url=public_url,
    )


def bearer_key(request: Request) -> str | None:
    """The key of the header `Authorization: Bearer KEY`."""
    scheme, _, key = request.headers.get("authorization", "").partition(" ")
    return key.strip() if scheme.lower() == "bearer" and key.strip() else None
