"""API keys and rate limits. Keys are stored as digests and compared in constant time."""

from __future__ import annotations

import hashlib
import hmac
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable
from pathlib import Path

from heed.core.errors import MissingInputError, UsageError
from heed.serve.errors import ApiError

MAX_CLIENTS = 10_000
"""Clients whose rate is tracked."""


def _digest(key: str) -> bytes:
    return hashlib.sha256(key.encode("utf-8", "replace")).digest()


class ApiKeys:
    """The keys that a server accepts. Without any, no key is needed."""

    def __init__(self, keys: Iterable[str] = ()) -> None:
        self._digests = [_digest(key) for key in keys]

    @staticmethod
    def read(path: Path) -> ApiKeys:
        """From a file with one key per line. Empty lines and lines that start with # are skipped."""
        try:
            lines = path.read_text(encoding="utf-8-sig").splitlines()  # some editors write a byte order mark
        except (OSError, UnicodeDecodeError) as error:
            raise MissingInputError(f"--api-keys {path}: cannot be read as text: {error}.") from error
        keys = [line for line in map(str.strip, lines) if line and not line.startswith("#")]
        if not keys:
            raise UsageError(f"--api-keys {path}: the file has no keys. Write one per line.")
        if not all(map(str.isascii, keys)):
            raise UsageError(f"--api-keys {path}: a key has characters other than ASCII, which headers cannot carry.")
        return ApiKeys(keys)

    @property
    def required(self) -> bool:
        """Whether a request needs a key."""
        return bool(self._digests)

    def accept(self, key: str) -> bool:
        """Whether a key is one of these. All are compared, so that the time reveals nothing."""
        digest = _digest(key)
        return sum(hmac.compare_digest(digest, accepted) for accepted in self._digests) > 0

    def check(self, key: str | None) -> None:
        """Raise ApiError without a valid key."""
        if not self.required:
            return
        if not key:
            raise ApiError(401, "Please contact the server operator to get an API key")
        if not self.accept(key):
            raise ApiError(403, "Invalid API key", code="unauthorized")


class RateLimiter:
    """A token bucket for each client."""

    def __init__(self, per_minute: int, clock: Callable[[], float] = time.monotonic) -> None:
        """`per_minute`: requests; 0 for no limit."""
        self.per_minute = per_minute
        self._clock = clock
        self._buckets: OrderedDict[bytes, tuple[float, float]] = OrderedDict()  # (requests left, time of the last one)

    def check(self, client: str) -> None:
        """Count a request of a client, identified by key or address. Raises ApiError beyond the rate."""
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
            raise ApiError(429, f"Slowdown: {self.per_minute} per 1 minute", retry_after=int(wait) + 1)
