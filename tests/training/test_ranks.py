"""Several processes: the updates of one process, and stopping, failing and resuming together."""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from command import call, run, start
from rank_processes import train_together
from safetensors.torch import load_file
from torch import Tensor
from toy import barely_trained, events, flags, tiny_keys

from heed.core.errors import UsageError
from heed.execute import resume
from heed.planner import TrainOptions
from heed.run import Run
from heed.training.checkpoints import Checkpoint, list_checkpoints
from heed.training.ranks import ALONE, _buckets
from heed.training.trainer import Outcome, Trainer

KEYS = {
    "tokenizer__dropout": 0.1, "model__attention_dropout": 0.1, "training__max_steps": 8, "training__eval_every": 4,
    "training__save_every": 4, "training__log_every": 2, "training__epsilon": 1e-5,  # rounding must not decide
}  # fmt: skip


def words(folder: Path, out: str, num_processes: int, **changes: Any) -> list[str]:
    """Arguments of `heed train` on toy pairs."""
    keys = flags(tiny_keys(folder, **{**KEYS, **changes}))
    return ["train", *keys, "--out", str(folder / out), "--nproc", str(num_processes), "--quiet"]


def train(folder: Path, out: str, num_processes: int, **changes: Any) -> None:
    """Train on toy pairs in several processes, without the launcher."""
    train_together(num_processes, words(folder, out, 1, **changes))


def train_by_launcher(folder: Path, out: str, num_processes: int, **changes: Any) -> None:
    """The same with `heed train --nproc`."""
    result = call(*words(folder, out, num_processes, **changes))
    assert result.code == 0, result.err


def losses(folder: Path) -> list[float]:
    """The training losses in the log."""
    return [event["loss"] for event in events(folder) if event["event"] == "train"]


def assert_close(found: Path, expected: Path) -> None:
    """The weights of two runs are equal up to rounding."""
    ours, theirs = load_file(found / "model.safetensors"), load_file(expected / "model.safetensors")
    assert ours.keys() == theirs.keys()
    for name, tensor in ours.items():
        torch.testing.assert_close(tensor, theirs[name], rtol=1e-3, atol=1e-5, msg=name)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of toy pairs with a run of one process that uses two batches per update."""
    folder = tmp_path_factory.mktemp("ranks")
    train(folder, "one", 1, training__accumulate=2)
    return folder


@pytest.mark.parametrize("parallel", ["data", "sharded"])
def test_two_processes_make_the_updates_of_one_with_both_batches_including_dropout(corpus: Path, parallel: str) -> None:
    start_two = train_by_launcher if parallel == "data" else train
    start_two(corpus, parallel, 2, training__parallel=parallel)
    assert losses(corpus / parallel) == pytest.approx(losses(corpus / "one"), rel=1e-5)
    assert_close(corpus / parallel, corpus / "one")
    [ours, theirs] = [
        [path.name for path in list_checkpoints(corpus / name / "checkpoints")] for name in (parallel, "one")
    ]
    assert ours == theirs


STREAMS = {
    "task": "language-model", "model.kind": "rnn", "model.d_model": 16, "model.hidden_size": 16, "model.dropout": 0.2,
    "data.text_as": "stream", "training.num_streams": 5, "training.context": 6, "training.stop_metric": "perplexity",
    "training.max_steps": 12, "training.eval_every": 6, "training.save_every": 4, "training.log_every": 2,
    "training.lr": 5e-3, "training.warmup_steps": 2, "training.epsilon": 1e-5, "training.precision": "float32",
    "data.hold_out": 20,
}  # fmt: skip


def train_streams(folder: Path, out: str, num_processes: int, **changes: Any) -> None:
    """Train a recurrent language model on the source side of the toy pairs."""
    keys = flags({**STREAMS, "data.text": folder / "train.aa", **changes})
    train_together(num_processes, ["train", *keys, "--out", str(folder / out), "--quiet"])


def test_two_processes_share_the_streams_and_make_the_updates_of_one(corpus: Path) -> None:
    train_streams(corpus, "lm-one", 1)
    train_streams(corpus, "lm-two", 2)
    assert losses(corpus / "lm-two") == pytest.approx(losses(corpus / "lm-one"), rel=1e-5)
    assert_close(corpus / "lm-two", corpus / "lm-one")
    [one, two] = [load_file(corpus / name / "checkpoints" / "step-0000008" / "carried.safetensors")
                  for name in ("lm-one", "lm-two")]  # fmt: skip
    assert one.keys() == two.keys()
    for name, tensor in one.items():
        torch.testing.assert_close(two[name], tensor, rtol=1e-3, atol=1e-5, msg=name)


@pytest.mark.slow
def test_streams_of_two_processes_are_resumed_by_one_and_vice_versa(corpus: Path) -> None:
    train_streams(corpus, "lm-straight", 1, **{"training.max_steps": 16})
    for first, then in ((1, 2), (2, 1)):
        folder = corpus / f"lm-{first}-{then}"
        train_streams(corpus, folder.name, first)
        recipe = folder / "recipe.toml"
        recipe.write_text(recipe.read_text().replace("max_steps = 12", "max_steps = 16"))
        result = run("train", "--resume", str(folder), "--nproc", str(then), "--quiet")
        assert result.code == 0, result.err
        assert losses(folder) == pytest.approx(losses(corpus / "lm-straight"), rel=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize(("parallel", "then"), [("data", 2), ("sharded", 2), ("sharded", 1)])
def test_two_processes_save_when_they_are_stopped_and_can_be_resumed(corpus: Path, parallel: str, then: int) -> None:
    name = f"stopped-{parallel}-{then}"
    long = {"training__max_steps": 60, "training__parallel": parallel, "training__eval_every": 30}
    train(corpus, f"straight-{parallel}-{then}", 2, **long)
    with start(*words(corpus, name, 2, **long)) as process:
        wait_for_update(corpus / name, 10)
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=60)
    assert process.returncode == 143
    result = run("train", "--resume", str(corpus / name), "--nproc", str(then), "--quiet")
    assert result.code == 0, result.err
    if then == 2:
        assert losses(corpus / name) == losses(corpus / f"straight-{parallel}-{then}")
        files = [corpus / run / "model.safetensors" for run in (name, f"straight-{parallel}-{then}")]
        assert files[0].read_bytes() == files[1].read_bytes()


@pytest.mark.slow
def test_when_one_process_is_killed_the_other_ends_and_the_training_can_be_resumed(corpus: Path) -> None:
    long = {"training__max_steps": 200, "training__eval_every": 100}
    with start(*words(corpus, "killed", 2, **long)) as process:
        wait_for_update(corpus / "killed", 10)
        for child in Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()[1:]:
            os.kill(int(child), signal.SIGKILL)
        _, err = process.communicate(timeout=60)
    assert process.returncode not in (0, 143)
    assert "another process of this training was lost" in err.decode()
    assert "process 2 of 2 was killed by SIGKILL." in err.decode()
    result = run("train", "--resume", str(corpus / "killed"), "--nproc", "2", "--quiet")
    assert result.code == 0, result.err
    train(corpus, "never-killed", 2, **long)
    assert losses(corpus / "killed")[-5:] == losses(corpus / "never-killed")[-5:]


def wait_for_update(folder: Path, step: int) -> None:
    """Wait until the log of a run contains an update."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        log = folder / "metrics.jsonl"
        lines = log.read_text(encoding="utf-8").split("\n")[:-1] if log.exists() else []
        if any(json.loads(line)["step"] >= step for line in lines):
            return
        time.sleep(0.02)
    raise AssertionError(f"no update {step} within a minute")


