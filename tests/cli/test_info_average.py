"""Tests of `heed info` and `heed average`."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import torch
from command import call
from safetensors.torch import load_file
from toy import pairs, unchecked_shapes, write_lines

from heed.data.validation import read_valid
from heed.training.checkpoints import list_checkpoints


def test_info_shows_task_sizes_data_and_best_scores(translator: Path, bigram: Path) -> None:
    result = call("info", translator)
    assert result.code == 0
    assert "languages        aa → bb" in result.out
    assert "kind=transformer  d_model=32" in result.out
    facts = json.loads(call("info", translator, "--json").out)
    assert facts["task"] == "translation"
    weights = load_file(translator / "model.safetensors")
    assert facts["parameters"] == sum(tensor.numel() for tensor in weights.values())
    assert facts["best validation"]["update"] in (75, 150)
    assert json.loads(call("info", bigram, "--json").out)["model"] == {"kind": "bigram"}


def test_info_leaves_out_what_is_not_set(translator: Path, tmp_path: Path) -> None:
    text = write_lines(tmp_path / "a.txt", [tgt for _, tgt in pairs(300, seed=1)])
    recurrent = tmp_path / "recurrent"
    keys = ("--model.kind=rnn", "--model.d_model=8", "--model.hidden_size=8", "--tokenizer.vocab_size=270")
    limits = ("--training.max_steps=1", "--precision", "float32", "--out", recurrent, "--quiet")
    with unchecked_shapes():
        trained = call("train", "--text", text, *keys, *limits)
    assert trained.code == 0, trained.err
    told = call("info", recurrent)
    assert told.code == 0, told.err
    settings = next(line for line in told.lines if line.startswith("model "))
    assert "kind=rnn" in settings and "input_dropout" not in settings and "None" not in told.out
    assert "input_dropout" in json.loads(call("info", recurrent, "--json").out)["model"]
    copy = tmp_path / "run"
    shutil.copytree(translator, copy)
    recipe = (copy / "recipe.toml").read_text()
    (copy / "recipe.toml").write_text(re.sub(r'(src|tgt)_lang = "\w+"', r'\1_lang = ""', recipe))
    told = call("info", copy)
    assert told.code == 0, told.err
    assert not [line for line in told.lines if line.startswith("languages") or "?" in line]
    assert json.loads(call("info", copy, "--json").out)["languages"] is None


def test_info_of_several_runs_is_a_table(translator: Path, bigram: Path) -> None:
    header, first, second = call("info", translator, bigram).lines
    assert header.split()[:5] == ["run", "task", "model", "parameters", "trained"]
    assert first.startswith(str(translator)) and " transformer " in first
    assert second.startswith(str(bigram)) and " bigram " in second
    facts = json.loads(call("info", translator, bigram, "--json").out)
    assert [run["run"] for run in facts] == [str(translator), str(bigram)]


def test_info_plots_the_curves_of_several_runs(translator: Path, bigram: Path, tmp_path: Path) -> None:
    picture = tmp_path / "curves.png"
    result = call("info", translator, bigram, "--plot", picture)
    assert result.code == 0, result.err
    assert len(result.lines) == 3
    assert picture.read_bytes().startswith(b"\x89PNG")
    nowhere = call("info", translator, "--plot", tmp_path / "missing" / "curves.png")
    assert nowhere.code == 2
    assert "--plot" in nowhere.err


def test_info_cannot_plot_runs_that_were_never_validated(translator: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    copy.mkdir()
    for name in ("recipe.toml", "tokenizer.json"):
        shutil.copy(translator / name, copy / name)
    result = call("info", copy, "--plot", tmp_path / "curves.png")
    assert (result.code, result.err) == (2, "error: --plot needs a run that was validated: none of these was.\n")


def test_info_of_a_run_that_has_no_weights_yet(translator: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    copy.mkdir()
    for name in ("recipe.toml", "tokenizer.json"):
        shutil.copy(translator / name, copy / name)
    facts = json.loads(call("info", copy, "--json").out)
    assert "parameters" not in facts
    assert facts["trained on"] == "?"


def test_the_average_is_the_mean_of_the_newest_checkpoints_and_a_run(translator: Path, tmp_path: Path) -> None:
    out = tmp_path / "averaged"
    result = call("average", translator, "--last", "2", "--out", out)
    assert (result.code, result.stdout) == (0, b"")
    assert result.err == f"{out}: the mean of step-0000125, step-0000150\n"
    one, two = (load_file(path / "weights.safetensors") for path in list_checkpoints(translator / "checkpoints")[-2:])
    for name, tensor in load_file(out / "model.safetensors").items():
        torch.testing.assert_close(tensor, (one[name] + two[name]) / 2)
    assert call("translate", out, stdin="ba ce\n").code == 0
    files = ["ctranslate2", "data", "manifest.json", "model.safetensors", "recipe.toml", "tokenizer.json"]
    assert sorted(path.name for path in out.iterdir()) == files
    assert read_valid(out) == read_valid(translator)
    src, ref = (translator.parent / f"test.{side}" for side in ("aa", "bb"))
    assert "are in the training data" in call("evaluate", out, "--src", src, "--ref", ref, "--beam", "1").out


def test_weights_before_the_first_update_are_not_averaged(translator: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(translator, tmp_path / "copy")
    newest = list_checkpoints(copy / "checkpoints")[-1]
    for path in list_checkpoints(copy / "checkpoints")[:-1]:
        shutil.rmtree(path)
    shutil.copytree(newest, copy / "checkpoints" / "step-0000000")
    result = call("average", copy, "--out", tmp_path / "averaged")
    assert result.err.endswith(f": the mean of {newest.name}\n")
    assert "keeps only 1 checkpoint (training.keep_checkpoints)" in result.err
    shutil.rmtree(newest)
    assert "none was saved after an update" in call("average", copy, "--out", tmp_path / "other").err


def test_fewer_checkpoints_than_requested_are_reported(translator: Path, tmp_path: Path) -> None:
    result = call("average", translator, "--last", "9", "--out", tmp_path / "averaged")
    assert result.code == 0
    assert "keeps only 3 checkpoints (training.keep_checkpoints)" in result.err


def test_an_average_replaces_nothing_and_needs_checkpoints(translator: Path, bigram: Path, tmp_path: Path) -> None:
    there = call("average", translator, "--out", tmp_path)
    assert there.code == 74
    assert "it already exists" in there.err
    none = call("average", bigram, "--out", tmp_path / "averaged")
    assert none.code == 65
    assert "has no checkpoints to average" in none.err
    assert not (tmp_path / "averaged").exists()
