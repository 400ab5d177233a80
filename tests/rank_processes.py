"""Processes that train together, started from one that has PyTorch and heed in memory.

A module that is imported by its name, as new processes must find `run_rank`.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
import threading
from collections.abc import Sequence

import torch
from command import call
from forked import FORKS

from heed.core.environment import variables_of_rank
from heed.core.errors import DataError, HeedError
from heed.training import last_words
from heed.training.ranks import joined


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


def work_alone(rank: int, listener: socket.socket) -> None:
    """Be one of two ranks: the first works alone until it reads a line, and fails; the other waits."""
    os.environ.update(variables_of_rank(rank, 2, listener))
    listener.detach()
    try:
        with joined(torch.device("cpu")) as ranks:
            print("joined", flush=True)
            if not ranks.is_first:
                ranks.wait()
            elif sys.stdin.readline():
                raise DataError("The data is wrong.")
    except HeedError as error:
        print(error, flush=True)


def do_not_listen() -> None:
    """Have something to say while the main thread is in a library that does not return."""
    last_words.PATIENCE = 0.01
    words = last_words.LastWords()
    with words.listening():
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
        words.say("It is gone.")
        threading.Event().wait(60)
