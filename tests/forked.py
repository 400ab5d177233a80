"""Programs forked from a process that has PyTorch and heed in memory: real processes, without seconds of imports.

A module that is imported by its name, as the new processes must find it.
"""

from __future__ import annotations

import multiprocessing
import os
import runpy
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Self

FORKS = multiprocessing.get_context("forkserver")
"""Starts processes that have PyTorch and heed in memory."""
FORKS.set_forkserver_preload([
    "command", "toy", "heed.api", "heed.training.ranks", "heed.tasks.translation.task", "heed.tasks.translation.report",
    "heed.tasks.language_model.task", "torch._dynamo",  # which PyTorch's optimisers import
])  # fmt: skip


class Program:
    """A process that does some work with its standard streams as pipes; used like `subprocess.Popen`."""

    def __init__(self, work: Callable[..., object], *arguments: object) -> None:
        (read_in, write_in), (read_out, write_out), (read_err, write_err) = (FORKS.Pipe(duplex=False) for _ in range(3))
        pipes = (read_in, write_out, write_err)
        self._process = FORKS.Process(target=_program, args=(pipes, work, arguments))
        self._process.start()
        for theirs in pipes:
            theirs.close()
        self.stdin = _file(write_in, "wb")
        self.stdout = _file(read_out, "rb")
        self.stderr = _file(read_err, "rb")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        """Close the pipes and wait."""
        for file in (self.stdout, self.stderr, self.stdin):
            with suppress(BrokenPipeError):
                file.close()
        self.wait()

    @property
    def pid(self) -> int:
        """The process id."""
        assert self._process.pid is not None
        return self._process.pid

    def poll(self) -> int | None:
        """The exit code, or minus the signal that ended it; None while it runs."""
        return self._process.exitcode

    def wait(self, timeout: float = 120) -> int:
        """Wait for the end. Returns the exit code."""
        self._process.join(timeout)
        code = self.poll()
        assert code is not None, "the program does not end"
        return code

    def send_signal(self, number: int) -> None:
        """Send a signal."""
        os.kill(self.pid, number)

    def kill(self) -> None:
        """Kill it, if it still runs."""
        self._process.kill()

    def output(self, timeout: float = 120) -> tuple[bytes, bytes]:
        """Wait for the end. Returns what is left of stdout and of stderr, which a pipe must hold."""
        self.wait(timeout)
        return self.stdout.read(), self.stderr.read()


def _file(end: Connection, mode: str) -> Any:
    """The end of a pipe as a file."""
    file = os.fdopen(os.dup(end.fileno()), mode)
    end.close()
    return file


def _program(pipes: Sequence[Connection], work: Callable[..., object], arguments: Sequence[object]) -> None:
    """Be the program."""
    for number, end in enumerate(pipes):
        os.dup2(end.fileno(), number)
        end.close()
    sys.stdin, sys.stdout = open(0, closefd=False), open(1, "w", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", buffering=1, closefd=False)  # noqa: SIM115
    work(*arguments)


def heed(*words: str) -> None:
    """The command `heed WORDS`."""
    from heed.cli.main import main

    sys.argv = ["heed", *words]
    main()


def script(path: Path, *words: str) -> None:
    """The command `python PATH WORDS`."""
    sys.argv, sys.path[:0] = [str(path), *words], [str(path.parent)]
    runpy.run_path(str(path), run_name="__main__")
