"""Who may ask, and how often? Keys are compared in constant time, and kept as digests."""

from __future__ import annotations

import hashlib
import hmac
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable
from pathlib import Path

from heed.core.errors import MissingInputError, UsageError
from heed.serve.errors import MissingKeyError, RateLimitError, WrongKeyError

MAX_CLIENTS = 10_000
"""Clients whose rate is remembered."""


def _digest(key: str) -> bytes:
    return hashlib.sha256(key.encode("utf-8", "replace")).digest()


class ApiKeys:
    """The keys that a server accepts; without any, everyone may ask."""

    def __init__(self, keys: Iterable[str] = ()) -> None:
        self._digests = [_digest(key) for key in keys]

    @staticmethod
    def read(path: Path) -> ApiKeys:
        """From a file: a key on each line; empty lines and those that begin with # are skipped."""
        try:
            lines = path.read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            raise MissingInputError(f"--api-keys {path}: it cannot be read as text: {error}.") from error
        keys = [line.strip() for line in lines if line.strip() and not line.startswith("#")]
        if not keys:
            raise UsageError(f"--api-keys {path}: there is no key in it. Write one on each line.")
        return ApiKeys(keys)

    @property
    def required(self) -> bool:
        """Whether a request needs a key."""
        return bool(self._digests)

    def check(self, key: str | None) -> None:
        """Raise MissingKeyError or WrongKeyError. All keys are compared, so the time tells nothing."""
        if not self.required:
            return
        if not key:
            raise MissingKeyError("Please contact the server operator to get an API key")
        digest = _digest(key)
        if not sum(hmac.compare_digest(digest, known) for known in self._digests):
            raise WrongKeyError("Invalid API key")


class RateLimiter:
    """Each client has a bucket of requests that fills up evenly (a token bucket)."""

    def __init__(self, per_minute: int, clock: Callable[[], float] = time.monotonic) -> None:
        """`per_minute` 0: there is no limit."""
        self.per_minute = per_minute
        self._clock = clock
        self._buckets: OrderedDict[bytes, tuple[float, float]] = OrderedDict()  # (requests left, when it was so)

    def check(self, client: str) -> None:
        """Count a request of a client, told by key or address. Raises RateLimitError."""
        if not self.per_minute:
            return
        name, now = _digest(client), self._clock()
        left, before = self._buckets.pop(name, (float(self.per_minute), now))
        left = min(self.per_minute, left + (now - before) * self.per_minute / 60)
        self._buckets[name] = (max(0.0, left - 1) if left >= 1 else left, now)
        if len(self._buckets) > MAX_CLIENTS:
            self._buckets.popitem(last=False)
        if left < 1:
            wait = (1 - left) * 60 / self.per_minute
            raise RateLimitError(f"Slowdown: {self.per_minute} per 1 minute", retry_after=int(wait) + 1)
