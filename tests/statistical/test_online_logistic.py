"""Proper learners and Bayesian averaging in online logistic regression: definitions, bounds, and rates."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heed.statistical.online_logistic import (
    Quadrature,
    counts_of,
    gradient_losses,
    kakade_ng_bound,
    leader_losses,
    losses,
    opposed,
    well_specified,
)

LINE, PLANE = Quadrature.gaussian(1, 3.0, 4001), Quadrature.gaussian(2, 3.0, 161)


def disc(radius: float, step: float) -> np.ndarray:
    """A grid of the disc."""
    axis = np.arange(-radius, radius + step / 2, step)
    points = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
    return points[(points**2).sum(axis=1) <= radius**2 * 1.0001]


def test_the_prior_is_normalised_and_the_first_prediction_is_fair() -> None:
    for quadrature in (LINE, PLANE):
        kinds = np.eye(quadrature.points.shape[1])
        assert np.exp(quadrature.log_prior).sum() == pytest.approx(1)
        assert quadrature.predictive_loss(kinds, np.zeros(len(kinds), int), 0) == pytest.approx(math.log(2))


def test_predictive_losses_sum_to_the_cumulative_one_and_equal_the_posterior_mixture() -> None:
    kinds = np.array([[1.0], [-0.4], [-1.0]])
    sequence = np.array([0, 0, 1, 0, 2, 0])
    counts = counts_of(sequence, 3)
    each = [LINE.predictive_loss(kinds, counts[t], kind) for t, kind in enumerate(sequence)]
    assert sum(each) == pytest.approx(LINE.cumulative_loss(kinds, counts[-1]))
    posterior = np.exp(LINE.log_prior - counts[5] @ losses(LINE.points, kinds))
    mixture = (posterior / posterior.sum()) @ (1 / (1 + np.exp(-LINE.points[:, 0])))
    assert each[5] == pytest.approx(-math.log(mixture))


@given(
    st.integers(1, 2), st.floats(0, 2 * math.pi), st.lists(st.floats(-1, 1), min_size=1, max_size=4),
    st.lists(st.integers(0, 300), min_size=4, max_size=4),
)  # fmt: skip
@settings(max_examples=60)
def test_the_bound_of_kakade_and_ng_holds_on_every_sequence(
    dimension: int, angle: float, sizes: list[float], counts: list[int]
) -> None:
    """Against every weight vector of the grid; the order of a sequence does not matter."""
    quadrature = LINE if dimension == 1 else PLANE
    turns = angle * np.arange(1, len(sizes) + 1)
    directions = np.stack([np.cos(turns), np.sin(turns)], axis=1) if dimension == 2 else np.ones((len(sizes), 1))
    kinds, number = directions * np.array(sizes)[:, None], np.array(counts[: len(sizes)])
    of_bayes = quadrature.cumulative_loss(kinds, number)
    of_weights = number @ losses(quadrature.points, kinds)
    growth = kakade_ng_bound(np.zeros(dimension), int(number.sum()), 3.0)
    bounds = of_weights + (quadrature.points**2).sum(axis=1) / (2 * 3.0**2) + growth
    assert of_bayes <= bounds.min() + 1e-6


@pytest.mark.parametrize("source", [opposed(20.0, 8.0, 0.03), well_specified(np.array([4.0, -2.0]))])
def test_the_bound_holds_on_the_sequences_of_the_plot(source) -> None:  # type: ignore[no-untyped-def]
    quadrature = Quadrature.gaussian(2, 20.0, 401, reach=5)
    counts = counts_of(source.draw(2000, seed=1), len(source.kinds))
    assert (np.linalg.norm(source.kinds, axis=1) <= 1 + 1e-12).all() and source.shares.sum() == pytest.approx(1)
    for number in (10, 200, 2000):
        total = counts[number] @ losses(quadrature.points, source.kinds)
        best = quadrature.points[total.argmin()]
        allowed = total.min() + kakade_ng_bound(best, number, 20.0)
        assert quadrature.cumulative_loss(source.kinds, counts[number]) <= allowed


def test_the_leader_is_the_best_on_the_past_and_gradient_descent_stays_in_the_ball() -> None:
    points, source = disc(5.0, 0.5), well_specified(np.array([2.0, 1.0]), 6)
    sequence = source.draw(40, seed=2)
    table, counts = losses(points, source.kinds), counts_of(sequence, len(source.kinds))
    for penalty in (0.0, 0.3):
        found = leader_losses(points, source.kinds, sequence, penalty)
        objective = counts[30] @ table + penalty * (points**2).sum(axis=1) / 2
        assert found[30] == table[sequence[30], objective.argmin()] and found[0] == pytest.approx(math.log(2))
    steady = gradient_losses(np.array([[1.0, 0.0]]), np.zeros(50, int), radius=3.0)
    assert steady[0] == pytest.approx(math.log(2)) and steady[-1] == pytest.approx(math.log1p(math.exp(-3)))


def test_proper_learners_pay_the_root_of_the_length_where_averaging_pays_nothing() -> None:
    radius = 40.0
    source, points = opposed(radius, 12.0, 0.02), disc(radius, 1.0)
    number, regrets = 4000, []
    quadrature = Quadrature.gaussian(2, radius, 301, reach=4)
    for seed in range(4):
        sequence = source.draw(number, seed)
        counts = counts_of(sequence, 3)[-1]
        best = (counts @ losses(points, source.kinds)).min()
        leader = leader_losses(points, source.kinds, sequence).sum() - best
        gradient = gradient_losses(source.kinds, sequence, radius).sum() - best
        regrets.append((leader, gradient, quadrature.cumulative_loss(source.kinds, counts) - best))
    leader, gradient, bayes = np.mean(regrets, axis=0)
    assert min(leader, gradient) > 0.4 * math.sqrt(number) and bayes < kakade_ng_bound(np.zeros(2), number, radius)
