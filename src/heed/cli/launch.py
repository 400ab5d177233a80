"""Launcher of several processes that train together on this machine (`heed train --nproc`).

Each gets the variables that `torchrun` would set; on several machines `torchrun` itself starts `python -m heed train`.
Signals are forwarded to all processes. When one fails, the lifelines of the others report it, and they have some
seconds to end.
"""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from types import FrameType

from heed.core import environment
from heed.core.progress import warn
from heed.training.signals import stop_signals

GRACE = 10.0
"""Seconds that the other processes have to end after one has failed."""
STOPPED = (0, 128 + signal.SIGINT, 128 + signal.SIGTERM, 128 + signal.SIGHUP)
"""Exit codes of a process that finished, or was asked to stop."""


def launch(num_processes: int, arguments: Sequence[str]) -> int:
    """Run `heed ARGUMENTS` in several processes; return the exit code of the first that failed, or 0."""
    # Rank 0 inherits the socket, so that no other program can take its port.
    with socket.create_server(("127.0.0.1", 0)) as listener:
        processes = [
            subprocess.Popen(
                [sys.executable, "-m", "heed", *arguments],
                env=environment.variables_of_rank(rank, num_processes, listener),
                pass_fds=[] if rank else [listener.fileno()],
                start_new_session=True,  # so that Ctrl-C reaches it once, through this process
            )
            for rank in range(num_processes)
        ]
    return supervise(processes)


def supervise(
    processes: Sequence[subprocess.Popen[bytes]], grace: float = GRACE, names: Sequence[str] | None = None
) -> int:
    """Wait for all processes, but only `grace` seconds once one has failed; return the first exit code that is not 0,
    or 0. `names` are those of the processes in messages.
    """
    names = names or [f"process {number} of {len(processes)}" for number in range(1, 1 + len(processes))]

    def forward(number: int, frame: FrameType | None) -> None:
        for process in processes:
            if process.poll() is None:
                process.send_signal(number)

    before = {number: signal.signal(number, forward) for number in stop_signals()}
    try:
        return _exit_code(_wait(processes, grace, names))
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        for name, process in zip(names, processes, strict=True):
            if process.poll() is None:
                warn(f"{name} did not end in time and is killed.")
                process.kill()


def _wait(processes: Sequence[subprocess.Popen[bytes]], grace: float, names: Sequence[str]) -> list[int]:
    """Wait until all have ended, or for `grace` seconds after the first failure; return the codes in order of time."""
    codes: dict[int, int] = {}
    deadline = float("inf")
    while len(codes) < len(processes) and time.monotonic() < deadline:
        for rank, process in enumerate(processes):
            code = process.poll()
            if code is not None and rank not in codes:
                codes[rank] = code
                if code not in STOPPED:
                    deadline = min(deadline, time.monotonic() + grace)
                if code < 0:  # killed, so it could not report an error
                    warn(f"{names[rank]} was killed by {signal.Signals(-code).name}.")
        time.sleep(0.1)
    return list(codes.values())


def _exit_code(codes: Sequence[int]) -> int:
    """The first code that is not 0, as a shell reports it."""
    code = next((code for code in codes if code), 0)
    return 128 - code if code < 0 else code
