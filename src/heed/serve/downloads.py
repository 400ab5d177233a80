"""Translated files, kept in memory until their clients download them."""

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
    """A translated file."""

    name: str
    """In ASCII, as it is in the URL."""
    title: str
    """With the letters of the uploaded file's name."""
    data: bytes
    since: float


class Downloads:
    """Files under keys that cannot be guessed. The oldest are dropped to make room, and after an hour."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._held: OrderedDict[str, Held] = OrderedDict()
        self._lock = threading.Lock()

    def put(self, name: str, language: str, data: bytes) -> str:
        """Keep the translation of a file, named with its language: `a.txt` becomes `a.de.txt`. Returns its key."""
        path = PurePosixPath(PurePosixPath(name.replace("\\", "/")).name)
        title = "".join(filter(str.isprintable, f"{path.stem}.{language}{path.suffix}"))[-80:].lstrip(".") or "file"
        shown = _NOT_IN_NAMES.sub("_", title)
        key = f"{uuid.uuid4()}.{shown}"
        with self._lock:
            self._held[key] = Held(shown, title, data, self._clock())
            self._drop_old()
        return key

    def get(self, key: str) -> Held | None:
        """The file, or None if there is none or it has been dropped."""
        with self._lock:
            self._drop_old()
            return self._held.get(key)

    def _drop_old(self) -> None:
        oldest_allowed = self._clock() - MAX_HELD_SECONDS
        while self._held and (
            sum(len(held.data) for held in self._held.values()) > MAX_HELD_BYTES
            or next(iter(self._held.values())).since < oldest_allowed
        ):
            self._held.popitem(last=False)
