"""Pipes, streaming and signals, which need a separate process: a forked one where it will do, to save seconds."""

from __future__ import annotations

import os
import select
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest
from command import arguments_of, call, run, start
from forked import Program, heed
from toy import TINY, events, flags, write_pairs

from heed.training.checkpoints import list_checkpoints


def forked(*words: object) -> Program:
    """`heed WORDS`, forked."""
    return Program(heed, *arguments_of(*words))


def read_line(process: subprocess.Popen[bytes] | Program, seconds: float = 60) -> bytes:
    """The next line of a program's stdout, if it comes in time."""
    assert process.stdout is not None
    ready, _, _ = select.select([process.stdout], [], [], seconds)
    assert ready, "no line came"
    return process.stdout.readline()


def test_a_line_is_answered_before_the_next_one_is_written(translator: Path) -> None:
    """And an interrupt while it waits ends it with 130 and no message."""
    with forked("translate", translator, "--quiet") as process:
        answers = []
        for line in (b"ba ce\n", b"\n"):
            process.stdin.write(line)
            process.stdin.flush()
            answers.append(read_line(process))
        process.send_signal(signal.SIGINT)
        assert process.wait(120) == 130
        assert process.stderr.read() == b""
    assert answers == [line.encode() + b"\n" for line in call("translate", translator, stdin="ba ce\n\n").lines]


def test_head_ends_a_translation_silently_while_its_input_is_open(translator: Path) -> None:
    with start("translate", translator, "--beam", "1", "--quiet") as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdin.write(b"ba ce\n" * 10)
        process.stdin.flush()
        read_line(process)
        process.stdout.close()
        process.stdin.write(b"fo gu\n" * 10)
        process.stdin.flush()  # and it is not closed: another writer may still hold the pipe
        assert process.wait(120) == 141
        assert process.stderr.read() == b""


def test_a_training_continues_when_the_reader_of_stderr_has_ended(tmp_path: Path) -> None:
    src, tgt = write_pairs(tmp_path)
    keys = {**TINY, "training.max_steps": 3, "training.log_every": 1, "data.max_valid": 3}
    words = ["train", "--task", "translation", "--src", src, "--tgt", tgt, *flags(keys), "--out", tmp_path / "run"]
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w", buffering=1) as broken:
        assert call(*words, stderr=broken).code == 0
        with pytest.raises(BrokenPipeError):
            broken.write("nobody reads this\n")
        os.dup2(os.open(os.devnull, os.O_WRONLY), broken.fileno())  # so that closing it can flush
    assert (tmp_path / "run" / "report.md").exists()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full on this system")
def test_a_full_disk_under_stdout_ends_with_74(translator: Path) -> None:
    with Path("/dev/full").open("w") as full:
        result = call("info", translator, stdout=full)
    assert (result.code, result.err) == (74, "error: reading or writing failed: No space left on device.\n")


def training(folder: Path) -> list[object]:
    """The call of a training that does not end by itself, without the value of its --out."""
    src, tgt = write_pairs(folder)
    keys = {**TINY, "training.max_steps": 1_000_000, "training.save_every": 7, "training.log_every": 1,
            "training.average": "none", "data.max_valid": 3, "training.patience": 0}  # fmt: skip
    return ["train", "--task", "translation", "--src", src, "--tgt", tgt, *flags(keys), "--quiet", "--out"]


def wait_for_update(process: Program, folder: Path, step: int, seconds: float = 120) -> None:
    """Wait until a training has reached an update."""
    deadline = time.monotonic() + seconds
    while not (folder / "metrics.jsonl").exists() or not any(event["step"] >= step for event in events(folder)):
        assert process.poll() is None, process.stderr.read().decode()
        assert time.monotonic() < deadline, "the training makes no progress"
        time.sleep(0.01)


def check_resumed(folder: Path, words: list[object], straight: Path) -> None:
    """A stopped training that is resumed for some updates equals one that was never stopped."""
    steps = int(list_checkpoints(folder / "checkpoints")[-1].name.removeprefix("step-")) + 15
    recipe = folder / "recipe.toml"
    recipe.write_text(recipe.read_text().replace("max_steps = 1000000", f"max_steps = {steps}"))
    assert call("train", "--resume", folder, "--quiet").code == 0
    assert call(*words, straight, f"--training.max_steps={steps}").code == 0
    assert (folder / "model.safetensors").read_bytes() == (straight / "model.safetensors").read_bytes()
    last = {event["step"]: event["loss"] for event in events(folder) if event["event"] == "train"}
    assert last == {event["step"]: event["loss"] for event in events(straight) if event["event"] == "train"}


@pytest.mark.parametrize("number", [signal.SIGTERM, pytest.param(signal.SIGINT, marks=pytest.mark.slow)])
def test_a_signal_stops_a_training_and_resume_continues_it_bit_for_bit(tmp_path: Path, number: signal.Signals) -> None:
    words, folder = training(tmp_path), tmp_path / "stopped"
    with forked(*words, folder) as process:
        wait_for_update(process, folder, 9)
        process.send_signal(number)
        assert process.wait(120) == 128 + number
        assert process.stderr.read() == b""
    assert events(folder)[-1]["reason"] == f"stopped by {number.name}"
    check_resumed(folder, words, tmp_path / "straight")


@pytest.mark.slow  # test_kill.py kills at random moments, in processes that start faster
def test_a_killed_training_resumes_from_its_last_checkpoint(tmp_path: Path) -> None:
    words, folder = training(tmp_path), tmp_path / "killed"
    with forked(*words, folder) as process:
        wait_for_update(process, folder, 17)
        process.kill()
    check_resumed(folder, words, tmp_path / "straight")


def test_a_copied_run_translates_in_a_program_as_in_this_process(translator: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(translator, tmp_path / "copy", ignore=shutil.ignore_patterns("data", "checkpoints"))
    text = b"ba ce\r\n\n  \nfo gu di\n\xff\n"
    result = run("translate", copy, "--quiet", stdin=text)
    assert (result.code, len(result.lines)) == (65, 4)
    assert result.err.startswith("error: standard input:5: byte 1 is not valid UTF-8 (0xFF).")
    assert result == call("translate", translator, "--quiet", stdin=text)
