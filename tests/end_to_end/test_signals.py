"""A second signal ends a training at once and leaves no incomplete checkpoint."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from forked import Program
from hanging_training import train
from toy import TINY, flags, write_pairs

from heed.core.files import is_debris
from heed.training.checkpoints import list_checkpoints, newest_checkpoint


@contextmanager
def started(folder: Path, slow: str) -> Iterator[Program]:
    """A training that hangs at one place and has reached it; killed at the end."""
    src, tgt = write_pairs(folder)
    keys = {**TINY, "training.eval_every": 3, "training.save_every": 2, "data.max_valid": 3}
    words = ["train", "--task", "translation", "--src", src, "--tgt", tgt, *flags(keys), "--out", folder / "run"]
    with Program(train, slow, *map(str, words), "--threads", "1", "--quiet") as process:
        try:
            assert process.stdout.readline() == b"here\n", process.stderr.read().decode()
            yield process
        finally:
            process.kill()


@pytest.mark.parametrize(
    ("slow", "number"), [("validation", signal.SIGINT), ("validation", signal.SIGHUP), ("save", signal.SIGTERM)]
)
def test_a_second_signal_ends_a_training_at_once(tmp_path: Path, slow: str, number: signal.Signals) -> None:
    with started(tmp_path, slow) as process:
        process.send_signal(number)
        if slow == "validation":  # the first signal interrupts it, to save and to end
            assert process.wait(120) == 128 + number
        else:
            assert process.stdout.readline() == b"asked\n", "the first signal lets it finish"
            process.send_signal(number)
            assert process.wait(120) == 128 + number, "long before the save would end"
        assert process.stderr.read() == b""
    folder = tmp_path / "run"
    newest = newest_checkpoint(folder / "checkpoints", strict=True)
    assert newest.progress.step == {"validation": 3, "save": 0}[slow]
    assert len(list_checkpoints(folder / "checkpoints")) == (1 if slow != "validation" else 3)
    assert not any(map(is_debris, folder.rglob("*")))
