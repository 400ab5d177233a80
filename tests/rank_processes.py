"""Processes that train together, started from one that has PyTorch and heed in memory.

A module that is imported by its name, as new processes must find `run_rank`.
"""

from __future__ import annotations

import multiprocessing
import os
import socket
import sys
from collections.abc import Sequence

from command import call

from heed.core.environment import variables_of_rank

FORKS = multiprocessing.get_context("forkserver")
"""Starts processes that have PyTorch and heed in memory."""
FORKS.set_forkserver_preload(["command", "heed.api", "ctranslate2"])


def run_rank(rank: int, num_processes: int, listener: socket.socket, arguments: Sequence[str]) -> None:
    """Be one of the processes that the launcher would start."""
    os.environ.update(variables_of_rank(rank, num_processes, listener))
    listener.detach()
    result = call(*arguments)
    sys.stderr.write(result.err)
    sys.exit(result.code)


def train_together(num_processes: int, arguments: Sequence[str]) -> None:
    """Run a command in several processes, or in this one, and expect it to succeed."""
    if num_processes == 1:
        result = call(*arguments)
        assert result.code == 0, result.err
        return
    with socket.create_server(("127.0.0.1", 0)) as listener:
        ranks = [
            FORKS.Process(target=run_rank, args=(rank, num_processes, listener, arguments), daemon=True)
            for rank in range(num_processes)
        ]
        for process in ranks:
            process.start()
    for process in ranks:
        process.join(120)
    assert [process.exitcode for process in ranks] == [0] * num_processes
