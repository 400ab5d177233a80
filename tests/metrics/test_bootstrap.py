"""Bootstrap draws and intervals."""

import numpy as np
import pytest

from heed.metrics.significance import interval, resampled_totals


def test_every_draw_has_as_many_sentences_as_the_corpus():
    assert (resampled_totals(np.ones((7, 1)), samples=50) == 7).all()


def test_the_same_seed_gives_the_same_draws_and_another_seed_others():
    statistics = np.random.default_rng(0).normal(size=(20, 3))
    first = resampled_totals(statistics, 10, seed=1)
    np.testing.assert_array_equal(first, resampled_totals(statistics, 10, seed=1))
    assert not np.array_equal(first, resampled_totals(statistics, 10, seed=2))


def test_two_systems_are_resampled_alike():
    statistics = np.random.default_rng(0).integers(0, 9, size=(20, 2)).astype(float)
    np.testing.assert_array_equal(2 * resampled_totals(statistics, 10), resampled_totals(2 * statistics, 10))


def test_a_draw_is_the_sum_of_the_chosen_rows():
    statistics = np.arange(12.0).reshape(4, 3)
    random = np.random.default_rng(5)
    expected = [statistics[random.choice(4, size=4)].sum(axis=0) for _ in range(6)]
    np.testing.assert_array_equal(resampled_totals(statistics, 6, seed=5), expected)


def test_sentences_drawn_in_several_blocks_are_those_drawn_one_corpus_at_a_time(monkeypatch):
    statistics = np.random.default_rng(0).normal(size=(7, 2))
    monkeypatch.setattr("heed.metrics.significance._MOST_DRAWN", 30)
    random = np.random.default_rng(5)
    expected = [np.bincount(random.choice(7, 7), minlength=7) @ statistics for _ in range(10)]
    np.testing.assert_array_equal(resampled_totals(statistics, 10, seed=5), expected)


def test_the_interval_leaves_out_a_fortieth_at_each_end():
    assert interval(np.random.default_rng(0).permutation(80)) == (2.0, 77.0)
    assert interval([3.0]) == (3.0, 3.0)


def test_the_interval_of_a_mean_is_that_of_the_normal_distribution():
    values = np.random.default_rng(0).normal(size=(400, 1))
    low, high = interval(resampled_totals(values, 2000)[:, 0] / 400)
    half = 1.96 * values.std() / np.sqrt(400)
    assert low == pytest.approx(values.mean() - half, abs=0.2 * half)
    assert high == pytest.approx(values.mean() + half, abs=0.2 * half)
