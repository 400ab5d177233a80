"""Document processes: files are read by processes of their own, which can be ended at any moment.

A file from a stranger may take long to read and much memory, and whoever computes in this process makes everybody else
wait for the interpreter. See `heed.documents.isolated`, which is what the processes run.
"""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from multiprocessing.connection import Pipe
from typing import Any

from heed.core.environment import memory_bytes
from heed.core.errors import DataError
from heed.core.json_text import parse_json
from heed.decoding.options import Constraints
from heed.documents.isolated import send
from heed.documents.translation import Searcher, Step, TranslateOptions
from heed.text.readers.columns import Sides

MOST_PROCESSES = 8
"""Files that are read at once, where there is memory for as many. Others wait."""
MEMORY = 1 << 30
"""Bytes of memory, beyond those of a process without a file, that a file may take."""
MOST_UNPACKED = 16 << 20
"""Bytes to which the texts of an office document may unpack: sixteen times the largest upload."""
LEAST_IDLE, MOST_IDLE = 2, 4
"""Processes that are kept ready, as starting one takes a quarter of a second."""
POLL_SECONDS = 0.1
"""Time between two looks at whether anybody still waits."""


def files_at_once(memory: int) -> int:
    """How many files may be read at once in this memory, of which the server itself has as much as a file."""
    return max(1, min(MOST_PROCESSES, memory // MEMORY - 1))


class DocumentProcess:
    """One process, seen from the one that has the models."""

    def __init__(self, memory: int = MEMORY) -> None:
        self._connection, theirs = Pipe()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "heed.documents.isolated", str(theirs.fileno()), str(memory)],
                pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL, process_group=0,  # an interrupt is for the server
            )  # fmt: skip
        self.is_fit = True
        """Whether it can translate another file."""

    def translate(
        self, name: str, data: bytes, searcher: Searcher, path: Sequence[Step], options: TranslateOptions, sides: Sides
    ) -> bytes:
        """The translated file. Raises what the searcher raises, DataError, and RuntimeError for a failure."""
        self.is_fit = False  # until it has ended well
        steps = [(step.src_lang, step.translator.normaliser.model_dump()) for step in path]
        given = {"glossary": dict(options.glossary), "keep": list(options.keep)}
        try:
            about = {"name": name, "sides": asdict(sides), "most_unpacked": MOST_UNPACKED}
            send(self._connection, {"path": steps, "options": given, **about})
            self._connection.send_bytes(data)
            kind, content = self._end_of(lambda message: _answer(searcher, path, options, message), searcher.check)
        except (EOFError, ConnectionError) as error:
            raise DataError(f"{name} takes too much time or memory to read.") from error
        if kind == "error":
            raise DataError(content.decode(errors="replace"))
        if kind != "file":
            raise RuntimeError(f"the process that reads files failed: {content.decode(errors='replace')}")
        return content

    def _end_of(self, answer: Callable[[Any], Any], check: Callable[[], None]) -> tuple[str, bytes]:
        """Answer the questions about a document; the outcome and what belongs to it."""
        while "question" in (message := parse_json(self._received(check))):
            send(self._connection, answer(message))
        content = self._received(check)
        self.is_fit = message["is_fit"] is True
        return message["outcome"], content

    def _received(self, check: Callable[[], None]) -> bytes:
        while not self._connection.poll(POLL_SECONDS):
            check()
        return self._connection.recv_bytes()

    @property
    def is_alive(self) -> bool:
        """Whether nobody has ended it, such as the system when memory ran out."""
        return self._process.poll() is None

    def end(self) -> None:
        """End the process, whatever it does."""
        self._connection.close()
        self._process.kill()
        self._process.wait()


class DocumentProcesses:
    """The processes of a server."""

    def __init__(self, most: int | None = None) -> None:
        """`most`: files that are read at once; by default as many as the memory of the machine is enough for."""
        self._places = threading.BoundedSemaphore(most or files_at_once(memory_bytes()))
        self._idle: list[DocumentProcess] = []
        self._lock = threading.Lock()
        self._is_closed = False

    def start(self) -> None:
        """Start the processes that are kept ready."""
        with self._lock:
            while len(self._idle) < LEAST_IDLE and not self._is_closed:
                self._idle.append(DocumentProcess())

    def close(self) -> None:
        """End the processes that wait for a file. Those that read one end with its job."""
        with self._lock:
            self._is_closed = True
            idle, self._idle = self._idle, []
        for process in idle:
            process.end()

    def translate(
        self, name: str, data: bytes, searcher: Searcher, path: Sequence[Step], options: TranslateOptions, sides: Sides
    ) -> bytes:
        """The translated file, as soon as a process is free. Raises what the searcher raises, and DataError."""
        with self._process(searcher.check) as process:
            return process.translate(name, data, searcher, path, options, sides)

    @contextmanager
    def _process(self, check: Callable[[], None]) -> Iterator[DocumentProcess]:
        while not self._places.acquire(timeout=POLL_SECONDS):
            check()
        try:
            process = self._taken()
            try:
                self.start()
                yield process
            finally:
                self._take_back(process)
        finally:
            self._places.release()

    def _taken(self) -> DocumentProcess:
        """A process that waits for a file, or a new one."""
        with self._lock:
            while self._idle:
                if (process := self._idle.pop(0)).is_alive:
                    return process
                process.end()
            return DocumentProcess()

    def _take_back(self, process: DocumentProcess) -> None:
        with self._lock:
            is_kept = process.is_fit and len(self._idle) < MOST_IDLE and not self._is_closed
            if is_kept:
                self._idle.append(process)
        if not is_kept:
            process.end()


def _answer(searcher: Searcher, path: Sequence[Step], options: TranslateOptions, message: Any) -> Any:
    """The answer to a question of a process."""
    number = message["step"]
    step, is_last = path[number], number == len(path) - 1
    if message["question"] == "tokens":
        searcher.check()
        return step.translator.num_source_tokens(message["line"])
    if message["question"] == "links":
        return searcher.links(step, [(source, target) for source, target in message["pairs"]])
    constraints = [Constraints("", tuple(terms), tuple(sources)) for terms, sources in message["terms"]]
    outputs = searcher.translate(
        step, message["texts"], options.search_options(step.options, is_last),
        constraints if any(each.terms for each in constraints) else None,
    )  # fmt: skip
    return [(hypothesis.text, hypothesis.links) for hypothesis in outputs]
