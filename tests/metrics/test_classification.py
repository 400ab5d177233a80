"""Tests of the scores of labels and numbers, with known answers."""

from __future__ import annotations

import math

import numpy as np
import pytest

from heed.metrics import METRICS
from heed.metrics.classification import Confusion, ExactMatch, MacroF1, MicroF1, Spearman, labels_of
from heed.metrics.metric import OutputMetric

TRUE = ["a", "a", "a", "b", "b", "c"]
GIVEN = ["a", "a", "b", "b", "a", "d"]


def score(name: str, outputs: list[str], references: list[str]) -> float:
    metric = METRICS[name]()
    assert isinstance(metric, OutputMetric)
    return metric.score(outputs, references).value


def test_scores_of_single_labels() -> None:
    assert score("accuracy", GIVEN, TRUE) == pytest.approx(50)
    # F1 of a: 2·2 / (3 + 3), of b: 2·1 / (2 + 2), of c: 0; d is in no reference
    assert score("macro_f1", GIVEN, TRUE) == pytest.approx(100 * (4 / 6 + 2 / 4 + 0) / 3)
    assert score("micro_f1", GIVEN, TRUE) == pytest.approx(50)


def test_macro_f1_is_that_of_scikit_learn_for_the_labels_of_the_references() -> None:
    metrics = pytest.importorskip("sklearn.metrics", reason="scikit-learn is not installed")
    options = {"average": "macro", "zero_division": 0}
    expected = metrics.f1_score(TRUE, GIVEN, labels=sorted(set(TRUE)), **options)
    assert score("macro_f1", GIVEN, TRUE) == pytest.approx(100 * expected)
    assert metrics.f1_score(TRUE, GIVEN, **options) < expected, "d, which no reference has, counts as 0"


def test_scores_of_several_labels() -> None:
    true, given = ['["x", "y"]', "[]", '["y"]'], ['["y", "x"]', '["x"]', '["y", "z"]']
    assert labels_of(true[0]) == ("x", "y")
    assert ExactMatch().score(given, true).value == pytest.approx(100 / 3)
    assert MicroF1().score(given, true).value == pytest.approx(100 * 2 * 3 / (5 + 3))
    assert MacroF1().score(given, true).value == pytest.approx(100 * (2 / 3 + 1) / 2)


def test_counts_take_no_more_memory_than_their_score_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    true, given = ['["x", "y"]', "[]", '["y"]'], ['["y", "x"]', '["x"]', '["y", "z"]']
    assert MicroF1().statistics(given, true).rows.tolist() == [[2, 2, 2], [0, 1, 0], [1, 2, 1]]
    counts = MacroF1().counts(given, true)
    monkeypatch.setattr(MacroF1, "counts", lambda *_: counts)
    assert MacroF1().statistics(given, true).rows is counts


def test_scores_of_numbers() -> None:
    true, given = ["1", "2", "3", "4"], ["1.5", "2", "10", "4"]
    expected = np.corrcoef([1, 2, 3, 4], [1.5, 2, 10, 4])[0, 1]
    assert score("pearson", given, true) == pytest.approx(100 * expected)
    assert score("spearman", given, true) == pytest.approx(80)
    assert score("spearman", ["5", "5", "5", "9"], true) == pytest.approx(100 * math.sqrt(0.6))
    assert score("mean_absolute_error", given, true) == pytest.approx(7.5 / 4)
    assert score("pearson", ["2", "2", "2", "2"], true) == score("pearson", ["0.1"] * 4, true) == 0
    small = [f"{text}e-7" for text in given]
    assert score("pearson", small, [f"{text}e-7" for text in true]) == pytest.approx(100 * expected)


def test_ranks_of_a_part_are_those_among_its_texts() -> None:
    true, given = ["1", "2", "3", "4", "5", "6"], ["1.5", "9", "10", "4", "4", "2"]
    chosen = np.array([True, False, True, True, True, False])
    part = Spearman().statistics(given, true).select(chosen)
    alone = Spearman().statistics(*([text for text, is_in in zip(side, chosen, strict=True) if is_in]
                                    for side in (given, true)))  # fmt: skip
    np.testing.assert_allclose(part.rows, alone.rows)


def test_equal_systems_have_statistics_of_one_shape() -> None:
    first, second = MacroF1().statistics(GIVEN, TRUE), MacroF1().statistics(["z"] * 6, TRUE)
    assert first.rows.shape == second.rows.shape


def test_confusions() -> None:
    confusion = Confusion.of(GIVEN, TRUE)
    row = next(row for row in confusion.rows if row["label"] == "a")
    assert (row["number"], row["precision"], row["recall"]) == (3, pytest.approx(200 / 3), pytest.approx(200 / 3))
    assert confusion.largest() == [("a", "b", 1), ("b", "a", 1), ("c", "d", 1)]
