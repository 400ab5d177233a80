"""Training curves, with and without matplotlib."""

from __future__ import annotations

import math
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from heed.core.errors import UsageError
from heed.report.curves import draw_curves, draw_runs, sparkline

TRAIN = [{"seconds": 60.0 * i, "step": i, "loss": 5.0 / i, "perplexity": 90.0 / i} for i in range(1, 20)]
VALID = [
    {"seconds": 300.0 * i, "step": 5 * i, "bleu": 9.0 * i, "chrf": 15.0 * i, "perplexity": 40.0 / i, "best": i < 3}
    for i in range(1, 4)
]


def test_a_picture_is_written_with_matplotlib(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    assert draw_curves(tmp_path, TRAIN, VALID) == "![curves](curves.png)"
    assert (tmp_path / "curves.png").read_bytes().startswith(b"\x89PNG")
    assert "matplotlib.pyplot" not in sys.modules  # it would look for a screen


def test_the_picture_shows_loss_scores_and_the_update_of_the_kept_weights(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    figure = pytest.importorskip("matplotlib.figure").Figure
    drawn: list[Any] = []
    monkeypatch.setattr(figure, "savefig", lambda self, file, **how: drawn.append(self))
    draw_curves(tmp_path, TRAIN, VALID)
    loss, scores = drawn[0].axes
    lines = {line.get_label(): line for line in (*loss.lines, *scores.lines)}
    assert list(lines["training, with dropout"].get_xdata()) == list(range(1, 20))
    assert lines["training, with dropout"].get_ydata()[0] == math.log(90)
    assert list(lines["BLEU"].get_xdata()) == [5, 10, 15]
    assert list(lines["chrF2"].get_ydata()) == [15, 30, 45]
    assert list(lines["weights kept"].get_xdata()) == [10, 10]
    assert [axes.get_xlabel() for axes in (loss, scores)] == ["minutes of training"] * 2


def test_a_long_training_is_drawn_in_hours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    figure = pytest.importorskip("matplotlib.figure").Figure
    drawn: list[Any] = []
    monkeypatch.setattr(figure, "savefig", lambda self, file, **how: drawn.append(self))
    long = [[{**event, "seconds": 40 * event["seconds"]} for event in events] for events in (TRAIN, VALID)]
    draw_curves(tmp_path, *long)
    scores = drawn[0].axes[1]
    assert scores.get_xlabel() == "hours of training"
    assert list(scores.lines[0].get_xdata()) == pytest.approx([10 / 3, 20 / 3, 10])


def test_runs_without_these_scores_are_not_drawn_as_an_empty_plot(tmp_path: Path) -> None:
    accuracies = [{"seconds": 1.0, "accuracy": 50.0}, {"seconds": 2.0, "accuracy": 60.0}]
    with pytest.raises(UsageError, match="none of these runs was validated by perplexity, BLEU or chrF2"):
        draw_runs(tmp_path / "curves.png", {"a": accuracies})
    assert not (tmp_path / "curves.png").exists()


def test_a_language_model_has_one_curve(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    figure = pytest.importorskip("matplotlib.figure").Figure
    drawn: list[Any] = []
    monkeypatch.setattr(figure, "savefig", lambda self, file, **how: drawn.append(self))
    draw_curves(tmp_path, TRAIN, [{**event, "bleu": None, "chrf": None} for event in VALID])
    assert len(drawn[0].axes) == 1


def test_the_perplexity_of_training_text_is_drawn_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    figure = pytest.importorskip("matplotlib.figure").Figure
    drawn: list[Any] = []
    monkeypatch.setattr(figure, "savefig", lambda self, file, **how: drawn.append(self))
    both = [{**event, "training_perplexity": event["perplexity"] / 2} for event in VALID]
    draw_curves(tmp_path, TRAIN, both)
    lines = {line.get_label(): line.get_ydata() for line in drawn[0].axes[0].lines}
    gap = [a - b for a, b in zip(lines["validation"], lines["training, as validated"], strict=True)]
    assert gap == pytest.approx([math.log(2)] * 3)


def test_without_matplotlib_the_curves_are_sparklines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    text = draw_curves(tmp_path, TRAIN, VALID)
    assert re.search(r"training loss +█[▁-█]+▁  5 → 0.263", text)
    assert re.search(r"validation BLEU +(▁▅█|▁▄█)  9 → 27", text)
    assert "pip install matplotlib" in text
    assert not (tmp_path / "curves.png").exists()


def test_a_curve_needs_two_points(tmp_path: Path) -> None:
    assert draw_curves(tmp_path, TRAIN[:1], VALID) == draw_curves(tmp_path, TRAIN, VALID[:1]) == ""


def test_a_validation_without_a_finite_number_leaves_a_gap(tmp_path: Path) -> None:
    broken = [{**VALID[0], "perplexity": None}, *VALID[1:]]
    assert draw_curves(tmp_path, [{**TRAIN[0], "loss": None, "perplexity": None}, *TRAIN[1:]], broken)


def test_a_sparkline_follows_its_values() -> None:
    assert sparkline([0.0, 7.0, 3.5]) == "▁█▅"
    assert sparkline([]) == ""
    assert sparkline([2.0, 2.0]) == "▁▁"
    assert [len(sparkline([1.0] * number)) for number in (60, 61, 119, 1200)] == [60, 31, 60, 60]


def test_one_plot_shows_the_validation_curves_of_several_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    figure = pytest.importorskip("matplotlib.figure").Figure
    drawn: list[Any] = []
    monkeypatch.setattr(figure, "savefig", lambda self, file, **how: drawn.append(self))
    counted = [{"seconds": 1.0, "step": 1, "perplexity": 30.0}]
    draw_runs(tmp_path / "runs.png", {"runs/a": VALID, "runs/b": counted, "runs/c": []})
    loss, bleu, chrf = drawn[0].axes
    assert [line.get_label() for line in loss.lines] == ["runs/a", "runs/b", "runs/c"]
    assert list(loss.lines[1].get_ydata()) == [math.log(30)]
    assert list(bleu.lines[0].get_ydata()) == [9, 18, 27]
    assert list(chrf.lines[1].get_ydata()) == []
