"""A training that hangs at one place, after it has printed that it is there, and says when a signal came."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import forked

import heed.tasks.translation.task as tasks
from heed.training import checkpoints
from heed.training.signals import StopRequest


def _hold() -> None:
    print("here", flush=True)
    for _ in range(3000):
        time.sleep(0.1)


def _in_validation() -> None:
    tasks.TranslationTask.validate = lambda self, model, metrics: _hold()  # type: ignore[method-assign,assignment,return-value]


def _in_a_save() -> None:
    save = checkpoints.save_file

    def slow(tensors: Any, path: Path) -> None:
        save(tensors, path)
        if "optimizer" in path.name and tensors:
            _hold()

    checkpoints.save_file = slow


PLACES: dict[str, Callable[[], None]] = {"validation": _in_validation, "save": _in_a_save}


def train(place: str, *words: str) -> None:
    """The command `heed WORDS`, which hangs at this place."""
    signal.signal(signal.SIGHUP, signal.SIG_DFL)  # `nohup` may have started the tests
    PLACES[place]()
    ask = StopRequest.__call__

    def asked(self: StopRequest, *arguments: Any) -> None:
        ask(self, *arguments)
        os.write(1, b"asked\n")  # a print might come in the middle of another

    StopRequest.__call__ = asked  # type: ignore[method-assign]
    forked.heed(*words)
