"""Run folders: copied to other places, and refused if they are not runs."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from toy import trained, without_shape_checks
from toy_language import language_run

from heed.core.errors import DataError, MissingInputError, UsageError
from heed.core.run_files import RunFiles
from heed.decoding.options import SearchOptions
from heed.run import Run

__all__ = ["trained", "without_shape_checks"]


@pytest.fixture
def copy(trained: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(trained, tmp_path / "elsewhere"))


def test_a_copied_folder_works_without_its_data_and_checkpoints(trained: Path, copy: Path) -> None:
    for name in ("data", "checkpoints", "report.md", "metrics.jsonl"):
        path = copy / name
        shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
    options = SearchOptions(beam_size=2)
    lines = ["ba ce di", "", "pi no"]
    there, here = (Run(folder).predictor.translator.translate(lines, options) for folder in (copy, trained))
    assert [h.text for h in there] == [h.text for h in here]


def test_the_model_of_a_run_has_its_weights_and_no_gradients(trained: Path) -> None:
    model = Run(trained).model
    weights = load_file(trained / "model.safetensors")
    assert all(torch.equal(weights[name], parameter) for name, parameter in model.named_parameters())
    assert not any(parameter.requires_grad for parameter in model.parameters())


def test_a_new_model_depends_on_the_seed_alone_and_preserves_the_random_state(trained: Path) -> None:
    torch.manual_seed(7)
    expected = torch.rand(3)
    torch.manual_seed(7)
    one, two = Run(trained).new_model(), Run(trained).new_model()
    assert torch.equal(torch.rand(3), expected)
    assert all(torch.equal(a, b) for a, b in zip(one.parameters(), two.parameters(), strict=True))


def test_a_folder_that_is_not_a_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(MissingInputError, match="no such run folder"):
        Run(tmp_path / "nothing")
    with pytest.raises(MissingInputError, match=r"is not a run folder: it has no recipe\.toml"):
        Run(tmp_path)


def test_a_run_without_weights_is_refused(copy: Path) -> None:
    (copy / "model.safetensors").unlink()
    with pytest.raises(
        MissingInputError, match=r"has no model\.safetensors: its training ended before the first validation"
    ):
        _ = Run(copy).model


def test_a_count_that_was_interrupted_is_to_be_made_again(tmp_path: Path) -> None:
    run = language_run(tmp_path, "counted", "bigram", train=False)
    with pytest.raises(MissingInputError, match=r"before everything was counted\. Train it again with --overwrite"):
        run.require_weights()


@pytest.mark.parametrize("content", [b"", b"\x80\x04\x95 a pickle", b"\xff" * 100], ids=["empty", "pickle", "noise"])
def test_weights_in_another_format_are_refused(copy: Path, content: bytes) -> None:
    (copy / "model.safetensors").write_bytes(content)
    with pytest.raises(DataError, match="is damaged or not a safetensors file"):
        _ = Run(copy).model


def test_weights_of_another_model_are_refused(copy: Path) -> None:
    path = copy / "model.safetensors"
    weights = load_file(path)
    name = next(iter(weights))
    save_file({**weights, name: torch.zeros(3)}, path)
    with pytest.raises(DataError, match=rf"'{name}' has the shape \[3\], the recipe's model has"):
        _ = Run(copy).model
    save_file({**{k: v for k, v in weights.items() if k != name}, "other": torch.zeros(3)}, path)
    with pytest.raises(DataError, match="the weights do not fit the recipe's model"):
        _ = Run(copy).model


def test_a_missing_or_foreign_tokenizer_is_refused(copy: Path) -> None:
    with RunFiles(copy).write("tokenizer.json", "w") as file:
        file.write('{"model": 1}')
    with pytest.raises(DataError, match=r"tokenizer\.json: not a tokenizer"):
        _ = Run(copy).predictor.translator
    (copy / "tokenizer.json").unlink()
    with pytest.raises(MissingInputError, match=r"tokenizer\.src\.json does not exist"):
        _ = Run(copy).predictor.translator


def test_mistakes_in_a_recipe_are_reported_with_file_and_line(copy: Path) -> None:
    recipe = copy / "recipe.toml"
    recipe.write_text(recipe.read_text().replace("d_ff = 32", "d_fff = 32"))
    with pytest.raises(UsageError, match=r"recipe\.toml:\d+: unknown key 'model.d_fff'. Did you mean 'model.d_ff'\?"):
        _ = Run(copy).recipe


def test_a_run_of_another_task_is_refused(trained: Path) -> None:
    run = Run(trained)
    run.predictor.require("translate")
    with pytest.raises(UsageError, match=r"generate needs a run that can generate; .* is a translation run"):
        run.predictor.require("generate")
