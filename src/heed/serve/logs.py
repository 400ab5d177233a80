"""What does the server tell its operator? A JSON object a line on stderr; never a text, a key or an address."""

from __future__ import annotations

import json
import threading
import time
import traceback
from pathlib import PurePath
from typing import TextIO

from heed.core.progress import BestEffort

Value = str | int | float | bool | None


class Log:
    """Writes events. `quiet`: only warnings and errors."""

    def __init__(self, quiet: bool = False, stream: TextIO | None = None) -> None:
        self.quiet = quiet
        self._stream = stream
        self._lock = threading.Lock()

    def event(self, name: str, **fields: Value) -> None:
        """Something that is in order."""
        if not self.quiet:
            self._write("info", name, fields)

    def error(self, name: str, error: BaseException | None = None, **fields: Value) -> None:
        """Something that is not. Of an exception only its kind and place are told: its words may hold a text."""
        if error is not None:
            fields = {**fields, "kind": type(error).__name__, "at": _place(error)}
        self._write("error", name, fields)

    def _write(self, level: str, name: str, fields: dict[str, Value]) -> None:
        moment = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        line = json.dumps({"time": moment, "level": level, "event": name, **fields}, ensure_ascii=True)
        stream = BestEffort(self._stream)  # a log that cannot be written must not stop the server
        with self._lock:
            stream.write(line + "\n")
            stream.flush()


def _place(error: BaseException) -> str:
    """`scheduler.py:120 < worker.py:88 < ...`: the innermost first."""
    frames = traceback.extract_tb(error.__traceback__)[-6:]
    return " < ".join(f"{PurePath(frame.filename).name}:{frame.lineno}" for frame in reversed(frames))
