"""What do all routes share?"""

from __future__ import annotations

from dataclasses import dataclass, field

from starlette.requests import Request

from heed.serve.auth import ApiKeys, RateLimiter
from heed.serve.downloads import Downloads
from heed.serve.engine.catalogue import Catalogue
from heed.serve.engine.jobs import Jobs
from heed.serve.engine.worker import Worker
from heed.serve.limits import Limits
from heed.serve.logs import Log
from heed.serve.metrics import Metrics
from heed.text.language.identify import LanguageIdentifier


@dataclass(frozen=True)
class Service:
    """One server's parts."""

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

    def admit(self, request: Request, key: str | None) -> None:
        """Raise ApiError for a client without a valid key, or one that asks too often."""
        self.keys.check(key)
        client = request.client.host if request.client else ""
        self.rates.check(key if key and self.keys.required else client)


def bearer_key(request: Request) -> str | None:
    """The key in the header `Authorization: Bearer KEY`."""
    scheme, _, key = request.headers.get("authorization", "").partition(" ")
    return key.strip() if scheme.lower() == "bearer" and key.strip() else None
