"""Tests of repeated commands: on an interrupted run, and on one that is in training."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
import torch
from command import Result, call
from toy import TINY, flags, prepared, tiny_keys, trainer_of, write_lines, write_pairs

from heed.cli.restart import new_limits
from heed.core.errors import DataError, UsageError
from heed.core.files import sole_writer
from heed.run import Run
from heed.training.checkpoints import FILES, list_checkpoints, newest_checkpoint
from heed.training.manifest import write_manifest


def again(folder: Path, *words: object) -> Result:
    """The command that made `folder / run`, once more."""
    src, tgt = write_pairs(folder)
    files = ("--task", "translation", "--src", src, "--tgt", tgt, "--data.hold_out=8")
    return call("train", *files, *flags({**TINY, "training.max_steps": 2}), "--out", folder / "run", "--quiet", *words)


@pytest.fixture
def interrupted(tmp_path: Path) -> Path:
    """A run that was stopped after its first updates."""
    trainer = trainer_of(prepared(tmp_path, training__max_steps=1))
    trainer.run()
    return tmp_path / "run"


def test_an_interrupted_run_is_reported_and_left_untouched(interrupted: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in interrupted.rglob("*")}
    result = again(interrupted.parent)
    assert result.code == 2
    assert result.err == (
        f"error: {interrupted} already holds a run whose newest checkpoint is step-0000001. "
        f"Continue with `heed train --resume {interrupted}`, or start again with --overwrite.\n"
    )
    assert {path: path.stat().st_mtime_ns for path in interrupted.rglob("*")} == before


def test_a_training_is_started_again_with_the_same_data_alone(tmp_path: Path) -> None:
    for name in ("more.aa", "more.bb"):
        write_lines(tmp_path / name, ["ba"])
    part = {"src": str(tmp_path / "more.aa"), "tgt": str(tmp_path / "more.bb"), "tag": "bt"}
    changes = {"data__tag": "2bb", "data__src_lang": "aa", "data__share": 1, "data__filter__max_characters": 900}
    run = prepared(tmp_path, data__parts=[part], **changes).folder
    keys = tiny_keys(tmp_path, data__parts=[part], **changes)
    assert new_limits(run, keys) == {}
    moved = {"data.dir": "/new", "data.src": "/new/train.aa", "data.parts": [{**part, "src": "/new/more.aa"}]}
    assert new_limits(run, {**keys, **moved}) == {}
    for key, value, difference in (
        ("data.tag", "3bb", "data.tag = '2bb', not '3bb'"),
        ("data.max_tokens", 9, "data.max_tokens = 256, not 9"),
        ("data.tokenised", True, "no data.tokenised, not True"),
        ("data.valid_src", "valid.aa", "no data.valid_src, not 'valid.aa'"),
        ("data.filter.max_characters", 800, "data.filter.max_characters = 900, not 800"),
        ("data.parts", [{**part, "repeat": 2}], f"data.parts = {[part]}, not {[{**part, 'repeat': 2}]}"),
        ("data.parts", [{**part, "src": "other.aa"}], f"data.parts = {[part]}, not {[{**part, 'src': 'other.aa'}]}"),
    ):
        with pytest.raises(UsageError) as refused:
            new_limits(run, {**keys, key: value})
        assert str(refused.value) == f"{run} was started with {difference}. Name another --out for another training."


def test_a_run_interrupted_while_preparing_can_only_be_restarted(tmp_path: Path) -> None:
    (prepared(tmp_path).folder / "data" / "corpus.json").unlink()
    result = again(tmp_path)
    assert result.code == 2
    assert "already holds a run without checkpoints. Start again with --overwrite, or name another --out." in result.err
    resumed = call("train", "--resume", tmp_path / "run")
    assert resumed.code == 65
    assert "Start again with --overwrite" in resumed.err
    assert again(tmp_path, "--overwrite").code == 0


@pytest.mark.parametrize("step", ["check_pieces", "first_model"])
@pytest.mark.parametrize("exists", [False, True])
def test_a_failed_preparation_leaves_nothing_in_the_way_of_another(
    step: str, exists: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever fails before the first update; a folder that was there, and empty, stays."""
    if exists:
        (tmp_path / "run").mkdir()

    def fail(*_: object, **__: object) -> None:
        raise DataError("a column is missing.")

    with monkeypatch.context() as patched:
        patched.setattr(f"heed.execute.{step}", fail)
        result = again(tmp_path)
    assert (result.code, result.err) == (65, "error: a column is missing.\n")
    assert (tmp_path / "run").exists() == exists and not [*(tmp_path / "run").glob("*")]
    assert again(tmp_path).code == 0