def test_new_limits_are_written_when_all_ranks_have_restored_the_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = barely_trained(tmp_path).folder
    found: list[str] = []

    class Watched(Trainer):
        def restore(self, checkpoint: Checkpoint) -> None:
            super().restore(checkpoint)
            found.append("restored")

        def run(self) -> Outcome:
            found.append(f"trains to {self.config.max_steps} of {Run(folder).recipe.training.max_steps}")
            return Outcome("stopped", self.progress, interrupted_by=2)

    monkeypatch.setattr("heed.execute.Trainer", Watched)
    ranks: Any = SimpleNamespace(is_first=True, world_size=1)
    ranks.wait = lambda: found.append(f"waits with {Run(folder).recipe.training.max_steps}")
    resume(TrainOptions(folder, device="cpu", quiet=True), ranks=ranks, limits={"training.max_steps": 30})
    assert found == ["restored", "waits with 2", "trains to 30 of 30"]


def test_new_limits_are_not_written_if_the_checkpoint_is_of_another_optimiser(tmp_path: Path) -> None:
    folder = barely_trained(tmp_path).folder
    recipe = folder / "recipe.toml"
    recipe.write_text(recipe.read_text().replace('optimizer = "adam"', 'optimizer = "sgd"'))
    before = recipe.read_bytes()
    with pytest.raises(UsageError, match="optimizer"):
        resume(TrainOptions(folder, device="cpu", quiet=True), limits={"training.max_steps": 30})
    assert recipe.read_bytes() == before


def test_a_single_rank_communicates_with_nobody(tmp_path: Path) -> None:
    tensors = [torch.ones(3), torch.ones(2, 2)]
    ALONE.add_up(tensors)
    ALONE.wait()
    assert ALONE.is_first
    assert ALONE.sums(1.0, 2.0) == ALONE.highest(1.0, 2.0) == [1.0, 2.0]
    assert all(torch.equal(tensor, torch.ones_like(tensor)) for tensor in tensors)


def test_buckets_contain_each_gradient_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("heed.training.ranks.BUCKET_ELEMENTS", 10)
    tensors: list[Tensor] = [torch.zeros(size) for size in (4, 4, 4, 30, 1)]
    assert [[len(tensor) for tensor in bucket] for bucket in _buckets(tensors)] == [[4, 4, 4], [30], [1]]
