"""Streaming lines from stdin to stdout."""

from __future__ import annotations

import os
import select
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from heed.core.errors import DataError
from heed.text.archives import require_line
from heed.text.readers.lines import Errors, LineDecoder

MAX_LINES = 1024
"""Maximum lines of a group: enough to batch lines of similar length, few enough for a steady output."""

WAIT = 0.02
"""Seconds after the first line of a group in which others may join it."""

_BLOCK_BYTES = 1 << 20


def groups_as_they_come(errors: Errors = "strict", max_lines: int = MAX_LINES) -> Iterator[list[str]]:
    """Yield the lines of stdin in groups of what has arrived, so that a slow writer gets each answer at once.

    Only "\\n" ends a line; a "\\r" before it is removed too. Raises DataError for a line that is not UTF-8, after the
    lines before it were yielded.
    """
    decoder = LineDecoder("standard input", errors)
    with _exit_on_interrupt():
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
def _exit_on_interrupt() -> Iterator[None]:
    """Exit at once on SIGINT: there is nothing to save, and Python can lose an interrupt while it deletes an object."""
    try:
        before = signal.signal(signal.SIGINT, lambda number, frame: os._exit(128 + number))
    except ValueError:  # not in the main thread, which alone handles signals
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _raw_groups(max_lines: int) -> Iterator[list[bytes]]:
    rest = b""
    number = 1
    for block in _blocks(sys.stdin.fileno()):
        *lines, rest = (rest + block).split(b"\n")
        number += len(lines)
        require_line(len(rest), "standard input", number)
        yield from (lines[begin : begin + max_lines] for begin in range(0, len(lines), max_lines))
    if rest:
        yield [rest]


def _blocks(descriptor: int) -> Iterator[bytes]:
    """Yield what has arrived: wait for the first bytes, then take what else comes within `WAIT`, without a thread."""
    while block := os.read(descriptor, _BLOCK_BYTES):
        deadline = time.monotonic() + WAIT
        while len(block) < _BLOCK_BYTES:
            ready, _, _ = select.select([descriptor], [], [], max(0.0, deadline - time.monotonic()))
            more = os.read(descriptor, _BLOCK_BYTES) if ready else b""
            if not more:
                break
            block += more
        yield block


def write_line(text: str) -> None:
    """Write a line to stdout as UTF-8."""
    write_text(text + "\n")


def write_text(text: str) -> None:
    """Write a part of a line to stdout as UTF-8."""
    sys.stdout.buffer.write(text.encode("utf-8", "replace"))


def flush() -> None:
    """Flush stdout."""
    sys.stdout.buffer.flush()
