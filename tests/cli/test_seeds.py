"""`heed train --seeds`: several models at once, each in a run folder of its own."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest
from command import Result, call
from toy import write_lines

from heed.cli import seeds
from heed.cli.restart import new_limits
from heed.run import Run

LINES = ["the cat sat", "the dog sat", "a cat ran", "a dog ran"] * 10


def train(folder: Path, *words: object) -> Result:
    """Count the bigrams of a text twice, into runs in `folder / runs`."""
    text = write_lines(folder / "text", LINES)
    keys = ("--model.kind=bigram", "--tokenizer.kind=word", "--force")
    return call("train", "--text", text, "--valid-text", text, *keys, "--out", folder / "runs", *words)


def test_each_seed_has_a_run(tmp_path: Path) -> None:
    result = train(tmp_path, "--seeds", 2, "--seed", 0)
    first, second = tmp_path / "runs" / "seed-0", tmp_path / "runs" / "seed-1"
    assert result.code == 0, result.err
    assert result.err.endswith(f"runs: {first} {second}\n")
    assert {line.split(" ")[0] for line in result.err.splitlines()[:-1]} == {"seed-0:", "seed-1:", "warning:"}
    assert "warning: models that are estimated from counts hardly depend on the seed" in result.err
    assert [Run(run).recipe.seed for run in (first, second)] == [0, 1]
    assert new_limits(first, {"training.max_minutes": 5.0}) == {}, "counting has no limits"


def test_a_seed_that_fails_is_reported_and_the_other_one_finishes(tmp_path: Path) -> None:
    (tmp_path / "runs" / "seed-1").mkdir(parents=True)
    (tmp_path / "runs" / "seed-1" / "something").touch()
    result = train(tmp_path, "--seeds", 2)
    assert result.code == 2
    assert "seed-1: error: " in result.err and "runs: " not in result.err.splitlines()[-1]
    assert (tmp_path / "runs" / "seed-2" / "report.md").exists()


def started(monkeypatch: pytest.MonkeyPatch, code: int) -> list[list[str]]:
    """Start no processes, which end with this code; returns the commands."""
    commands: list[list[str]] = []

    class Started:
        """A process that is not started."""

        stderr = io.BytesIO()

        def __init__(self, command: list[str], **_: Any) -> None:
            commands.append(command[3:])

    monkeypatch.setattr("heed.cli.seeds.subprocess.Popen", Started)
    monkeypatch.setattr(seeds, "supervise", lambda processes, grace, names: code)
    return commands


def test_the_command_that_goes_on_after_an_interruption_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started(monkeypatch, 130)
    with_checkpoint = {"seed-1"}
    monkeypatch.setattr("heed.execute.can_continue", lambda run: run.name in with_checkpoint)
    for words, how in (
        ((), "give the same command with --restartable\n"),
        (("--overwrite",), "give the same command with --restartable instead of --overwrite\n"),
        (("--restartable",), "give the same command\n"),
    ):
        result = train(tmp_path, "--seeds", 2, *words)
        assert result.code == 130
        assert result.err.endswith(how) and "--resume" not in result.err
    with_checkpoint.add("seed-2")
    result = train(tmp_path, "--seeds", 2)
    assert result.err.endswith(f"continue all of them with: heed train --resume {tmp_path / 'runs'} --seeds 2\n")


def test_the_seeds_that_can_go_on_are_named_after_an_interrupted_resume(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started(monkeypatch, 130)
    runs = [tmp_path / "runs" / f"seed-{number}" for number in (1, 2)]
    for run in runs:
        run.mkdir(parents=True)
    monkeypatch.setattr("heed.execute.can_continue", lambda run: run == runs[1])
    result = call("train", "--resume", tmp_path / "runs", "--seeds", 2)
    assert result.err.endswith(f"continue with: heed train --resume {runs[1]}\n")


def test_seeds_are_resumed_with_their_share_of_the_threads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    commands = started(monkeypatch, 0)
    monkeypatch.chdir(tmp_path)
    for seed in (9, 10):
        Path(f"runs/seed-{seed}").mkdir(parents=True)
    result = call("train", "--resume", "runs", "--seeds=2", "--max-time", "1h")
    assert result.code == 0, result.err
    beginnings = [["train", "--resume", f"runs/seed-{seed}", "--threads"] for seed in (9, 10)]
    assert [command[:4] for command in commands] == beginnings
    assert [command[4:] for command in commands] == [["1", "--max-time", "1h"]] * 2
    runs = [Path("runs/seed-9"), Path("runs/seed-10")]
    seeds.train_seeds(runs, True, 6, ["train", "--seeds", "2"], quiet=True)
    assert commands[-1][4:] == ["3"]


def test_other_numbers_of_runs_are_not_continued(tmp_path: Path) -> None:
    (tmp_path / "seed-1").mkdir()
    result = call("train", "--resume", tmp_path, "--seeds", 2)
    assert result.code == 2 and f"differs from the number of runs (seed-*) in {tmp_path}: 1." in result.err


def test_runs_are_not_created_in_another_run(tmp_path: Path) -> None:
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "recipe.toml").touch()
    result = train(tmp_path, "--seeds", 2)
    assert result.code == 2 and "is a file or a run already" in result.err


@pytest.mark.parametrize(
    ("words", "problem"), [(("--nproc", 2), "leave out --nproc"), (("--dry-run",), "leave out --seeds")]
)
def test_what_cannot_be_combined_is_refused(words: tuple[object, ...], problem: str, tmp_path: Path) -> None:
    result = train(tmp_path, "--seeds", 2, *words)
    assert result.code == 2 and problem in result.err


def test_validation_data_must_be_given(tmp_path: Path) -> None:
    text = write_lines(tmp_path / "text", LINES)
    result = call("train", "--text", text, "--seeds", 2, "--out", tmp_path / "runs")
    assert result.code == 2 and "--seeds needs validation data" in result.err


def test_flags_are_left_out_with_their_values() -> None:
    words = ["train", "--seed", "3", "--src", "a", "--seeds=2", "--seed-like=1"]
    assert seeds.without(words, ("--seed", "--seeds")) == ["train", "--src", "a", "--seed-like=1"]
