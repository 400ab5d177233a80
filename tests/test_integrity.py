"""Is every file of a run checked when it is read, and all of them by `heed info --verify`?"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from command import call
from toy import trained, without_shape_checks

import heed
from heed.core import run_files
from heed.core.errors import DataError, StorageError
from heed.core.run_manifest import MANIFEST, read_digests
from heed.evaluation.leakage import check_leakage
from heed.execute import resume
from heed.inference.output_checks import Confidence
from heed.nn import weight_file
from heed.planner import TrainOptions
from heed.run import Run
from heed.tasks.prepare import open_tokens
from heed.training.metrics_log import MetricsLog, read_metrics

__all__ = ["trained", "without_shape_checks"]

FIXTURES = Path(__file__).resolve().parent / "fixtures"
LEARNED = Confidence(
    mean=(-0.5, -2.0, 2.0, 0.1), scale=(0.25, 1.0, 0.5, 0.3), weights=(1.0, 0.5, -0.5, -0.2), bias=0.1,
    good_chrf=55.0, num_sentences=1000, beam_size=2, calibration_error=0.02,
)  # fmt: skip
OF_A_TRAINING = [
    "data/corpus.json", "data/diagnosis.txt", "data/hashes/pair.npy", "data/hashes/src.npy", "data/hashes/tgt.npy",
    "data/valid.jsonl", "data/words.json", "recipe.toml", "tokenizer.json",
]  # fmt: skip


@pytest.fixture
def run(trained: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(trained, tmp_path / "run"))


def flip(path: Path) -> None:
    """Another character that keeps the file readable: a digit or a letter becomes its neighbour."""
    content = bytearray(path.read_bytes())
    place = max(i for i, byte in enumerate(content) if chr(byte).isalnum()) if path.suffix != ".npy" else -1
    content[place] ^= 1
    path.write_bytes(content)


def test_a_training_lists_what_is_read_as_a_whole(run: Path) -> None:
    assert sorted(read_digests(run)) == OF_A_TRAINING


READERS: dict[str, Callable[[Run], object]] = {
    "tokenizer.json": lambda run: run.predictor.translator,
    "data/valid.jsonl": lambda run: run.task().warnings() or run.predictor.analyse(quiet=True),
    "data/corpus.json": lambda run: run.corpus,
    "data/hashes/src.npy": lambda run: check_leakage(run, [("ba", "kan")]),
    "data/words.json": lambda run: run.predictor.analyse(quiet=True),
}


@pytest.mark.parametrize("name", READERS)
def test_a_changed_file_is_refused_when_it_is_read(run: Path, name: str) -> None:
    flip(run / name)
    with pytest.raises(DataError, match=rf"{name} was changed after heed wrote it"):
        READERS[name](Run(run))


@pytest.mark.parametrize("name", [*READERS, "recipe.toml", "model.safetensors"])
@pytest.mark.parametrize("make", [os.mkfifo, lambda path: path.symlink_to("/dev/zero")], ids=["pipe", "device"])
def test_a_pipe_or_an_endless_device_in_the_place_of_a_file_does_not_hang(
    run: Path, name: str, make: Callable[[Path], None]
) -> None:
    (run / name).unlink()
    make(run / name)
    with pytest.raises(DataError, match=r"is not a regular file|is a link"):
        READERS.get(name, lambda run: run.model)(Run(run))


@pytest.mark.parametrize("make", [os.mkfifo, lambda path: path.symlink_to("/dev/zero")], ids=["pipe", "device"])
def test_a_metrics_log_that_is_no_file_is_neither_read_nor_written(run: Path, make: Callable[[Path], None]) -> None:
    (run / "metrics.jsonl").unlink()
    make(run / "metrics.jsonl")
    with pytest.raises(DataError, match=r"is not a regular file|is a link"):
        read_metrics(run)
    with pytest.raises(StorageError, match=r"it is not a regular file|it is a link"):
        MetricsLog(run)
    result = call("info", run)
    assert (result.code, result.err.count("\n")) == (65, 1)


def test_an_edited_recipe_is_used_with_a_warning_until_a_resume_takes_it_over(run: Path) -> None:
    recipe = (run / "recipe.toml").read_text()
    (run / "recipe.toml").write_text(recipe.replace("max_steps = 4", "max_steps = 5  # more"))
    result = call("translate", run, stdin="ba\n")
    assert result.code == 0
    assert result.err.startswith(f"warning: {run}/recipe.toml was changed after heed wrote it: ")
    result = call("train", "--resume", run)
    assert result.code == 0
    assert "recipe.toml was changed after heed wrote it" in result.err
    assert "reached 5 updates" in result.err
    assert "recipe.toml" not in call("translate", run, stdin="ba\n").err
    assert call("info", run, "--verify").code == 0


def test_limits_that_resume_changes_are_no_edit_by_others(run: Path) -> None:
    result = call("train", "--resume", run, "--training.max_steps=5")
    assert result.code == 0
    assert "was changed" not in result.err
    assert call("info", run, "--verify").code == 0


def test_what_heed_writes_later_is_listed_too(run: Path) -> None:
    src, tgt = run.parent / "t.aa", run.parent / "t.bb"
    src.write_text("ba ce\nce di\n")
    tgt.write_text("ler kan\nmis ler\n")
    for _ in range(2):
        assert call("evaluate", run, "--src", src, "--ref", tgt).code == 0
    assert len((run / "scores.jsonl").read_text().splitlines()) == 2
    LEARNED.write(run)
    assert {"scores.jsonl", "confidence.json"} < read_digests(run).keys()
    assert call("info", run, "--verify").code == 0
    flip(run / "confidence.json")
    with pytest.raises(DataError, match=r"confidence\.json was changed .* --calibrate"):
        heed.load(run).translate(["ba"])


def test_a_changed_log_of_scores_is_told_and_continued(run: Path) -> None:
    src, tgt = run.parent / "t.aa", run.parent / "t.bb"
    src.write_text("ba ce\n")
    tgt.write_text("ler kan\n")
    assert call("evaluate", run, "--src", src, "--ref", tgt).code == 0
    flip(run / "scores.jsonl")
    result = call("evaluate", run, "--src", src, "--ref", tgt)
    assert result.code == 0
    assert "Its record of earlier evaluations may be wrong." in result.err


# --- heed info --verify ---------------------------------------------------------------------------------


def test_verify_names_what_is_whole(run: Path) -> None:
    result = call("info", run, "--verify")
    assert (result.code, result.err) == (0, "")
    checked = dict(line.removeprefix(f"{run}/").split(": ") for line in result.lines)
    assert set(checked.values()) == {"as heed wrote it"}
    steps = [f"checkpoints/{path.name}" for path in (run / "checkpoints").iterdir()]
    assert sorted(checked) == sorted([*OF_A_TRAINING, "data/train", "model.safetensors", *steps])


@pytest.mark.parametrize("name", ["data/diagnosis.txt", "recipe.toml", "model.safetensors", "data/train/src.tok"])
def test_verify_names_what_is_damaged(run: Path, name: str) -> None:
    content = bytearray((run / name).read_bytes())
    content[-1] ^= 1
    (run / name).write_bytes(content)
    result = call("info", run, "--verify")
    assert result.code == 65
    assert re.search(rf"error: \d damaged: {run}/{name.removesuffix('/src.tok')}.*\. Copy the run again", result.err)


def test_verify_names_a_damaged_checkpoint_and_a_link(run: Path) -> None:
    newest = sorted((run / "checkpoints").iterdir())[-1]
    flip(newest / "state.json")
    (run / "extra").symlink_to("recipe.toml")
    result = call("info", run, "--verify", "--json")
    assert result.code == 65
    [checked] = json.loads(result.lines[0]).values()
    assert {each["name"] for each in checked if each["is_damaged"]} == {f"checkpoints/{newest.name}", "extra"}


def test_tokens_are_not_read_where_a_link_leads_to_them(run: Path) -> None:
    (run / "data").rename(run.with_name("elsewhere"))
    (run / "data").symlink_to(run.with_name("elsewhere"))
    for read in (open_tokens, lambda run: Run(run).require_resumable(), lambda run: len(Run(run).task().store)):
        with pytest.raises(DataError, match=r"run/data is a link; heed uses nothing outside the folder"):
            read(run)


def test_verify_allows_for_data_that_was_removed(run: Path) -> None:
    shutil.rmtree(run / "data")
    shutil.rmtree(run / "checkpoints")
    result = call("info", run, "--verify")
    assert result.code == 0
    assert f"{run}/data/valid.jsonl: missing" in result.lines


def test_verify_checks_what_it_can_of_a_run_of_an_older_heed(tmp_path: Path) -> None:
    run = shutil.copytree(FIXTURES / "run-v1" / "translation", tmp_path / "run")
    result = call("info", run, "--verify")
    assert result.code == 0
    assert result.lines[0].startswith(f"{run}/{MANIFEST}: missing: a run of an older heed")
    tokens = run / "data" / "train" / "src.tok"
    tokens.write_bytes(bytes([tokens.read_bytes()[0] ^ 1]) + tokens.read_bytes()[1:])
    assert call("info", run, "--verify").code == 65


# --- speed ----------------------------------------------------------------------------------------------


def test_opening_a_run_hashes_only_what_is_read_and_the_weights_once(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hashed: list[str] = []
    check, digest = run_files.RunFiles._check, weight_file.digest
    monkeypatch.setattr(
        run_files.RunFiles, "_check", lambda self, name, *rest: (hashed.append(name), check(self, name, *rest))[1]
    )
    monkeypatch.setattr(weight_file, "digest", lambda tensors: (hashed.append("weights"), digest(tensors))[1])
    heed.load(run, engine="torch").translate(["ba"])
    assert hashed.count("weights") == 1
    assert sorted(set(hashed)) == ["data/valid.jsonl", "recipe.toml", "tokenizer.json", "weights"]


def test_resuming_checks_what_it_reads(run: Path) -> None:
    flip(run / "data" / "valid.jsonl")
    with pytest.raises(DataError, match=r"valid\.jsonl was changed after heed wrote it.* Start again with --overwrite"):
        resume(TrainOptions(run, device="cpu", quiet=True))
