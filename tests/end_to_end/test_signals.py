"""A second signal ends a training at once and leaves no incomplete checkpoint."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from toy import TINY, flags, write_pairs

from heed.core.files import is_debris
from heed.training.checkpoints import list_checkpoints, newest_checkpoint

SLOW = {
    "validation": """
import heed.tasks.translation.task as tasks
tasks.TranslationTask.validate = lambda self, model, metrics: hold()
""",
    "save": """
import heed.training.checkpoints as checkpoints
def slow(tensors, path, original=checkpoints.save_file):
    original(tensors, path)
    if "optimizer" in path.name and tensors:
        hold()
checkpoints.save_file = slow
""",
}  # fmt: skip
"""Code that makes a training hang at one place, after it has printed that it is there."""

PROGRAM = """
import os, time
from heed.training.signals import StopRequest
def hold():
    print("here", flush=True)
    for _ in range(3000):
        time.sleep(0.1)
def asked(self, *arguments, original=StopRequest.__call__):
    original(self, *arguments)
    os.write(1, b"asked\\n")  # a print might come in the middle of another
StopRequest.__call__ = asked
{slow}
from heed.cli.main import main
main()
"""


@contextmanager
def started(folder: Path, slow: str) -> Iterator[subprocess.Popen[bytes]]:
    """A training that hangs at one place and has reached it; killed at the end."""
    src, tgt = write_pairs(folder)
    keys = {**TINY, "training.eval_every": 3, "training.save_every": 2, "data.max_valid": 3}
    words = ["train", "--task", "translation", "--src", src, "--tgt", tgt, *flags(keys), "--out", folder / "run"]
    program = [sys.executable, "-c", PROGRAM.format(slow=SLOW[slow]), *map(str, words), "--threads", "1", "--quiet"]
    with subprocess.Popen(program, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == b"here\n", process.communicate()[1].decode()
            yield process
        finally:
            process.kill()


@pytest.mark.parametrize(("slow", "number"), [("validation", signal.SIGINT), ("save", signal.SIGTERM)])
def test_a_second_signal_ends_a_training_at_once(tmp_path: Path, slow: str, number: signal.Signals) -> None:
    with started(tmp_path, slow) as process:
        process.send_signal(number)
        if slow == "validation":  # the first signal interrupts it, to save and to end
            assert process.wait(120) == 128 + number
        else:
            assert process.stdout is not None
            assert process.stdout.readline() == b"asked\n", "the first signal lets it finish"
            process.send_signal(number)
            assert process.wait(120) == 128 + number, "long before the save would end"
        assert process.stderr is not None
        assert process.stderr.read() == b""
    folder = tmp_path / "run"
    newest = newest_checkpoint(folder / "checkpoints", strict=True)
    assert newest.progress.step == {"validation": 3, "save": 0}[slow]
    assert len(list_checkpoints(folder / "checkpoints")) == (1 if slow != "validation" else 3)
    assert not any(map(is_debris, folder.rglob("*")))
