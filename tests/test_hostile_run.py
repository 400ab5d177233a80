"""Run folders with false contents are refused with an error, before memory is allocated."""

from __future__ import annotations

import ast
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from command import call
from safetensors.torch import load_file, save_file
from toy import prepared, trained, without_shape_checks, write_pairs

import heed
from heed.core.errors import DataError, HeedError, UsageError
from heed.execute import resume
from heed.planner import TrainOptions
from heed.run import Run
from heed.training.checkpoints import list_checkpoints

__all__ = ["trained", "without_shape_checks"]

SRC = Path(__file__).resolve().parent.parent / "src"


@pytest.fixture
def run(trained: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(trained, tmp_path / "run"))


def change(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def of_an_older_heed(run: Path) -> None:
    """Make it a folder of the time before there was a manifest."""
    (run / "manifest.json").unlink()


def go_on(run: Path) -> None:
    change(run / "recipe.toml", "max_steps = 4", "max_steps = 6")
    resume(TrainOptions(run, device="cpu", quiet=True))


def test_an_unchanged_folder_is_accepted(run: Path) -> None:
    go_on(run)
    assert list_checkpoints(run / "checkpoints")[-1].name == "step-0000006"
    assert heed.load(run).translate(["ba ce"])


# --- the recipe asks for too much -----------------------------------------------------------------------


@pytest.mark.parametrize("size", [10**5, 10**9])
def test_a_model_of_absurd_size_is_refused_before_it_is_built(run: Path, size: int) -> None:
    change(run / "recipe.toml", "d_model = 16", f"d_model = {size}")
    with pytest.raises(
        DataError, match=rf"model\.safetensors: '.*' has the shape \[.*16\], the recipe's model has \[.*{size}"
    ):
        _ = Run(run).model
    with pytest.raises(UsageError, match=r"the checkpoint does not fit the model in recipe\.toml"):
        go_on(run)


@pytest.mark.parametrize("keys", [{"d_model = 16": f"d_model = {10**12}"}, {"d_ff = 32": f"d_ff = {10**18}"}])
def test_a_model_whose_bytes_cannot_even_be_counted_is_refused(run: Path, keys: dict[str, str]) -> None:
    for old, new in keys.items():
        change(run / "recipe.toml", old, new)
    with pytest.raises(DataError, match=r"recipe\.toml: \[model\] describes a model that no machine can hold"):
        _ = Run(run).model
    with pytest.raises(DataError, match="no machine can hold"):
        go_on(run)


def test_an_absurd_number_of_layers_is_refused(run: Path) -> None:
    change(run / "recipe.toml", "num_decoder_layers = 1", "num_decoder_layers = 1000000000")
    with pytest.raises(UsageError, match=r"num_decoder_layers: expected a whole number from 1 to 1000, got 1000000000"):
        _ = Run(run).model


def test_a_recipe_of_a_newer_version_asks_for_an_update(run: Path) -> None:
    change(run / "recipe.toml", "format = 1", 'format = 2\nflavour = "new"')
    for doing in (lambda: Run(run).recipe, lambda: go_on(run)):
        with pytest.raises(
            DataError, match=r"recipe\.toml has format 2, written by a newer version of heed.*Update heed"
        ):
            doing()
    result = call("train", run / "recipe.toml", "--out", run.parent / "again")
    assert (result.code, result.err.count("\n")) == (65, 1)
    assert "Update heed" in result.err


# --- the weights are others -----------------------------------------------------------------------------


def test_a_flipped_bit_in_the_weights_is_detected(run: Path) -> None:
    content = bytearray((run / "model.safetensors").read_bytes())
    content[-1] ^= 1
    (run / "model.safetensors").write_bytes(content)
    result = call("translate", run, stdin="ba\n")
    assert (result.code, result.lines) == (65, [])
    assert result.err == f"error: {run / 'model.safetensors'} is damaged: its numbers do not match their SHA-256.\n"


def test_a_pickle_instead_of_the_weights_runs_nothing(run: Path, tmp_path: Path) -> None:
    class Bomb:
        def __reduce__(self) -> tuple[Callable[[str], None], tuple[str]]:
            return os.mkdir, (str(tmp_path / "it ran"),)

    torch.save({"w": Bomb()}, run / "model.safetensors")
    for words in (("translate", run), ("info", run), ("evaluate", run, "--src", os.devnull, "--ref", os.devnull)):
        result = call(*words)
        assert result.code == 65, result.err
        assert "is damaged or not a safetensors file" in result.err
    assert not (tmp_path / "it ran").exists()


def test_a_pipe_instead_of_the_weights_does_not_hang(run: Path) -> None:
    (run / "model.safetensors").unlink()
    os.mkfifo(run / "model.safetensors")
    with pytest.raises(DataError, match="is not a regular file"):
        _ = Run(run).model


@pytest.mark.parametrize("name", ["recipe.toml", "tokenizer.json"])
def test_a_pipe_instead_of_another_file_does_not_hang(run: Path, name: str) -> None:
    (run / name).unlink()
    os.mkfifo(run / name)
    with pytest.raises(HeedError):
        _ = Run(run).predictor.translator


@pytest.fixture(scope="module")
def counted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("counted")
    text, _ = write_pairs(folder)
    result = call("train", "--text", text, "--model.kind=bigram", "--out", folder / "run", "--quiet")
    assert result.code == 0, result.err
    return folder / "run"


@pytest.mark.parametrize("what", ["offsets", "words", "log_probs", "missing", "half", "other vocabulary"])
def test_invalid_counts_are_refused(counted: Path, tmp_path: Path, what: str) -> None:
    run = Path(shutil.copytree(counted, tmp_path / "run"))
    arrays = load_file(run / "model.safetensors")
    if what == "missing":
        del arrays["words"]
    elif what == "half":
        arrays["log_probs"] = torch.full_like(arrays["log_probs"], float("nan"), dtype=torch.bfloat16)
    elif what == "other vocabulary":
        arrays["offsets"][1] -= 1
    else:
        arrays[what] = arrays[what].flip(0) if what == "offsets" else -arrays[what][:-1] - 1000
    save_file({name: array.contiguous() for name, array in arrays.items()}, run / "model.safetensors")
    with pytest.raises(DataError, match="not an n-gram model"):
        _ = Run(run).model


# --- a training uses its own folder alone ---------------------------------------------------------------


@pytest.mark.parametrize("name", ["model.safetensors", "metrics.jsonl", "checkpoints", "data/train/src.tok", "extra"])
def test_a_training_with_links_in_its_folder_is_not_resumed(run: Path, tmp_path: Path, name: str) -> None:
    """It would write where they lead."""
    elsewhere = tmp_path / "elsewhere"
    if (run / name).exists():
        (run / name).rename(elsewhere)
    else:
        elsewhere.write_text("precious")
    (run / name).symlink_to(elsewhere)
    with pytest.raises(DataError, match=rf"{name} is a link or a special file; training uses nothing outside"):
        go_on(run)


def test_changed_data_is_refused(run: Path) -> None:
    content = bytearray((run / "data/train/tgt.tok").read_bytes())
    content[0] ^= 1
    (run / "data/train/tgt.tok").write_bytes(content)
    with pytest.raises(DataError, match=r"train is damaged: the checksum of tgt\.tok does not match"):
        go_on(run)


def test_another_tokenizer_than_that_of_the_data_is_refused(run: Path) -> None:
    other = prepared(run.parent, "other", seed=9, data__hold_out=100)
    assert (other.folder / "tokenizer.json").read_bytes() != (run / "tokenizer.json").read_bytes()
    shutil.copy(other.folder / "tokenizer.json", run)
    with pytest.raises(
        DataError, match=r"tokenizer\.json was changed after heed wrote it.* Restore the run's original file"
    ):
        go_on(run)
    of_an_older_heed(run)
    assert len(Run(run).tokenizers["src"].vocabulary) == 290  # as the data's: the size alone does not tell
    with pytest.raises(DataError, match=r"data/train was not made with this tokenizer \(src side\)"):
        resume(TrainOptions(run, device="cpu", quiet=True))


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("data/valid.jsonl", "{", r"valid\.jsonl is damaged or missing"),
        ("data/valid.jsonl", "5\n", r"valid\.jsonl is damaged or missing"),
        ("data/corpus.json", "[", r"corpus\.json is damaged"),
        ("data/train/manifest.json", '{"sides": {"../src": {}}}', "is damaged: manifest.json"),
    ],
)
def test_other_damaged_files_are_named(run: Path, name: str, content: str, message: str) -> None:
    of_an_older_heed(run)
    (run / name).write_text(content)
    with pytest.raises(DataError, match=message):
        go_on(run)


