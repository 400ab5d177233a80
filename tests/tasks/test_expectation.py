"""The quality to expect: its fit, its error on what it has not seen, where it is silent, and where it is shown."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from operator import attrgetter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from toy import pairs, prepared, tiny_keys, unchecked_shapes, with_weights, write_lines

from heed.cli.train import run_training
from heed.core.config import Document
from heed.execute import prepare_run
from heed.planner import Plan, Planner, TrainOptions
from heed.recipe import build_recipe
from heed.report.html import html_report
from heed.report.page import write_report
from heed.run import Run
from heed.tasks.defaults import CorpusStats, Machine
from heed.tasks.language_model.task import LanguageModelTask
from heed.tasks.translation.expectation import KINDS, PENALTY, expected, measured_with, predicted, prediction_error
from heed.tasks.translation.measured import MEASURED, MeasuredCorpus, similar, suited
from heed.tasks.translation.task import TranslationTask

CPU = Machine("cpu", 2, 16 << 30, "float32", 0.0)
CAPTIONS = CorpusStats(
    20_000, 70.0, measured={"src_words": 12, "src_characters": 60, "tgt_words": 11, "tgt_characters": 70}
)


@pytest.mark.parametrize(
    ("kind", "other_texts", "other_genres"), [("transformer", 11.8, 16.0), ("phrase_based", 6.6, 8.0)]
)
def test_the_errors_on_left_out_corpora_are_those_of_the_documentation(
    kind: str, other_texts: float, other_genres: float
) -> None:
    assert prediction_error(kind, attrgetter("text")) == pytest.approx(other_texts, abs=0.05)
    assert prediction_error(kind) == pytest.approx(other_genres, abs=0.05)


@pytest.mark.parametrize("kind", KINDS)
def test_no_simpler_prediction_has_a_smaller_error(kind: str) -> None:
    """Neither the mean of all others, nor those of the most similar ones."""
    corpora = measured_with(kind)
    score = attrgetter(KINDS[kind])
    for group in (attrgetter("genre"), attrgetter("text")):
        for most in (1, 2, 3, len(corpora)):
            errors = []
            for each in corpora:
                others = [other for other in corpora if group(other) != group(each)]
                others.sort(key=lambda other: other.distance(each.num_pairs, each.characters))
                errors.append(np.mean([score(other) for other in others[:most]]) - score(each))
            assert prediction_error(kind, group) < np.sqrt(np.mean(np.square(errors)))


def test_the_fit_is_least_squares_with_a_penalty_on_the_slopes() -> None:
    """As by least squares of the corpora, and of two more rows that ask for slopes of zero."""
    corpora = measured_with("transformer")
    sizes = np.log2([(each.num_pairs, each.characters) for each in corpora])
    rows = np.vstack([np.column_stack([np.ones(len(sizes)), sizes - sizes.mean(0)]), np.eye(3)[1:] * PENALTY**0.5])
    weights, *_ = np.linalg.lstsq(rows, np.array([each.transformer for each in corpora] + [0.0, 0.0]), rcond=None)
    by_hand = weights @ [1, *(np.log2([20_000, 70]) - sizes.mean(0))]
    assert predicted(corpora, "transformer", 20_000, 70) == pytest.approx(by_hand)


@pytest.mark.parametrize("kind", KINDS)
def test_more_and_shorter_pairs_raise_the_expectation(kind: str) -> None:
    some, more, longer = (expected(kind, *size) for size in ((10_000, 70.0), (20_000, 70.0), (10_000, 100.0)))
    assert some is not None and more is not None and longer is not None
    assert longer.bleu < some.bleu < more.bleu


def test_a_prediction_beyond_all_that_was_measured_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = [MeasuredCorpus(f"genre {n}, A to B", 1000 << n, 30 * (1 + n % 2), 20.0 * n) for n in range(4)]
    monkeypatch.setattr("heed.tasks.translation.expectation.MEASURED", lines)
    prediction_error.cache_clear()
    found = expected("transformer", 16_000, 60)
    prediction_error.cache_clear()
    assert found is not None
    assert predicted(lines, "transformer", 16_000, 60) > found.bleu == 60.0


@pytest.mark.parametrize(
    ("kind", "num_pairs", "characters"),
    [
        ("transformer", 900, 70.0),
        ("transformer", 340_000, 36.0),
        ("transformer", 20_000, 16.0),
        ("transformer", 20_000, 340.0),
        ("phrase_based", 160_000, 160.0),  # each is within what was measured, but not both together
        ("rnn_attention", 20_000, 70.0),
    ],
)
def test_nothing_is_expected_of_what_was_not_measured(kind: str, num_pairs: int, characters: float) -> None:
    assert expected(kind, num_pairs, characters) is None


def quality(stats: CorpusStats = CAPTIONS, machine: Machine = CPU, **given: Any) -> str:
    keys = {"model.kind": "transformer", **{name.replace("__", "."): value for name, value in given.items()}}
    return TranslationTask.expected_quality(build_recipe(Document(), {"task": "translation", **keys}), stats, machine)


def test_the_quality_is_given_for_one_corpus_on_one_machine_without_a_gpu() -> None:
    text = "about 30 BLEU on validation data with heed's choices after 45 minutes on one CPU core, give or take 16 "
    assert quality().startswith(text)
    phrases = quality(model__kind="phrase_based", tokenizer__kind="open-word")
    assert phrases.startswith("about 29 BLEU on validation data with heed's choices, give or take 8 (from 13 corpora ")
    both = quality(model__kind="phrase_based", tokenizer__kind="open-word", training__scorer="transformer")
    assert both.startswith("about 30 BLEU on validation data with heed's choices after 45 minutes on one CPU core, ")
    assert not quality(machine=replace(CPU, device="cuda"))
    assert not quality(machine=replace(CPU, num_processes=2))
    assert not quality(replace(CAPTIONS, measured={**CAPTIONS.measured, "tgt_words": 1.2})), "without spaces"
    assert not quality(data__synthetic=True)
    assert not quality(data__parts=[{"src": "a", "tgt": "b"}])
    assert LanguageModelTask.expected_quality(None, CAPTIONS, CPU) == ""


def test_corpora_with_one_kind_of_model_do_not_decide_between_the_kinds() -> None:
    nearest, _ = similar(8_000, 123.0)
    assert nearest.render() == "8,000 pairs of news, English to Swahili: 17.0 by phrases"
    assert suited(8_000, 123.0) != "transformer"
    assert suited(40_000, 36.0) == "transformer"
    assert [suited(number, 36.0) for number in (100, 800, 2_000)] == ["phrases", "phrases", "both"], "fewer than any"
    assert {corpus.genre for corpus in MEASURED} == {"captions", "news", "short sentences", "talks"}


@pytest.mark.parametrize(
    ("transformer", "phrases", "both", "best"),
    [
        (20.0, 21.0, 21.5, "transformer"),  # not clearly better
        (20.0, 23.0, 25.0, "both"),
        (20.0, 21.0, 25.0, "both"),
        (20.0, 23.0, 23.2, "phrases"),  # the scorer is not worth its time
        (20.0, 23.0, 22.0, "phrases"),
        (20.0, 21.9, 22.3, "transformer"),
        (20.0, 23.0, None, "phrases"),
    ],
)
def test_what_was_clearly_better_on_the_most_similar_corpus_is_chosen(
    transformer: float, phrases: float, both: float | None, best: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    near = MeasuredCorpus("near, A to B", 10_000, 50, transformer, phrases, both)
    far = MeasuredCorpus("far, A to B", 20_000, 50, 0.0, 50.0, 60.0)
    monkeypatch.setattr("heed.tasks.translation.measured.MEASURED", [far, near])
    assert suited(11_000, 50.0) == best
    assert suited(1_000_000, 50.0) == "transformer"  # unlike both


def keys_of(folder: Path) -> dict[str, Any]:
    """A tiny run on 2,500 toy pairs of up to 30 words."""
    for side, lines in zip(("aa", "bb"), zip(*pairs(2_500, longest=30), strict=True), strict=True):
        write_lines(folder / f"train.{side}", lines)
    return tiny_keys(folder)


def plan_of(folder: Path, **options: Any) -> Plan:
    told = TrainOptions(folder / "run", device="cpu", quiet=True, **options)
    return Planner(Document(), keys_of(folder), told).plan()


def test_the_quality_is_printed_with_the_plan(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run_training(None, keys_of(tmp_path), TrainOptions(Path(), device="cpu"), dry_run=True)
    printed = "".join(capsys.readouterr())
    assert re.search(
        r"^expected quality: about \d+ BLEU on validation data .*, give or take 16 \(from 14 ", printed, re.M
    )
    assert printed.index("expected quality:") < printed.index("BLEU of similar corpora")


def test_nothing_is_expected_of_a_training_from_other_weights(tmp_path: Path) -> None:
    with unchecked_shapes():
        first = with_weights(prepared(tmp_path, "first"))
    assert plan_of(tmp_path, init=first.folder).expected_quality == ""


def test_the_report_repeats_what_was_expected_before_the_training(tmp_path: Path) -> None:
    plan = plan_of(tmp_path)
    assert (
        "BLEU on validation data with heed's choices after 45 minutes on one CPU core, give or take 16"
        in plan.expected_quality
    )
    with unchecked_shapes():
        run = prepare_run(plan, tmp_path / "run", quiet=True)
    line = f"**Expected before the training**: {plan.expected_quality}."
    assert line in write_report(run).read_text()
    assert plan.expected_quality in html_report(run)


def test_a_run_of_an_earlier_version_has_no_such_line(tmp_path: Path) -> None:
    with unchecked_shapes():
        run = prepare_run(replace(plan_of(tmp_path), expected_quality=""), tmp_path / "run", quiet=True)
    facts = json.loads((run.folder / "data/corpus.json").read_text())
    del facts["expected_quality"]
    with run.files.write("data/corpus.json", "w") as file:
        json.dump(facts, file)
    assert "Expected before" not in write_report(Run(run.folder)).read_text()
