"""Tests of neural language models by the command line: streams, windows, lines; resumed, scored, compared."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from command import call
from toy import flags, unchecked_shapes, write_lines
from toy_language import TINY_MODELS, TINY_TRAINING, text

from heed.run import Run

COMMON = {"data.hold_out": 40, "tokenizer.kind": "word", "tokenizer.vocab_size": 50, "tokenizer.min_frequency": 1}


def train(folder: Path, kind: str, name: str, *more: str, **keys: object) -> None:
    wanted = {**COMMON, **TINY_TRAINING, **TINY_MODELS[kind], "model.kind": kind, **keys}
    result = call("train", "--text", folder / "text", *flags(wanted), "--out", folder / name, "--quiet", *more)
    assert result.code == 0, result.err


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The toy text, a test text, a recurrent run `rnn` and a Transformer `gpt`."""
    made = tmp_path_factory.mktemp("language")
    write_lines(made / "text", text(400))
    write_lines(made / "test", text(60, seed=9))
    with unchecked_shapes():
        for kind in ("rnn", "gpt"):
            train(made, kind, kind)
    return made


def perplexity(err: str) -> str:
    return re.findall(r"perplexity per word ([\d.]+)", err)[0]


def test_the_default_reading_depends_on_the_kind(folder: Path) -> None:
    assert [Run(folder / kind).recipe.data.text_as for kind in ("rnn", "gpt")] == ["stream", "windows"]


def test_a_new_tokenizer_comes_with_a_note_on_perplexities(folder: Path) -> None:
    note = "note: only models with the same tokenizer can be compared by perplexity (all can by bits per byte);"
    for kind in ("gpt", "ngram"):
        result = call("train", "--text", folder / "text", f"--model.kind={kind}", "--dry-run", "--max-time", "1m")
        assert result.code == 0, result.err
        assert note in result.err
        assert ("expected: at most " in result.err) == (kind == "gpt")
    taken = call("train", "--text", folder / "text", "--tokenizer-of", folder / "rnn", "--dry-run", "--max-time", "1m")
    assert taken.code == 0, taken.err
    assert note not in taken.err
    assert "expected: at most" not in taken.err


def test_score_and_evaluate_agree_however_a_run_reads(folder: Path) -> None:
    result = call("evaluate", folder / "rnn", folder / "gpt", "--text", folder / "test", "--json")
    assert result.code == 0, result.err
    for found in json.loads(result.out):
        by_name = {score["name"]: score["value"] for score in found["scores"]}
        scored = call("score", found["run"], stdin=(folder / "test").read_text())
        assert len(scored.lines) == 60
        assert perplexity(scored.err) == f"{by_name['perplexity per word']:.3f}"
        assert found["reads"] in scored.err
        total = sum(float(line) for line in scored.lines)
        assert total == pytest.approx(-by_name["bits per byte"] * 0.6931472 * num_bytes(folder / "test"), rel=1e-3)


def num_bytes(path: Path) -> int:
    return path.stat().st_size


def test_a_line_of_a_stream_is_scored_after_the_lines_before_it(folder: Path) -> None:
    lines = (folder / "test").read_text().splitlines()
    together = call("score", folder / "rnn", "--json", stdin="\n".join(lines[:3]) + "\n").lines
    alone = call("score", folder / "rnn", "--json", stdin=lines[2] + "\n").lines
    assert json.loads(together[2])["text"] == json.loads(alone[0])["text"]
    assert json.loads(together[2])["log_prob"] != json.loads(alone[0])["log_prob"]
    assert json.loads(together[2])["tokens"][-1]["piece"] == "</s>"