def test_a_table_that_cannot_be_held_out_from_leaves_no_run(tmp_path: Path) -> None:
    rows = "".join(f"text number {n},{'ab'[n % 2]}\n" for n in range(60))
    (tmp_path / "t.csv").write_text("text,label\n" + rows)
    words = ("--table", tmp_path / "t.csv", "--data.hold_out=50", "--force", "--out", tmp_path / "run")
    result = call("train", *words)
    assert result.code == 65 and "hold" in result.err
    assert not (tmp_path / "run").exists()


def test_a_run_interrupted_before_its_tokenizer_can_only_be_restarted(tmp_path: Path) -> None:
    folder = prepared(tmp_path).folder
    (folder / "data" / "corpus.json").unlink()
    (folder / "tokenizer.json").unlink()
    resumed = call("train", "--resume", folder)
    assert (resumed.code, "Start again with --overwrite" in resumed.err) == (65, True)


def test_a_run_killed_before_its_recipe_counts_as_an_empty_folder(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / ".heed-0123456789ab.tmp").touch()
    assert again(tmp_path).code == 0
    assert not list((tmp_path / "run").glob(".heed-*"))


def test_a_run_in_which_another_process_is_training_is_neither_continued_nor_replaced(interrupted: Path) -> None:
    recipe = interrupted / "recipe.toml"
    recipe.write_text(recipe.read_text().replace("max_steps = 1", "max_steps = 3"))
    with sole_writer(interrupted):
        for result in (call("train", "--resume", interrupted, "--quiet"), again(interrupted.parent, "--overwrite")):
            assert (result.code, "another process is training in" in result.err) == (2, True)
        assert [path.name for path in list_checkpoints(interrupted / "checkpoints")][-1] == "step-0000001"
    assert call("train", "--resume", interrupted, "--quiet").code == 0


def test_new_limits_that_cannot_be_used_leave_the_recipe_as_it_was(interrupted: Path) -> None:
    recipe = (interrupted / "recipe.toml").read_text()
    more = ("train", "--resume", interrupted, "--max-steps", 30, "--quiet")
    with sole_writer(interrupted):
        assert "another process is training in" in call(*more).err
    shutil.rmtree(interrupted / "checkpoints")
    assert "no complete checkpoint" in call(*more).err
    assert (interrupted / "recipe.toml").read_text() == recipe


def test_a_run_is_not_replaced_while_its_report_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    refused: list[str] = []

    def report(run: Run, quiet: bool) -> None:
        monkeypatch.undo()
        refused.append(again(tmp_path, "--overwrite").err)

    monkeypatch.setattr("heed.execute.finish_report", report)
    assert again(tmp_path).code == 0
    assert "another process is training in" in refused[0]


def test_a_machine_that_may_round_differently_is_reported_and_training_continues(interrupted: Path) -> None:
    same = call("train", "--resume", interrupted)
    assert "last bits" not in same.err
    newest = list_checkpoints(interrupted / "checkpoints")[-1]
    made_with = newest_checkpoint(interrupted / "checkpoints").made_with
    assert made_with["threads"] == "1"
    write_manifest(newest, FILES, {**made_with, "threads": "64"})
    result = call("train", "--resume", interrupted)
    assert result.code == 0, result.err
    assert (
        "warning: numbers may differ in their last bits from an uninterrupted run: threads was 64, is 1.\n"
    ) in result.err


def test_continuing_with_fewer_processes_is_reported(interrupted: Path) -> None:
    newest = list_checkpoints(interrupted / "checkpoints")[-1]
    made_with = newest_checkpoint(interrupted / "checkpoints").made_with
    write_manifest(newest, FILES, {**made_with, "processes": "2"})
    result = call("train", "--resume", interrupted)
    assert "the training was run by 2 processes and continues with 1" in result.err
    assert "last bits" not in result.err


def edit(run: Path, old: str, new: str) -> None:
    recipe = run / "recipe.toml"
    text = recipe.read_text(encoding="utf-8")
    assert old in text
    recipe.write_text(text.replace(old, new), encoding="utf-8")