def test_an_invalid_log_does_not_stop_a_training(run: Path) -> None:
    lines = ["[1]", "{}", '{"event": "train"}', '{"event": "train", "step": "x"}', "\x00"]
    (run / "metrics.jsonl").write_text("\n".join(lines))
    go_on(run)
    assert json.loads((run / "metrics.jsonl").read_text().splitlines()[-1])["event"] == "end"


# --- nothing can run code -------------------------------------------------------------------------------


YAML_EVENTS = {
    "parse", "SafeLoader", "YAMLError", "NodeEvent", "ScalarEvent", "CollectionStartEvent", "CollectionEndEvent",
    "MappingStartEvent", "ScalarNode", "resolver",
}  # fmt: skip
"""Names of PyYAML that tell where strings are and make no objects of a document."""


def test_no_module_reads_formats_that_can_run_code() -> None:
    """No pickle in any of its forms, no YAML but its events, no eval, in all of the package."""
    forbidden = {
        "pickle",
        "cPickle",
        "dill",
        "cloudpickle",
        "marshal",
        "shelve",
        "joblib",
        "torch.load",
        "eval",
        "exec",
    }
    for path in SRC.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names: list[str] = []
            if isinstance(node, ast.Import):
                names = [alias.name.split(".")[0] for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                names = [(node.module or "").split(".")[0], *(f"{node.module}.{alias.name}" for alias in node.names)]
            elif isinstance(node, ast.Call):
                names = [ast.unparse(node.func)]
            assert not forbidden & set(names), f"{path}:{node.lineno}"  # type: ignore[attr-defined]
            if isinstance(node, ast.Attribute) and ast.unparse(node.value) == "yaml":
                assert node.attr in YAML_EVENTS, f"{path}:{node.lineno}: yaml.{node.attr} may build objects"
            assert not (isinstance(node, ast.ImportFrom) and node.module == "yaml"), f"{path}:{node.lineno}"
            pickles = (
                isinstance(node, ast.keyword) and node.arg == "allow_pickle" and ast.unparse(node.value) != "False"
            )
            assert not pickles, path
