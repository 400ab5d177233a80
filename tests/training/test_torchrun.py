"""Trainings under torchrun: a lost process or machine, and the same command with what is left."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from command import call
from toy import events, flags, tiny_keys, without_shape_checks

__all__ = ["without_shape_checks"]

ROOT = Path(__file__).resolve().parent.parent.parent
LONG = {"training__max_steps": 150, "training__eval_every": 150, "training__save_every": 5, "training__log_every": 5}


@pytest.fixture
def agents() -> Iterator[list[subprocess.Popen[bytes]]]:
    """The agents of torchrun that a test starts, which are killed with their processes at the end."""
    started: list[subprocess.Popen[bytes]] = []
    yield started
    for agent in started:
        kill(agent)
        agent.communicate()


def kill(agent: subprocess.Popen[bytes]) -> None:
    """Kill an agent and its processes, as if the machine had lost power."""
    if agent.poll() is None:
        children = Path(f"/proc/{agent.pid}/task/{agent.pid}/children").read_text().split()
        for process in (agent.pid, *map(int, children)):
            os.kill(process, signal.SIGKILL)


def free_port() -> int:
    """A port that nobody uses now."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        return port


def start_agent(port: int, is_first: bool, arguments: list[str]) -> subprocess.Popen[bytes]:
    """An agent that stands for a machine with one process, in a job of one or two machines that meet at the first."""
    conf = f"is_host={is_first},last_call_timeout=1,keep_alive_interval=1,keep_alive_max_attempt=2"
    words = [
        "--nnodes=1:2", "--nproc-per-node=1", "--max-restarts=3", "--monitor-interval=0.2", "--rdzv-backend=c10d",
        f"--rdzv-endpoint=127.0.0.1:{port}", "--rdzv-id=test", f"--rdzv-conf={conf}", "--local-addr=127.0.0.1",
    ]  # fmt: skip
    program = [sys.executable, "-m", "torch.distributed.run", *words, "-m", "heed", *arguments]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "OMP_NUM_THREADS": "1"}
    return subprocess.Popen(program, env=environment, stderr=subprocess.PIPE)


def wait_for_checkpoint(folder: Path, step: int) -> None:
    """Wait until a run has a checkpoint of an update or a later one."""
    deadline = time.monotonic() + 120
    while not any(int(path.name.removeprefix("step-")) >= step for path in folder.glob("checkpoints/step-*")):
        assert time.monotonic() < deadline, f"no checkpoint {step} within two minutes"
        time.sleep(0.02)


@pytest.mark.slow
def test_a_job_that_loses_a_machine_continues_from_the_last_checkpoint_with_the_other(
    tmp_path: Path, agents: list[subprocess.Popen[bytes]]
) -> None:
    keys = flags(tiny_keys(tmp_path, **LONG))
    words = ["train", *keys, "--out", str(tmp_path / "run"), "--restartable", "--threads", "1", "--device", "cpu"]
    port = free_port()
    agents += [start_agent(port, is_first, words) for is_first in (True, False)]
    wait_for_checkpoint(tmp_path / "run", 10)
    kill(agents[1])
    _, err = agents[0].communicate(timeout=120)
    assert agents[0].returncode == 0, err.decode()
    assert "another process of this training was lost" in err.decode()
    assert "the training was run by 2 processes and continues with 1" in err.decode()
    log = events(tmp_path / "run")
    assert (log[-1]["event"], log[-1]["step"]) == ("end", 150)
    steps = [event["step"] for event in log if event["event"] == "train"]
    assert steps == sorted(set(steps)), "no update is counted twice"


def test_a_restartable_training_begins_and_continues_by_the_same_command(tmp_path: Path) -> None:
    few = {"training__max_steps": 6, "training__eval_every": 6, "training__save_every": 2}
    out = tmp_path / "run"
    words = ["train", *flags(tiny_keys(tmp_path, **few)), "--out", str(out), "--restartable", "--quiet"]
    out.mkdir()
    (out / "recipe.toml").touch()  # of a run that was lost before its first checkpoint
    assert call(*words).code == 0
    weights = (out / "model.safetensors").read_bytes()
    newest = max((out / "checkpoints").iterdir())
    assert newest.name == "step-0000006"
    shutil.rmtree(newest)
    result = call(*words)
    assert result.code == 0, result.err
    assert [event["step"] for event in events(out) if event["event"] == "end"][-1] == 6
    assert (out / "model.safetensors").read_bytes() == weights
    assert "leave out one of them" in call(*words, "--overwrite").err
    words = [word for word in words if "max_steps" not in word]
    assert call(*words, "--max-steps", "8").code == 0
    assert [event["step"] for event in events(out) if event["event"] == "end"][-1] == 8
    other = call(*words, "--max-steps", "8", "--model.d_model=32")
    assert (other.code, "was started with model.d_model = 16, not 32" in other.err) == (2, True)
    other_text = [*(word for word in words if "data.src" not in word), "--src", tmp_path / "more.aa"]
    refused = [call(*other_text)]
    shutil.rmtree(out / "checkpoints")
    assert "is complete" in call(*words[:-1]).err  # without --quiet
    refused.append(call(*other_text))
    for other in refused:  # they would be ignored
        assert other.code == 2 and "was started with data.src = " in other.err and "more.aa'. Name an" in other.err
    assert [event["step"] for event in events(out) if event["event"] == "end"][-1] == 8
