"""Evaluation of language models and compressors on a text."""

from __future__ import annotations

import gzip
import json
import math
import re
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from toy import unchecked_shapes, write_lines
from toy_language import language_run, text

from heed.core.errors import UsageError
from heed.core.run_files import RECIPE
from heed.evaluation.likelihoods import (
    TextSystem,
    compressed,
    evaluate_texts,
    lines_per_block,
    mixture,
    read_by,
    training_perplexity,
)
from heed.evaluation.table import render_table
from heed.evaluation.test_set import HeldOut, read_monolingual
from heed.metrics.likelihood import TextLikelihood
from heed.run import Run
from heed.text.normalise import Normaliser

TEST = HeldOut(("test.txt",), [(line,) for line in text(60, seed=9)])


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Run]:
    """A counted model of lines, a recurrent one of a stream, a Transformer of windows; all of the same words."""
    folder = tmp_path_factory.mktemp("runs")
    with unchecked_shapes():
        return {kind: language_run(folder, kind, kind) for kind in ("bigram", "rnn", "gpt")}


@pytest.fixture(autouse=True)
def _fast() -> object:
    with unchecked_shapes():
        yield


def systems(runs: dict[str, Run]) -> list[TextSystem]:
    return [read_by(run, TEST, run.predictor.scorer()) for run in runs.values()]


def test_models_of_any_kind_share_a_table_with_the_same_counts(runs: dict[str, Run]) -> None:
    found = evaluate_texts(TEST, systems(runs))
    num_words = sum(len(line.split()) + 1 for line in TEST.sources)
    assert [e.how["reads"] for e in found] == ["context:line", "context:stream", "context:8|stride:4"]
    for evaluation in found:
        signature = evaluation.scores["perplexity per word"].signature
        assert signature.startswith(f"unit:word|n:{num_words}|eos:yes|unk:0|{evaluation.how['reads']}|bs:1000|")
        assert signature.endswith("|block:3")
        score = evaluation.scores["perplexity per word"]
        assert score.low is not None and score.low < score.value < score.high  # type: ignore[operator]
        assert evaluation.run is not None and evaluation.how["parameters"] == evaluation.run.num_parameters > 0
        assert evaluation.how["training_perplexity"] == pytest.approx(score.value, rel=0.5)
    assert not found[0].against_first
    assert {*found[1].against_first} == {*found[2].against_first} == {"bits per byte"}
    table = render_table(found)
    for part in ("training, per token  parameters  reads", "8|stride:4", "\n  against the first  ", "|block:3"):
        assert part in table
    assert table.count("unit:word") == 1
    assert json.loads(json.dumps(found[1].to_json()))["reads"] == "context:stream"


def test_a_model_of_separate_lines_is_resampled_by_lines(runs: dict[str, Run]) -> None:
    [only] = evaluate_texts(TEST, systems({"bigram": runs["bigram"]}))
    assert "block" not in only.scores["bits per byte"].signature


@pytest.mark.parametrize(("words", "num_lines", "block"), [(24, 4000, 20), (9, 400, 20), (600, 100, 1), (3, 10, 1)])
def test_a_block_has_about_five_hundred_words_and_there_are_at_least_twenty(
    words: int, num_lines: int, block: int
) -> None:
    test = HeldOut(("x",), [(" ".join(["w"] * words),)] * num_lines)
    lines, whole = [TextLikelihood()] * num_lines, TextSystem("xz", [TextLikelihood()], "context:file")
    assert lines_per_block(test, [whole, TextSystem("", lines, "context:stream")]) == block
    assert lines_per_block(test, [whole, TextSystem("", lines, "context:line")]) == 1


def test_an_ensemble_averages_probabilities(runs: dict[str, Run], tmp_path: Path) -> None:
    found = systems(runs)
    together = mixture(found)
    assert together.name == "ensemble of 3"
    assert together.reads == "context:line+context:stream+context:8|stride:4"
    assert together.scored is not None
    by_hand = np.log(np.mean([np.exp(system.scored.log_probs) for system in found if system.scored], axis=0))
    np.testing.assert_allclose(together.scored.log_probs, by_hand)
    totals = [sum(t.log_prob_sum for t in system.likelihoods) for system in (*found, together)]
    assert totals[-1] > min(totals[:-1])
    assert [evaluation.synthetic for evaluation in evaluate_texts(TEST, [*found, together])] == [False] * 4
    copied = shutil.copytree(runs["bigram"].folder, tmp_path / "copy")
    recipe = (copied / RECIPE).read_text().replace("synthetic = false", "synthetic = true")
    (copied / RECIPE).write_text(recipe)
    [evaluation] = evaluate_texts(TEST, [mixture([replace(found[0], run=Run(copied)), *found[1:]])])
    assert evaluation.synthetic


def test_models_with_different_tokens_cannot_be_an_ensemble(runs: dict[str, Run], tmp_path: Path) -> None:
    other = language_run(tmp_path, "characters", "bigram", tokenizer__kind="character")
    scored = read_by(other, TEST, other.predictor.scorer())
    with pytest.raises(UsageError, match="--ensemble needs runs with the same tokens"):
        mixture([*systems(runs), scored])
    found = evaluate_texts(TEST, [*systems(runs), scored])
    assert found[-1].against_first  # in bits per byte they compare all the same
    assert (
        found[-1].scores["perplexity per word"].signature.split("|")[:3]
        == (found[0].scores["perplexity per word"].signature.split("|")[:3])
    )