def test_continuing_in_another_precision_is_reported(interrupted: Path) -> None:
    edit(interrupted, 'precision = "float32"', 'precision = "bfloat16"')
    result = call("train", "--resume", interrupted, "--max-steps", "2")
    assert result.code == 0, result.err
    assert "warning: the training computed in float32 and continues in bfloat16 (training.precision).\n" in result.err
    assert "last bits" not in result.err
    assert "precision" not in call("train", "--resume", interrupted, "--max-steps", "3").err, (
        "from then on, it is as it was"
    )


def test_a_limit_that_is_passed_already_is_refused_and_the_recipe_stays(interrupted: Path) -> None:
    assert call("train", "--resume", interrupted, "--max-steps", "3").code == 0
    log = interrupted / "metrics.jsonl"
    later = re.sub('"seconds": [0-9.]+', '"seconds": 0.5', log.read_text())  # also where an update takes no time
    log.write_text(later.replace('"epoch": 0', '"epoch": 2'))
    recipe = (interrupted / "recipe.toml").read_text(encoding="utf-8")
    for flag, limit in (("--max-steps", "2"), ("--max-time", "0.001s"), ("--training.max_epochs", "2")):
        result = call("train", "--resume", interrupted, flag, limit)
        assert result.code == 2, result.err
        assert "has been trained for 3 updates" in result.err and f"give a higher {flag}" in result.err
    assert (interrupted / "recipe.toml").read_text(encoding="utf-8") == recipe


def test_new_limits_must_raise_a_patience_that_has_ended_the_training(interrupted: Path) -> None:
    newest = list_checkpoints(interrupted / "checkpoints")[-1]
    made_with = newest_checkpoint(interrupted / "checkpoints").made_with
    state = newest / "state.json"
    state.write_text(state.read_text().replace('"validations_since_best": 0', '"validations_since_best": 3'))
    write_manifest(newest, FILES, made_with)
    recipe = interrupted / "recipe.toml"
    text = re.sub(r"(?m)^patience = \d+", "patience = 3", recipe.read_text(encoding="utf-8"))
    recipe.write_text(text, encoding="utf-8")
    for given in (["--max-steps", "3"], ["--patience", "2"]):
        result = call("train", "--resume", interrupted, *given)
        assert result.code == 2, result.err
        assert "has not had a better bleu in 3 validations, and ends after" in result.err
        assert "give a higher --patience, or --patience 0 for no such limit" in result.err
    assert recipe.read_text(encoding="utf-8") == text
    assert call("train", "--resume", interrupted, "--quiet").code == 0, "without new limits, it ends again"
    for given in (["--patience", "4", "--max-steps", "2"], ["--patience", "0", "--max-steps", "3"]):
        result = call("train", "--resume", interrupted, *given)
        assert result.code == 0 and given[-1] + " updates" in result.err, result.err


def test_resuming_reads_the_prepared_data_whatever_became_of_the_files(interrupted: Path) -> None:
    """Equal weights with the files gone, and a warning where the recipe names other files."""
    for suffix in ("aa", "bb"):
        (interrupted.parent / f"train.{suffix}").write_text("other text\n", encoding="utf-8")
    as_it_was, edited = (interrupted.with_name(name) for name in ("as-it-was", "edited"))
    for copy in (as_it_was, edited):
        shutil.copytree(interrupted, copy)
    edit(edited, "train.aa", "corpus.aa")
    results = [call("train", "--resume", run, "--max-steps", "2") for run in (as_it_was, edited)]
    assert [result.code for result in results] == [0, 0]
    warning = f"{edited}/recipe.toml names corpus.aa, but the data was prepared from other files, and --resume reads"
    assert [warning in result.err for result in results] == [False, True]
    assert "prepared from other files" not in results[0].err
    newest = [newest_checkpoint(run / "checkpoints").weights for run in (as_it_was, edited)]
    assert all(torch.equal(weight, newest[1][name]) for name, weight in newest[0].items())


@pytest.mark.parametrize("flag", ["--src=more.aa", "--precision=bfloat16", "--seed=2", "--tokenizer.vocab_size=300"])
def test_resuming_with_other_data_or_arithmetic_is_refused(interrupted: Path, flag: str) -> None:
    result = call("train", "--resume", interrupted, flag)
    assert result.code == 2
    assert "recipe.toml and cannot change" in result.err
    assert result.err.count("\n") == 1
