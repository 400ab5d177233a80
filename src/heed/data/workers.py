"""Loader workers: processes that read the rows of batches and split them into subwords.

A worker is a separate Python process, `python -m heed.data.workers`. It reads the path of the token store from its
standard input, then repeatedly an epoch and rows, and writes their ids to its standard output. It does not import
torch, shares no memory, and ends when its input ends, even if the training process is killed.

A message consists of its length and its bytes. Nothing is pickled.
"""

from __future__ import annotations

import json
import os
import signal
import struct
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from heed.core.errors import HeedError
from heed.core.json_text import parse_json
from heed.data.store import TokenStore
from heed.data.subword_dropout import SubwordDropout

if TYPE_CHECKING:
    from heed.data.batch import Ids

Rows = NDArray[np.int64]

_LENGTH = struct.Struct("<q")
_IDS, _ERROR = b"i", b"e"
"""First byte of an answer."""


def ids_of(store: TokenStore, dropout: SubwordDropout | None, epoch: int, rows: Rows) -> dict[str, list[Ids]]:
    """The ids of some rows by side, without bos and eos."""
    ids_by_side: dict[str, list[Ids]] = {
        side: [
            ids if dropout is None else dropout(side, ids, epoch, row)
            for row in rows.tolist()
            for ids in [store.row(side, row)]
        ]
        for side in store.sides
    }
    store.release_pages()
    return ids_by_side


# --- the training process -------------------------------------------------------------------------------


class Worker:
    """A worker process, which handles one request at a time."""

    def __init__(self, store: TokenStore, dropout: SubwordDropout | None) -> None:
        self._sides = store.sides
        self._num_rows = 0
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "heed.data.workers"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,  # a terminal's Ctrl-C is for the training process
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._tasks, self._answers = self._process.stdin, self._process.stdout
        setup = {"store": str(store.folder.absolute()), "dropout": None if dropout is None else dropout.to_json()}
        self._send(json.dumps(setup).encode())

    def begin(self, epoch: int, rows: Rows) -> None:
        """Request the ids of rows, which `finish` returns. Raises HeedError if the process has ended."""
        self._num_rows = len(rows)
        self._send(np.array([epoch, *rows], dtype="<i8").tobytes())

    def finish(self) -> dict[str, list[Ids]]:
        """Wait for the ids by side. Raises HeedError if the process failed or has ended."""
        answer = _receive(self._answers)
        if answer is None:
            raise self._lost()
        if answer[:1] == _ERROR:
            raise HeedError(f"a loader worker failed: {answer[1:].decode()}")
        return _unpacked(answer[1:], self._sides, self._num_rows)

    def end(self) -> None:
        """Kill the process, which has no state to save."""
        self._process.kill()
        self._process.wait()
        self._answers.close()
        with suppress(BrokenPipeError):
            self._tasks.close()

    def _send(self, data: bytes) -> None:
        try:
            _send(self._tasks, data)
        except BrokenPipeError:
            raise self._lost() from None

    def _lost(self) -> HeedError:
        code = self._process.wait()  # its pipe is closed, so it has ended or is about to
        how = f"by {signal.Signals(-code).name}" if code < 0 else f"with exit code {code}"
        return HeedError(
            f"a loader worker ended {how}. If memory ran out, lower training.loader_workers in recipe.toml. "
            "Continue from the last checkpoint with --resume."
        )


@contextmanager
def running(num: int, store: TokenStore, dropout: SubwordDropout | None) -> Iterator[list[Worker]]:
    """A number of workers, which are ended at the end of the block."""
    workers: list[Worker] = []
    try:
        for _ in range(num):
            workers.append(Worker(store, dropout))
        yield workers
    finally:
        for worker in workers:
            worker.end()


# --- the worker -----------------------------------------------------------------------------------------


def serve(tasks: IO[bytes], answers: IO[bytes]) -> None:
    """Answer until the input ends."""
    setup = parse_json(_receive(tasks) or b"{}")
    store = TokenStore.open(Path(setup["store"]))
    dropout = None if setup["dropout"] is None else SubwordDropout.from_json(setup["dropout"])
    while (task := _receive(tasks)) is not None:
        epoch, *rows = np.frombuffer(task, dtype="<i8")
        try:
            answer = _IDS + _packed(ids_of(store, dropout, int(epoch), np.array(rows)))
        except Exception as error:  # any error is reported to the training process
            answer = _ERROR + f"{type(error).__name__}: {error}".encode()
        _send(answers, answer)


def main() -> None:
    """Run a worker. Prints go to stderr, and signals are left to the training process."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with suppress(BrokenPipeError), os.fdopen(os.dup(1), "wb") as answers:
        os.dup2(2, 1)
        serve(sys.stdin.buffer, answers)


# --- messages -------------------------------------------------------------------------------------------


def _send(pipe: IO[bytes], data: bytes) -> None:
    pipe.write(_LENGTH.pack(len(data)) + data)
    pipe.flush()


def _receive(pipe: IO[bytes]) -> bytes | None:
    """The next message; None if the other end was closed, even within a message."""
    head = pipe.read(_LENGTH.size)
    if len(head) < _LENGTH.size:
        return None
    (length,) = _LENGTH.unpack(head)
    data = pipe.read(length)
    return data if len(data) == length else None


def _packed(ids: Mapping[str, Sequence[Ids]]) -> bytes:
    """The lengths of all rows of each side, then the ids of all rows."""
    sequences = [sequence for side in ids.values() for sequence in side]
    lengths = np.array([len(sequence) for sequence in sequences], dtype="<i4")
    flat = np.concatenate([np.empty(0, np.int64), *sequences], dtype="<i4", casting="unsafe")
    return lengths.tobytes() + flat.tobytes()


def _unpacked(data: bytes, sides: Sequence[str], num_rows: int) -> dict[str, list[Ids]]:
    numbers = np.frombuffer(data, dtype="<i4")
    lengths, flat = np.split(numbers, [len(sides) * num_rows])
    sequences: list[Ids] = [*np.split(flat, np.cumsum(lengths)[:-1])]
    return {side: sequences[i * num_rows : (i + 1) * num_rows] for i, side in enumerate(sides)}


if __name__ == "__main__":
    main()
