"""Is one system really better than another, or did the choice of sentences make it so?

Both tests need only what a metric counted in each sentence, so no text is scored twice. sacreBLEU's own draws are the
oracle. The tests are ours because the library takes its seed from an environment variable, holds samples x sentences x
statistics in memory at once, calls two equal systems significantly different, and has a bootstrap that finds a
difference between equally good systems twice as often as its p says (`paired_bootstrap`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from heed.metrics.bootstrap import SEED, resampled_totals

BOOTSTRAP_DRAWS, RANDOMISATION_DRAWS = 1000, 10_000

FEWEST_ROWS = 20
"""Of fewer sentences or blocks a bootstrap draws the same ones too often: of a thousand pairs of equal systems 23 %
have p < 0.05 with 3, 15 % with 5, 9 % with 10 and with 20, 6 % with 50 (`shares_below_5_percent` of the tests); by
randomisation never more than 5 %."""


class Statistics(Protocol):
    """What was counted in each sentence of one system, and the score that follows from sums of such counts."""

    @property
    def rows(self) -> NDArray[np.float64]:
        """[S sentences, K]."""
        ...

    def value(self, totals: NDArray[np.float64]) -> float:
        """The score of the summed statistics [K]."""
        ...


@dataclass(frozen=True)
class Comparison:
    """How much higher a system scores than the first, and how likely so large a difference is by chance alone."""

    difference: float
    p_bootstrap: float | None
    """Paired bootstrap (Koehn 2004), of both sides; None for fewer than `FEWEST_ROWS` sentences or blocks."""
    p_randomisation: float
    """Approximate randomisation (Riezler & Maxwell 2005)."""


def compare(first: Statistics, other: Statistics) -> Comparison:
    """Both tests of one system against the first, on the same sentences."""
    p_bootstrap = paired_bootstrap(first, other)[1] if len(first.rows) >= FEWEST_ROWS else None
    difference, p_randomisation = paired_randomisation(first, other)
    return Comparison(difference, p_bootstrap, p_randomisation)


def paired_bootstrap(
    a: Statistics, b: Statistics, samples: int = BOOTSTRAP_DRAWS, seed: int = SEED
) -> tuple[float, float]:
    """How much higher b scores than a, and the probability of so large a difference by the choice of sentences.

    Over the same draws for both systems (Koehn 2004), how often the difference is at least as far from its mean as the
    one observed is from none: the shift method (Noreen 1989; Riezler & Maxwell 2005, section 3). Moses and sacreBLEU
    drop the sign before they take the mean, which leaves one side of the distribution and about half the p: of systems
    that are equally good, one pair in ten has p < 0.05 by theirs and one in twenty by this.
    """
    delta = _difference(a, b, a.rows.sum(axis=0), b.rows.sum(axis=0))
    pairs = zip(resampled_totals(a.rows, samples, seed), resampled_totals(b.rows, samples, seed), strict=True)
    differences = np.array([_difference(a, b, *pair) for pair in pairs])
    return delta, _p_value(np.abs(differences - differences.mean()), delta)


def paired_randomisation(
    a: Statistics, b: Statistics, samples: int = RANDOMISATION_DRAWS, seed: int = SEED
) -> tuple[float, float]:
    """How much higher b scores than a, and the probability of so large a difference were the systems the same.

    Approximate randomisation (Noreen 1989; Riezler & Maxwell 2005): were they the same, it would not matter which
    of the two translated which sentence; so swap at random and count.
    """
    total_a, total_b, apart = a.rows.sum(axis=0), b.rows.sum(axis=0), a.rows - b.rows
    random = np.random.default_rng(seed)
    sizes = np.empty(samples)
    for i in range(samples):
        moved = random.integers(2, size=len(apart), dtype=bool) @ apart
        sizes[i] = abs(_difference(a, b, total_a - moved, total_b + moved))
    delta = _difference(a, b, total_a, total_b)
    return delta, _p_value(sizes, delta)


def _difference(a: Statistics, b: Statistics, totals_a: NDArray[np.float64], totals_b: NDArray[np.float64]) -> float:
    return b.value(totals_b) - a.value(totals_a)


def _p_value(sizes: NDArray[np.float64], delta: float) -> float:
    """The share of draws at least as extreme as `delta`, which itself counts as one.

    "At least", where sacreBLEU has "more than": two equal systems then differ with probability 1, not 1/1001.
    The margin is for equal differences of edits, which rounding makes unequal as scores.
    """
    return float((np.sum(sizes >= abs(delta) - 1e-9) + 1) / (len(sizes) + 1))
