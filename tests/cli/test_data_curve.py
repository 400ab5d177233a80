"""`heed data curve`: the same training on parts of its pairs, repeated only where it is not complete."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from command import Result, call

from heed.cli import data_curve
from heed.cli.data_curve import Point, _advice
from heed.evaluation import outputs
from heed.run import Run

LIMITS = {"training.max_steps": 2, "training.eval_every": 2, "training.save_every": 2}


def curve(run: Path, out: Path) -> Result:
    return call("data", "curve", run, "--out", out, "--threads", "1", "--quiet")


def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the trainings of the curve end after two updates."""
    train = data_curve.run_training

    def briefly(recipe: Path, keys: dict[str, object], options: Any, **others: Any) -> None:
        train(recipe, {**keys, **LIMITS}, options, **others)

    monkeypatch.setattr(data_curve, "run_training", briefly)
    monkeypatch.setattr(data_curve, "_like", lambda _: None)


def test_a_curve_has_a_quarter_a_half_and_all_of_the_pairs(
    translator: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    quick(monkeypatch)
    translate, workers = outputs.translated, []

    def translated(run: Run, *given: Any, **named: Any) -> outputs.System:
        workers.append(run.num_workers)
        return translate(run, *given, **named)

    monkeypatch.setattr(outputs, "translated", translated)
    result = curve(translator, tmp_path / "curve")
    assert result.code == 0, result.err
    assert workers == [1] * 3, "as --threads says"
    points = json.loads((tmp_path / "curve" / "curve.json").read_text())
    numbers = [point["pairs"] for point in points]
    assert numbers[2] == Run(translator).corpus["num_rows"]
    assert numbers[0] == pytest.approx(numbers[2] / 4, rel=0.3)
    assert numbers[1] == pytest.approx(numbers[2] / 2, rel=0.2)
    assert [point["gain"] is None for point in points] == [True, False, False]
    assert points[2]["gain"] == pytest.approx(points[2]["bleu"] - points[1]["bleu"])
    assert f"{numbers[0]:,}" in result.out
    assert "added" in result.out

    monkeypatch.setattr("heed.execute.execute", lambda *_: pytest.fail("trained again"))
    assert curve(translator, tmp_path / "curve").out == result.out

    monkeypatch.undo()
    limited = curve(translator, tmp_path / "curve")
    assert limited.code == 65, "its recipe has other limits than the runs of the curve"
    assert "recipe" in limited.err


def test_changed_training_files_are_refused(translator: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = Run(translator)
    monkeypatch.setitem(run.corpus, "files", {"src": {"sha256": "other"}})
    monkeypatch.setattr("heed.run.Run", lambda *_: run)
    result = curve(translator, tmp_path / "curve")
    assert result.code == 65
    assert "is not the file that" in result.err


@pytest.mark.parametrize(
    "corpus, reason",
    [
        ({"num_rows": 9, "init": "base"}, "began with"),
        ({"num_rows": 9, "tokenizer_of": "base"}, "began with"),
        ({}, "no record"),
    ],
)
def test_a_run_that_its_recipe_alone_does_not_give_is_refused(
    translator: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, corpus: dict[str, Any], reason: str
) -> None:
    run = Run(translator)
    vars(run)["corpus"] = corpus
    monkeypatch.setattr("heed.run.Run", lambda *_: run)
    result = curve(translator, tmp_path / "curve")
    assert result.code == 2
    assert reason in result.err


@pytest.mark.parametrize(
    "gain, p, of_time, pairs, time",
    [
        (4.0, 0.001, 1.2, "doubling them again", "would help too"),
        (3.0, 0.06, 1.2, "may be chance, which more validation data would show", "would help too"),
        (0.2, 0.6, 0.1, "help little", "would help little"),
        (-2.0, 0.001, 0.1, "help little", "would help little"),
    ],
)
def test_advice_follows_from_what_the_second_half_added(
    gain: float, p: float, of_time: float, pairs: str, time: str
) -> None:
    of_pairs, of_minutes = _advice([Point("run", 100, 30.0, 50.0, gain, p)], of_time).splitlines()
    assert pairs in of_pairs
    assert time in of_minutes
