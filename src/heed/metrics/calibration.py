"""Calibration: logistic regression from features of an output to the probability that it is good, and its error.

The regression is on standardised features, with a weak ridge penalty, by Newton's method, and is cross-validated. The
expected calibration error (Naeini et al. 2015; Guo et al. 2017, equation 3) is
Σ_b |b| / n · |share of good ones in b - mean probability in b| over ten bins of equal width.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from heed.core.errors import DataError

Floats = NDArray[np.float64]

NUM_BINS = 10
NUM_FOLDS = 5
RIDGE = 1.0
"""Inverse of the expected variance of a standardised weight; it matters only for few sentences."""


@dataclass(frozen=True)
class LogisticRegression:
    """P(good) = 1 / (1 + exp(-(bias + Σ_k weight_k (x_k - mean_k) / scale_k)))."""

    mean: Floats
    scale: Floats
    weights: Floats
    bias: float

    @staticmethod
    def fit(features: Floats, good: NDArray[np.bool_]) -> LogisticRegression:
        """Maximum likelihood with the ridge penalty RIDGE / 2 · Σ weight². [N, K] features, [N] outcomes."""
        mean, scale = features.mean(axis=0), features.std(axis=0)
        scale = np.where(scale > 1e-9, scale, 1.0)  # a constant feature is uninformative
        x = np.column_stack([np.ones(len(features)), (features - mean) / scale])
        ridge = np.diag([0.0] + [RIDGE] * features.shape[1])
        theta = np.zeros(x.shape[1])
        for _ in range(100):
            p = sigmoid(x @ theta)
            gradient = x.T @ (p - good) + ridge @ theta
            curvature = (x * (p * (1 - p))[:, None]).T @ x + ridge + 1e-9 * np.eye(len(theta))
            step = np.linalg.solve(curvature, gradient)
            theta -= step
            if np.abs(step).max() < 1e-10:
                break
        return LogisticRegression(mean, scale, theta[1:], float(theta[0]))

    def probabilities(self, features: Floats) -> Floats:
        """[N, K] -> [N]."""
        return sigmoid(self.bias + ((features - self.mean) / self.scale) @ self.weights)


def sigmoid(x: Floats) -> Floats:
    """1 / (1 + exp(-x)), without overflow."""
    return np.asarray(0.5 * (1 + np.tanh(0.5 * x)))


def cross_validated(features: Floats, good: NDArray[np.bool_]) -> Floats:
    """The probability of each sentence, by a regression on the others. Raises DataError for too few sentences."""
    if len(features) < 10 * NUM_FOLDS or good.all() or not good.any():
        raise DataError(
            f"too little data for calibration: {len(features)} sentences, {int(good.sum())} of them good. "
            f"Give at least {10 * NUM_FOLDS}, both good and bad."
        )
    fold = np.random.default_rng(0).permutation(len(features)) % NUM_FOLDS
    probabilities = np.empty(len(features))
    for number in range(NUM_FOLDS):
        held_out = fold == number
        regression = LogisticRegression.fit(features[~held_out], good[~held_out])
        probabilities[held_out] = regression.probabilities(features[held_out])
    return probabilities


@dataclass(frozen=True)
class Bin:
    """Outputs with about the same probability."""

    count: int
    probability: float
    """Their mean probability."""
    share: float
    """The share of good ones among them."""


def reliability(probabilities: Floats, good: NDArray[np.bool_] | Floats) -> list[Bin]:
    """The bins of equal width that are not empty, the least probable first."""
    place = np.minimum((probabilities * NUM_BINS).astype(int), NUM_BINS - 1)
    bins = [place == number for number in range(NUM_BINS)]
    return [Bin(int(b.sum()), float(probabilities[b].mean()), float(good[b].mean())) for b in bins if b.any()]


def expected_calibration_error(bins: list[Bin]) -> float:
    """The mean distance between predicted probability and share of good ones, 0 to 1."""
    total = sum(b.count for b in bins)
    return sum(b.count / total * abs(b.share - b.probability) for b in bins)


def area_under_curve(probabilities: Floats, good: NDArray[np.bool_]) -> float:
    """The probability that a good output is ranked above a bad one; ties count half (Mann & Whitney)."""
    order = probabilities.argsort()
    _, first, counts = np.unique(probabilities[order], return_index=True, return_counts=True)
    ranks = np.empty(len(order))
    ranks[order] = np.repeat(first + (counts + 1) / 2, counts)
    num_good, num_bad = int(good.sum()), int((~good).sum())
    return float((ranks[good].sum() - num_good * (num_good + 1) / 2) / (num_good * num_bad))