def test_a_system_without_lines_has_neither_interval_nor_test(runs: dict[str, Run]) -> None:
    whole = "\n".join(TEST.sources) + "\n"
    total = TextLikelihood(-1000.0, 500, len(whole.split()), len(whole) - 60, len(whole) - 60, 60)
    found = evaluate_texts(TEST, [*systems(runs), TextSystem("xz", [total], "context:stream")])[-1]
    assert found.scores["bits per byte"].value == pytest.approx(1000 / math.log(2) / len(whole))
    assert found.scores["bits per byte"].low is None
    assert not found.against_first
    assert "xz" in render_table([found])


def test_compressors_are_scored_with_and_without_a_primer(tmp_path: Path) -> None:
    seen = write_lines(tmp_path / "seen", TEST.sources)
    found = compressed(TEST, Normaliser(), seen)
    assert [system.name for system in found[:5]] == ["gzip", "bzip2", "xz", "zstd", "lz78"]
    assert [system.name for system in found[5:]] == [f"{system.name} primed" for system in found[:5]]
    whole = "".join(line + "\n" for line in TEST.sources).encode()
    evaluations = evaluate_texts(TEST, found)
    bits = evaluations[0].scores["bits per byte"]
    assert bits.value == pytest.approx(8 * len(gzip.compress(whole, 9, mtime=0)) / len(whole))
    assert bits.signature == f"unit:byte|n:{len(whole)}|eos:yes|unk:0|context:file"
    assert evaluations[7].scores["bits per byte"].value < 0.2 * bits.value  # it has seen that very text
    assert "file|primer:seen" in render_table(evaluations)


def test_dynamic_evaluation_adapts_to_the_text_and_restores_the_model(runs: dict[str, Run]) -> None:
    run = Run(runs["rnn"].folder)
    scorer = run.predictor.adapting_scorer({"rule": "sgd", "lr": 0.5, "cache_share": 0.1})
    found = read_by(run, TEST, scorer, "dynamic")
    still = read_by(run, TEST, run.predictor.scorer())
    assert found.reads.startswith("context:stream|dynamic:sgd|lr:0.5")
    assert sum(t.log_prob_sum for t in found.likelihoods) != sum(t.log_prob_sum for t in still.likelihoods)
    assert sum(t.log_prob_sum for t in still.likelihoods) == pytest.approx(
        sum(t.log_prob_sum for t in systems(runs)[1].likelihoods)
    )
    rms = Run(runs["bigram"].folder.parent / "rnn").predictor.adapting_scorer({"rule": "rms"})
    assert "dynamic:rms" in rms.signature


def test_the_training_perplexity_is_that_of_the_kept_weights(runs: dict[str, Run]) -> None:
    assert training_perplexity(runs["rnn"]) is not None
    journal = runs["rnn"].folder / "metrics.jsonl"
    events = [json.loads(line) for line in journal.read_text().splitlines()]
    best = [event for event in events if event.get("best")][-1]
    assert training_perplexity(runs["rnn"]) == best["training_perplexity"]


def test_blank_lines_are_read_on_request(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "text", ["a", "", " ", "b"])
    assert read_monolingual(path).sources == ["a", "b"]
    assert read_monolingual(path, blank_lines=True).sources == ["a", "", " ", "b"]


def likelihood(log_prob: float, num_unknown: int, line: str = "ba ce di fo") -> TextLikelihood:
    return TextLikelihood.of_sentence(line, log_prob, 5, num_unknown)


def test_models_with_more_unknown_words_are_not_compared(runs: dict[str, Run]) -> None:
    one, other = systems(runs)[:2]
    knows_less = replace(other, likelihoods=[replace(each, num_unknown=1) for each in other.likelihoods])
    found = evaluate_texts(TEST, [one, knows_less, other])
    assert not found[1].against_first and found[2].against_first
    table = render_table(found)
    assert re.search(r"bits per byte +unknown +training, per token", table)
    assert "numbers of them cannot be compared" in table
    assert "unknown" not in render_table(evaluate_texts(TEST, [one, other])).replace("unk:", "")


def test_text_without_blanks_is_scored_by_characters_first() -> None:
    lines = [("犬が公園を走っている。" * number,) for number in range(3, 40)]
    test = HeldOut(("test.ja",), lines)
    said = TextSystem("m", [likelihood(-9.0, 0, line) for (line,) in lines], "context:line")
    heads = render_table(evaluate_texts(test, [said])).split("\n")[2].split("  ")
    assert next(head for head in heads if head).strip() == "bits per character"
    assert not any("word" in head for head in heads)


def test_a_text_of_few_lines_is_noted(runs: dict[str, Run]) -> None:
    test = HeldOut(("test.txt",), TEST.rows[:19])
    found = evaluate_texts(test, [read_by(runs["bigram"], test, runs["bigram"].predictor.scorer())])
    assert "Fewer than 20 lines" in render_table(found)
