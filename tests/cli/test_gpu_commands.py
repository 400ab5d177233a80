"""Commands with `--device cuda`: the translations, scores and answers of a CPU."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from command import call
from gpu import needs_gpu
from toy import WORDS, pairs, write_lines

pytestmark = needs_gpu

TEXT = "\n".join([src for src, _ in pairs(40, seed=5)] + ["", "ba ce di fo gu ha ji ko lu me no pi"]) + "\n"


def about(value: Any) -> Any:
    """A JSON value that equals others whose numbers differ as those of a CPU and a GPU do."""
    if isinstance(value, dict):
        return {key: about(each) for key, each in value.items()}
    if isinstance(value, list):
        return [about(each) for each in value]
    return pytest.approx(value, rel=1e-3, abs=1e-3) if isinstance(value, float) else value


def texts(run: Path, device: str, *flags: object) -> list[str]:
    result = call("translate", run, "--device", device, *flags, stdin=TEXT)
    assert result.code == 0, result.err
    return result.lines


@pytest.mark.parametrize(
    "flags",
    [
        ("--beam", 1),
        ("--beam", 5, "--nbest", 3),
        ("--beam", 4, "--nbest", 2, "--diversity", 1),
        ("--beam", 4, "--no-repeat", 2, "--coverage-penalty", 0.2),
        ("--sample", "--seed", 3),
        ("--sample", "--top-k", 5, "--seed", 4),
        ("--mbr", "chrf"),
    ],
    ids=str,
)
def test_translations(translator: Path, flags: tuple[object, ...]) -> None:
    cpu, gpu = (texts(translator, device, *flags, "--engine", "torch") for device in ("cpu", "cuda"))
    assert [line.split(" ||| ")[:2] for line in gpu] == [line.split(" ||| ")[:2] for line in cpu]


def test_details_of_translations(translator: Path) -> None:
    cpu, gpu = (
        [json.loads(line) for line in texts(translator, device, "--json", "--engine", "torch")]
        for device in ("cpu", "cuda")
    )
    assert gpu == about(cpu)


def test_a_batch_does_not_change_a_translation(translator: Path) -> None:
    assert texts(translator, "cuda", "--batch-size", 1) == texts(translator, "cuda", "--batch-size", 64)


def test_scores_of_a_test_set(translator: Path) -> None:
    sides = [translator.parent / f"test.{side}" for side in ("aa", "bb")]
    found = []
    for device in ("cpu", "cuda"):
        flags = ("--src", sides[0], "--ref", sides[1], "--device", device)
        result = call("evaluate", translator, *flags, "--json")
        assert result.code == 0, result.err
        found.append(json.loads(result.out))
    assert found[1] == about(found[0])


def test_a_translator_is_trained_and_translates(tmp_path: Path) -> None:
    src, tgt = (write_lines(tmp_path / f"train.{i}", side) for i, side in enumerate(zip(*pairs(300), strict=True)))
    run = tmp_path / "run"
    flags = ("--src", src, "--tgt", tgt, "--out", run, "--device", "cuda", "--quiet", "--training.max_steps=30")
    result = call("train", *flags, "--training.eval_every=15")
    assert result.code == 0, result.err
    result = call("train", "--resume", run, "--training.max_steps=40", "--device", "cuda", "--quiet")
    assert result.code == 0, result.err
    assert len(texts(run, "cuda")) == 42


@pytest.mark.parametrize("model", ["gpt", "rnn", "ngram"])
def test_a_language_model_is_trained_scores_and_generates(tmp_path: Path, model: str) -> None:
    text = write_lines(tmp_path / "text", [f"the {a} sees the {b} ." for a in WORDS for b in WORDS])
    run = tmp_path / "run"
    limit = () if model == "ngram" else ("--training.max_steps=6",)
    result = call("train", "--text", text, f"--model.kind={model}", "--out", run, "--device", "cuda", "--quiet", *limit)
    assert result.code == 0, result.err
    scores = [call("score", run, "--device", device, stdin=text.read_text()).lines for device in ("cpu", "cuda")]
    assert [float(line) for line in scores[1]] == pytest.approx([float(line) for line in scores[0]], abs=0.01)
    generated = call("generate", run, "--prompt", "the", "--max-tokens", 5, "--device", "cuda", "--seed", 1)
    assert generated.code == 0, generated.err
