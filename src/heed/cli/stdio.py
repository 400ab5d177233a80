"""How are lines read from stdin and written to stdout, in order, as they come?"""

from __future__ import annotations

import os
import select
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from heed.core.errors import DataError
from heed.text.readers.lines import Errors, LineDecoder

MAX_LINES = 1024
"""Lines of one group: enough that like lengths meet, few enough that output flows."""

PATIENCE = 0.02
"""Seconds after the first line in which others may join its group."""

_BLOCK_BYTES = 1 << 20


def groups_as_they_come(errors: Errors = "strict", max_lines: int = MAX_LINES) -> Iterator[list[str]]:
    """Groups of lines of stdin: whatever has arrived, at most `max_lines`. So a slow writer gets each answer at once.

    Only "\\n" ends a line; a "\\r" before it goes with it. Raises DataError for a line that is not UTF-8, when the
    lines before it have been given.
    """
    decoder = LineDecoder("standard input", errors)
    with _interrupts_leave_at_once():
        for raw_lines in _raw_groups(max_lines):
            group: list[str] = []
            for raw in raw_lines:
                try:
                    group.append(decoder.decode(raw.removesuffix(b"\r")))
                except DataError:
                    if group:
                        yield group
                    raise
            yield group


@contextmanager
def _interrupts_leave_at_once() -> Iterator[None]:
    """A filter has nothing to save, and Python loses an interrupt that comes while an object is being deleted."""
    try:
        before = signal.signal(signal.SIGINT, lambda number, frame: os._exit(128 + number))
    except ValueError:  # not in the main thread: signals are someone else's business
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _raw_groups(max_lines: int) -> Iterator[list[bytes]]:
    rest = b""
    for block in _blocks(sys.stdin.fileno()):
        *lines, rest = (rest + block).split(b"\n")
        yield from (lines[begin : begin + max_lines] for begin in range(0, len(lines), max_lines))
    if rest:
        yield [rest]


def _blocks(descriptor: int) -> Iterator[bytes]:
    """What has arrived: waits for the first bytes, then takes what else comes within PATIENCE; no thread."""
    while block := os.read(descriptor, _BLOCK_BYTES):
        deadline = time.monotonic() + PATIENCE
        while len(block) < _BLOCK_BYTES:
            ready, _, _ = select.select([descriptor], [], [], max(0.0, deadline - time.monotonic()))
            more = os.read(descriptor, _BLOCK_BYTES) if ready else b""
            if not more:
                break
            block += more
        yield block


def write_line(text: str) -> None:
    """One line to stdout as UTF-8."""
    sys.stdout.buffer.write(text.encode("utf-8", "replace") + b"\n")


def write_text(text: str) -> None:
    """A part of a line to stdout as UTF-8."""
    sys.stdout.buffer.write(text.encode("utf-8", "replace"))


def flush() -> None:
    """Let the reader have what was written."""
    sys.stdout.buffer.flush()