def test_the_table_has_a_row_for_each_requested_system(folder: Path) -> None:
    asked = (
        "--dynamic",
        "sgd",
        "--dynamic-lr",
        "0.3",
        "--dynamic-segment",
        "9",
        "--cache",
        "0.1",
        "--cache-flatness",
        "0.5",
        "--ensemble",
        "--stride",
        "2",
    )
    result = call("evaluate", folder / "rnn", folder / "gpt", "--text", folder / "test", *asked)
    assert result.code == 0, result.err
    names = [re.split("  +", line)[0] for line in result.lines if line.startswith((str(folder), "ensemble"))]
    rnn, gpt = str(folder / "rnn"), str(folder / "gpt")
    assert names[:5] == [rnn, gpt, f"{rnn} (sgd, cache)", f"{gpt} (sgd, cache)", "ensemble of 2"]
    assert "8|stride:2" in result.out
    assert "stream|dynamic:sgd|lr:0.3|decay:0.001|segment:9|cache:500|share:0.1|flatness:0.5" in result.out


def test_options_that_do_not_apply_to_a_text_are_refused(folder: Path) -> None:
    for asked, message in [
        (("--dynamic", "adam"), "'adam' is not one of 'none', 'sgd', 'rms'"),
        (("--ensemble",), "--ensemble needs two runs or more"),
        (("--cache", "1.5"), "should be less than or equal to 0.99"),
    ]:
        result = call("evaluate", folder / "rnn", "--text", folder / "test", *asked)
        assert result.code == 2, result.err
        assert message in result.err


def test_a_size_of_batches_is_refused_for_a_stream(folder: Path) -> None:
    """It would have no effect. The recipe of an existing run may have it."""
    words = ("--text", folder / "text", "--training.tokens_per_batch=64", "--dry-run")
    refused = call("train", *words, "--model.kind=rnn")
    assert refused.code == 2 and "training.tokens_per_batch has no effect on a stream" in refused.err
    assert call("train", *words, "--model.kind=gpt").code == 0
    recipe = folder / "rnn" / "recipe.toml"
    assert "tokens_per_batch" in recipe.read_text()
    assert call("train", recipe, "--dry-run").code == 0


def test_a_number_of_streams_is_refused_for_text_that_is_no_stream(folder: Path) -> None:
    words = ("--text", folder / "text", "--model.kind=rnn", "--dry-run")
    refused = call("train", *words, "--data.text_as=lines", "--training.num_streams=8")
    assert refused.code == 2 and "training.num_streams = 8 has no effect on lines (data.text_as)" in refused.err
    assert call("train", *words, "--training.num_streams=8").code == 0
    lines = call("train", *words, "--data.text_as=lines")
    assert lines.code == 0 and "num_streams" not in lines.out + lines.err
    tuned = call("train", "--init", folder / "rnn", "--text", folder / "text", "--data.text_as=lines", "--dry-run")
    assert tuned.code == 0, tuned.err


def test_a_training_on_streams_is_resumed_by_the_command_line(folder: Path) -> None:
    long = {"training.max_steps": 60, "training.save_every": 7}
    train(folder, "rnn", "straight", **long)
    train(folder, "rnn", "short", **{**long, "training.max_steps": 33})
    recipe = folder / "short" / "recipe.toml"
    recipe.write_text(recipe.read_text().replace("max_steps = 33", "max_steps = 60"))
    assert call("train", "--resume", folder / "short", "--quiet").code == 0
    last = "checkpoints/step-0000060/{}.safetensors"
    for name in ("weights", "carried"):
        one, two = ((folder / run / last.format(name)).read_bytes() for run in ("straight", "short"))
        assert one == two
    recipe.write_text(recipe.read_text().replace("num_streams = 8", "num_streams = 4").replace("60", "70"))
    refused = call("train", "--resume", folder / "short", "--quiet")
    assert refused.code == 2
    assert "the checkpoint has 8 streams, the recipe training.num_streams = 4" in refused.err


def test_the_report_shows_the_training_perplexity(folder: Path) -> None:
    analysis = json.loads((folder / "rnn" / "validation.json").read_text())
    assert analysis["reads"] == "context:stream"
    assert "training perplexity" in (folder / "rnn" / "report.md").read_text() or (folder / "rnn/curves.png").exists()
