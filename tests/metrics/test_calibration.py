"""Calibration: logistic regression, cross-validation and calibration error."""

from __future__ import annotations

import numpy as np
import pytest

from heed.core.errors import DataError
from heed.metrics.calibration import (
    RIDGE,
    Bin,
    LogisticRegression,
    area_under_curve,
    cross_validated,
    expected_calibration_error,
    reliability,
    sigmoid,
)

WEIGHTS, BIAS = np.array([1.5, -0.7, 0.0]), 0.3


def sample(size: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Features, outcomes, and the true probabilities that they were drawn with."""
    random = np.random.default_rng(seed)
    x = random.normal(size=(size, 3)) * [2.0, 0.5, 1.0] + [1.0, -3.0, 0.0]
    p = sigmoid((x - [1.0, -3.0, 0.0]) / [2.0, 0.5, 1.0] @ WEIGHTS + BIAS)
    return x, random.random(size) < p, p


def test_the_penalised_likelihood_has_gradient_zero_at_the_fit() -> None:
    x, good, _ = sample(300)
    fitted = LogisticRegression.fit(x, good)
    standard = (x - fitted.mean) / fitted.scale
    error = fitted.probabilities(x) - good
    assert error.sum() == pytest.approx(0, abs=1e-6)
    np.testing.assert_allclose(standard.T @ error + RIDGE * fitted.weights, 0, atol=1e-6)


def test_true_weights_are_recovered() -> None:
    x, good, p = sample(20_000)
    fitted = LogisticRegression.fit(x, good)
    np.testing.assert_allclose(fitted.weights, WEIGHTS, atol=0.06)
    assert fitted.bias == pytest.approx(BIAS, abs=0.06)
    assert np.abs(fitted.probabilities(x) - p).mean() < 0.01


def test_a_constant_feature_has_weight_zero() -> None:
    x, good, _ = sample(200)
    x[:, 1] = 7.0
    fitted = LogisticRegression.fit(x, good)
    assert fitted.weights[1] == pytest.approx(0, abs=1e-9)
    assert np.isfinite(fitted.probabilities(x)).all()


def test_perfectly_separable_data_has_finite_weights() -> None:
    x = np.linspace(-1, 1, 100)[:, None]
    fitted = LogisticRegression.fit(x, x[:, 0] > 0)
    assert 1 < fitted.weights[0] < 100
    assert fitted.probabilities(x)[[0, -1]] == pytest.approx([0, 1], abs=0.05)


def test_cross_validation_predicts_held_out_rows() -> None:
    """Pure noise with many features fits itself, and cross-validation knows it for what it is."""
    random = np.random.default_rng(1)
    x, good = random.normal(size=(120, 40)), random.random(120) < 0.5
    inside = LogisticRegression.fit(x, good).probabilities(x)
    outside = cross_validated(x, good)
    assert area_under_curve(inside, good) > 0.85
    assert 0.3 < area_under_curve(outside, good) < 0.7
    np.testing.assert_array_equal(outside, cross_validated(x, good))


def test_true_probabilities_are_calibrated_and_others_are_not() -> None:
    _, good, p = sample(20_000)
    assert expected_calibration_error(reliability(p, good)) < 0.01
    assert expected_calibration_error(reliability(p**3, good)) > 0.1


def test_bins_and_calibration_error_equal_those_by_hand() -> None:
    p, good = np.array([0.05, 0.12, 0.18, 0.95, 1.0]), np.array([False, True, False, True, True])
    bins = reliability(p, good)
    assert bins[0] == Bin(1, 0.05, 0.0)
    assert (bins[1].count, bins[1].probability, bins[1].share) == (2, pytest.approx(0.15), 0.5)
    assert (bins[2].count, bins[2].probability, bins[2].share) == (2, pytest.approx(0.975), 1.0)
    assert expected_calibration_error(bins) == pytest.approx(0.2 * 0.05 + 0.4 * 0.35 + 0.4 * 0.025)


def test_the_area_is_the_share_of_pairs_in_order() -> None:
    random = np.random.default_rng(2)
    p, good = random.integers(0, 6, 60) / 6, random.random(60) < 0.4
    pairs = [(a > b) + 0.5 * (a == b) for a in p[good] for b in p[~good]]
    assert area_under_curve(p, good) == pytest.approx(np.mean(pairs))


@pytest.mark.parametrize("good", [np.ones(100, bool), np.zeros(100, bool), np.arange(20) % 2 == 0])
def test_too_little_data_is_an_error(good: np.ndarray) -> None:
    with pytest.raises(DataError, match="too little data for calibration"):
        cross_validated(np.zeros((len(good), 1)), good)
