"""Loader workers: the same training, and a clean end when a worker is lost."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import pytest
from command import call
from toy import events, flags, prepared, tiny_keys, trainer_of

from heed.data.workers import Worker

KEYS = {"tokenizer__dropout": 0.2, "training__max_steps": 12, "training__eval_every": 6, "training__accumulate": 2}


@pytest.fixture(scope="module")
def without_workers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run whose batches a thread prepared."""
    folder = tmp_path_factory.mktemp("workers")
    trainer_of(prepared(folder, "none", **KEYS)).run()
    return folder / "none"


def weights(run: Path) -> bytes:
    return (run / "model.safetensors").read_bytes()


@pytest.mark.parametrize("workers", [1, 3])
def test_any_number_of_workers_trains_the_same_weights(without_workers: Path, workers: int) -> None:
    run = prepared(without_workers.parent, f"workers-{workers}", training__loader_workers=workers, **KEYS)
    trainer_of(run).run()
    assert weights(run.folder) == weights(without_workers)
    assert events(run.folder) == events(without_workers)


def test_a_lost_worker_ends_the_training_with_an_error_and_it_can_be_resumed(
    without_workers: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = without_workers.parent
    keys = flags(tiny_keys(folder, training__loader_workers=2, **KEYS))
    begin, count = Worker.begin, 0

    def begin_and_kill(self: Worker, *arguments: Any) -> None:
        nonlocal count
        count += 1
        begin(self, *arguments)
        if count == 17:
            os.kill(self._process.pid, signal.SIGKILL)

    with monkeypatch.context() as patch:
        patch.setattr(Worker, "begin", begin_and_kill)
        result = call("train", *keys, "--out", folder / "lost", "--quiet")
    assert result.code == 1
    assert result.err.count("a loader worker ended by SIGKILL") == 1
    assert "Traceback" not in result.err
    assert call("train", "--resume", folder / "lost", "--quiet").code == 0
    assert weights(folder / "lost") == weights(without_workers)
