"""Learning rate schedules against their formulas."""

from __future__ import annotations

import math

import pytest

from heed.training.config import TrainingConfig
from heed.training.schedules import SCHEDULES


def rate(name: str, step: int, lr: float = 0.5, warmup: int = 400, total: int = 2000, d_model: int = 512) -> float:
    config = TrainingConfig(lr=lr, warmup_steps=warmup, max_steps=total)
    return SCHEDULES[name](config, d_model)(step)


@pytest.mark.parametrize(
    ("step", "by_hand"),
    [
        (1, 512**-0.5 * 4000**-1.5),
        (4000, 512**-0.5 * 4000**-0.5),
        (16000, 512**-0.5 * 4000**-0.5 / 2),  # four times the updates, half the rate
    ],
)
def test_noam_is_the_published_formula(step: int, by_hand: float) -> None:
    assert rate("noam", step, lr=1.0, warmup=4000) == pytest.approx(by_hand, rel=1e-12)


def test_the_rate_of_noam_is_a_factor_on_the_published_one() -> None:
    assert rate("noam", 123, lr=2.0) == pytest.approx(2 * rate("noam", 123, lr=1.0))


@pytest.mark.parametrize(("step", "share"), [(1, 1 / 400), (200, 0.5), (400, 1.0), (1600, 0.5), (3600, 1 / 3)])
def test_inverse_sqrt_rises_linearly_and_falls_with_the_square_root(step: int, share: float) -> None:
    assert rate("inverse_sqrt", step) == pytest.approx(0.5 * share)


@pytest.mark.parametrize(
    ("step", "share"),
    [(100, 0.25), (400, 1.0), (800, (1 + math.cos(math.pi / 4)) / 2), (1200, 0.5), (2000, 0.0), (9999, 0.0)],
)
def test_cosine_falls_along_half_a_cosine_to_zero_at_max_steps(step: int, share: float) -> None:
    assert rate("cosine", step) == pytest.approx(0.5 * share, abs=1e-12)


@pytest.mark.parametrize(("step", "share"), [(100, 0.25), (400, 1.0), (401, 1.0), (100_000, 1.0)])
def test_constant_stays_at_its_peak(step: int, share: float) -> None:
    assert rate("constant", step) == pytest.approx(0.5 * share)


@pytest.mark.parametrize("name", SCHEDULES)
def test_a_training_without_warm_up_has_a_positive_finite_first_rate(name: str) -> None:
    assert 0 < rate(name, 1, warmup=0) <= 0.5


def test_cosine_with_a_warm_up_as_long_as_the_training_does_not_divide_by_zero() -> None:
    assert rate("cosine", 2000, warmup=2000, total=2000) == pytest.approx(0.5)


@pytest.mark.parametrize(("epoch", "share"), [(0, 1), (3, 1), (4, 1 / 2), (5, 1 / 4), (12, 1 / 512)])
def test_the_rate_of_zaremba_et_al_is_halved_before_each_epoch_after_the_fourth(epoch: int, share: float) -> None:
    config = TrainingConfig(lr=1.0, warmup_steps=0, lr_decay=2.0, decay_after=4)
    assert SCHEDULES["epochs"](config, 200)(999, epoch) == pytest.approx(share)


def test_a_rate_that_is_halved_forever_becomes_zero() -> None:
    config = TrainingConfig(lr=1.0, warmup_steps=0, lr_decay=2.0, decay_after=4)
    assert SCHEDULES["epochs"](config, 200)(999, 5000) == 0.0
