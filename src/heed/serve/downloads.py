"""How is a translated file held until its client fetches it?"""

from __future__ import annotations

import re
import threading
import time
import uuid
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import PurePosixPath

MAX_HELD_BYTES = 64 << 20
MAX_HELD_SECONDS = 3600.0
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9._-]+")


@dataclass(frozen=True)
class Held:
    """A translated file that waits for its client."""

    name: str
    data: bytes
    since: float


class Downloads:
    """Translated files, in memory, under names that nobody guesses. The oldest make room for new ones."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._held: OrderedDict[str, Held] = OrderedDict()
        self._lock = threading.Lock()

    def put(self, name: str, data: bytes) -> str:
        """Hold a file; the name to fetch it by."""
        shown = _NOT_IN_NAMES.sub("_", PurePosixPath(name.replace("\\", "/")).name)[-80:].lstrip(".") or "file"
        key = f"{uuid.uuid4()}.{shown}"
        with self._lock:
            self._held[key] = Held(shown, data, self._clock())
            self._forget()
        return key

    def get(self, key: str) -> Held | None:
        """The file, or None when there is none, or none any longer."""
        with self._lock:
            self._forget()
            return self._held.get(key)

    def _forget(self) -> None:
        oldest_allowed = self._clock() - MAX_HELD_SECONDS
        while self._held and (
            sum(len(held.data) for held in self._held.values()) > MAX_HELD_BYTES
            or next(iter(self._held.values())).since < oldest_allowed
        ):
            self._held.popitem(last=False)
