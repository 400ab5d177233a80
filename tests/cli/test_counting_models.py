"""Tests of count-based models by the command line: trained, scored, sampled, exported and imported."""

from __future__ import annotations

import json
import math
import random
import re
from pathlib import Path

import numpy as np
import pytest
from command import call
from toy import flags, without_shape_checks, write_lines

from heed.run import Run

__all__ = ["without_shape_checks"]

KINDS: dict[str, dict[str, object]] = {
    "kn3": {"model.kind": "ngram", "model.order": 3},
    "pruned": {"model.kind": "ngram", "model.order": 4, "model.prune": "[0,0,1]", "model.interpolate": False},
    "unigram": {"model.kind": "ngram", "model.order": 1, "model.smoothing": "additive"},
    "uniform": {"model.kind": "ngram", "model.order": 0},
    "cache": {"model.kind": "ngram", "model.cache_share": 0.1, "data.text_as": "stream"},
    "classes": {"model.kind": "class_ngram", "model.num_classes": 6},
    "lz78": {"model.kind": "lz78", "tokenizer.kind": "character"},
}


ADJECTIVES, NOUNS, VERBS = ("old", "new", "big"), ("dog", "cat", "cow", "bird"), ("sees", "hears", "likes")


def text(num_lines: int, seed: int = 0) -> list[str]:
    """Lines of five to seven words, which come in classes."""
    dice = random.Random(seed)
    lines = []
    for _ in range(num_lines):
        who, what = (f"{dice.choice([*ADJECTIVES, ''])} {dice.choice(NOUNS)}".strip() for _ in range(2))
        lines.append(f"the {who} {dice.choice(VERBS)} the {what} .")
    return lines


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of each kind, the toy text they were counted in, and a test text."""
    made = tmp_path_factory.mktemp("counting")
    write_lines(made / "text", text(300))
    write_lines(made / "test", text(40, seed=9))
    for name, keys in KINDS.items():
        wanted = {"data.hold_out": 30, **keys}
        result = call("train", "--text", made / "text", *flags(wanted), "--out", made / name, "--quiet")
        assert result.code == 0, result.err
    return made


def scores(folder: Path, name: str) -> dict[str, float]:
    """The scores of a run on the test text."""
    result = call("evaluate", folder / name, "--text", folder / "test", "--json", "--quiet")
    assert result.code == 0, result.err
    [found] = json.loads(result.out)
    return {score["name"]: score["value"] for score in found["scores"]}


def test_models_with_more_context_predict_better(folder: Path) -> None:
    found = {name: scores(folder, name)["perplexity per word"] for name in ("uniform", "unigram", "classes", "kn3")}
    assert found["uniform"] == pytest.approx(len(Run(folder / "uniform").tokenizers["tgt"].vocabulary) - 2)
    assert found["uniform"] > found["unigram"] > found["classes"]
    assert found["unigram"] > found["kn3"]


@pytest.mark.parametrize("name", KINDS)
def test_every_kind_scores_generates_and_is_described(folder: Path, name: str) -> None:
    scored = call("score", folder / name, stdin=(folder / "test").read_bytes())
    assert len(scored.lines) == 40
    assert all(float(line) < 0 for line in scored.lines)
    bits = float(re.findall(r"bits per character ([\d.]+)", scored.err)[0])
    assert bits == pytest.approx(scores(folder, name)["bits per character"], abs=1e-3)
    drawn = call("generate", folder / name, "--prompt", "the", "--samples", "2", "--max-tokens", "5")
    assert [line[:3] for line in (drawn.lines[0], drawn.lines[-1])] == ["the", "the"], drawn.err
    info = call("info", folder / name, "--json")
    assert json.loads(info.out)["model"]["kind"] == KINDS[name]["model.kind"]
    report = (folder / name / "report.md").read_text(encoding="utf-8")
    assert "a model of kind" not in report, "each kind is described in words"


def test_a_stream_of_lines_is_counted_like_separate_lines(folder: Path) -> None:
    """Without a cache, the context after an end of sentence is that at the beginning of a line."""
    for name, more in (("as lines", []), ("as stream", ["--data.text_as=stream", "--data.line_end=eos"])):
        keys = flags({"data.hold_out": 30, "data.valid_text": str(folder / "test"), "model.kind": "ngram"})
        result = call("train", "--text", folder / "text", *keys, *more, "--out", folder / name, "--quiet", "--force")
        assert result.code == 0, result.err
    lines, stream = (scores(folder, name)["perplexity per word"] for name in ("as lines", "as stream"))
    assert lines == pytest.approx(stream, rel=1e-6)


def test_a_text_whose_lines_do_not_end_is_counted_as_one(tmp_path: Path, folder: Path) -> None:
    """With line breaks as characters, the text after a line break is predicted from the text before it."""
    keys = flags({"data.text_as": "stream", "data.line_end": "newline", "tokenizer.kind": "character",
                  "model.kind": "ngram", "model.order": 3, "data.hold_out": 30})  # fmt: skip
    result = call("train", "--text", folder / "text", *keys, "--out", tmp_path / "run")
    assert result.code == 0, result.err
    assert "estimated from counts, 0.0 minutes" in result.err
    assert "no effect" not in result.err
    result = call("train", "--text", folder / "text", *keys, "--max-steps", "3", "--max-time", "1m", "--dry-run")
    assert "training.max_minutes and training.max_steps have no effect: ngram is estimated from counts" in result.err
    run = Run(tmp_path / "run")
    [ids] = run.tokenizers["tgt"].encode([".\nt"])
    model = run.model
    features, _ = model.advance(_tensor([ids[:2]]), model.start(None))
    after_break = model.head.log_probs(features)[0, -1]
    assert after_break[ids[2]].exp() > 0.5, "lines begin with 'the'"
    assert math.exp(after_break[2]) < 0.01, "and the text ends but once"


def _tensor(rows: list[list[int]]):  # type: ignore[no-untyped-def]
    import torch

    return torch.tensor(rows)


def test_an_ngram_run_is_exported_to_arpa_and_imported_again(folder: Path, tmp_path: Path) -> None:
    exported = call("export", folder / "kn3", "--to", "arpa", "--out", tmp_path / "kn3.arpa")
    assert exported.code == 0, exported.err
    sizes = re.findall(r"^ngram \d=(\d+)$", (tmp_path / "kn3.arpa").read_text(), re.MULTILINE)
    counts = ", ".join(f"{int(size):,}" for size in sizes)
    assert f"number of n-grams for n = 1, 2, ...: {counts}\n" in exported.err
    imported = call("import", tmp_path / "kn3.arpa", "--out", tmp_path / "again")
    assert imported.code == 0, imported.err
    test = (folder / "test").read_bytes()
    ours, theirs = (call("score", run, stdin=test).lines for run in (folder / "kn3", tmp_path / "again"))
    assert [float(line) for line in theirs] == pytest.approx([float(line) for line in ours], abs=1e-3)


@pytest.mark.parametrize(("name", "why"), [("classes", "is of kind class_ngram"), ("lz78", "is of kind lz78")])
def test_other_models_cannot_be_exported_to_arpa(folder: Path, tmp_path: Path, name: str, why: str) -> None:
    result = call("export", folder / name, "--to", "arpa", "--out", tmp_path / "model.arpa")
    assert result.code == 2
    assert why in result.err


def test_a_file_that_is_not_arpa_is_refused(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "text", ["just text"])
    result = call("import", path, "--out", tmp_path / "run")
    assert result.code == 65
    assert "is not an ARPA file, which has the line \\data\\" in result.err and "give --into RUN" in result.err
    assert not (tmp_path / "run").exists()
    assert call("import", tmp_path / "nothing", "--out", tmp_path / "run").code == 66
    np.savez(tmp_path / "model.npz", a=np.arange(9))
    arrays = call("import", tmp_path / "model.npz", "--out", tmp_path / "run")
    assert arrays.code == 65
    assert "model.npz: not UTF-8 text, so not an ARPA file" in arrays.err
    assert "A .npz file holds arrays" in arrays.err


@pytest.mark.parametrize(
    ("flag", "code", "why"),
    [
        ("--model.order=30", 2, "model.order"),
        ("--model.smoothing=good-turing", 2, "kneser-ney"),
        ("--model.prune=[1]", 2, "min_frequency"),
        ("--model.discount_fallback=false", 65, "Kneser-Ney discounts cannot be estimated"),
    ],
)
def test_invalid_settings_of_counting_models_are_refused(
    folder: Path, tmp_path: Path, flag: str, code: int, why: str
) -> None:
    few = write_lines(tmp_path / "few", text(60))
    keys = flags({"data.hold_out": 5, "model.kind": "ngram"})
    result = call("train", "--text", few, *keys, flag, "--out", tmp_path / "run", "--quiet")
    assert result.code == code, result.err
    assert why in result.err


def test_a_folder_of_another_model_is_refused_with_the_kinds_that_can_be_imported(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"model_type": "llama"}')
    result = call("import", tmp_path, "--out", tmp_path / "run")
    assert (result.code, "model_type is 'llama', but heed supports only 'gpt2' or 'bert'" in result.err) == (65, True)


def test_an_arpa_file_without_unknown_words_is_imported_with_a_warning(tmp_path: Path) -> None:
    (tmp_path / "a.arpa").write_text("\\data\\\nngram 1=2\n\n\\1-grams:\n-0.3\t</s>\n-0.3\ta\n\n\\end\\\n")
    result = call("import", tmp_path / "a.arpa", "--out", tmp_path / "run")
    assert (result.code, "has no probability for <unk>: unknown words get probability 0" in result.err) == (0, True), (
        result.err
    )
