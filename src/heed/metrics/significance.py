"""Bootstrap intervals and paired significance tests.

Bootstrap (Efron 1979; Koehn 2004 for translation): draw as many sentences as there are, with replacement, many times,
and score each draw. A corpus score is a function of statistics summed over sentences, so a draw costs one weighted sum
of the counts, and no text is scored twice; the same holds for the paired tests.

The tests are not sacreBLEU's (its draws are the oracle in the tests of heed), because the library takes its seed from
an environment variable, holds samples x sentences x statistics in memory at once, calls two equal systems significantly
different, and has a bootstrap that finds a difference between equally good systems twice as often as its p claims
(`paired_bootstrap`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

SEED = 12345
"""Seed of every interval and test; sacreBLEU's default, so that the numbers agree."""

_MOST_DRAWN = 2**17
"""Sentences drawn at a time."""


def resampled_totals(statistics: NDArray[np.float64], samples: int, seed: int = SEED) -> NDArray[np.float64]:
    """The summed statistics of each draw: [S sentences, K] -> [samples, K].

    The same seed and number of sentences draw the same sentences, whatever the statistics; paired tests rely on it.
    Memory does not grow with samples times sentences.
    """
    random = np.random.default_rng(seed)
    num_sentences = len(statistics)
    totals = np.empty((samples, statistics.shape[1]))
    at_once = max(_MOST_DRAWN // max(num_sentences, 1), 1)  # a call takes longer than drawing a hundred sentences
    for first in range(0, samples, at_once):
        some = totals[first : first + at_once]
        for total, drawn in zip(some, random.integers(num_sentences, size=(len(some), num_sentences)), strict=True):
            total[:] = np.bincount(drawn, minlength=num_sentences) @ statistics
    return totals


def interval(scores: Sequence[float] | NDArray[np.float64]) -> tuple[float, float]:
    """The ends of the 95 % interval: the range without the lowest and the highest fortieth of the draws."""
    ordered = np.sort(np.asarray(scores, dtype=np.float64))
    cut = len(ordered) // 40
    return float(ordered[cut]), float(ordered[-1 - cut])


BOOTSTRAP_DRAWS, RANDOMISATION_DRAWS = 1000, 10_000

FEWEST_ROWS = 20
"""With fewer sentences or blocks a bootstrap draws the same ones too often: of a thousand pairs of equal systems 23 %
have p < 0.05 with 3 sentences, 15 % with 5, 9 % with 10 and with 20, 6 % with 50 (`shares_below_5_percent` in the
tests); by randomisation never more than 5 %."""


class Statistics(Protocol):
    """The counts of one system for each sentence, and the score of their sum."""

    @property
    def rows(self) -> NDArray[np.float64]:
        """[S sentences, K]."""

    def value(self, totals: NDArray[np.float64]) -> float:
        """The score of the summed statistics [K]."""


def values(statistics: Statistics, totals: NDArray[np.float64]) -> NDArray[np.float64]:
    """The score of each draw: [samples, K] -> [samples]. Equal draws, of which few sentences have many, cost one."""
    keys = [total.tobytes() for total in totals]
    known = {key: statistics.value(total) for key, total in dict(zip(keys, totals, strict=True)).items()}
    return np.array([known[key] for key in keys])


@dataclass(frozen=True)
class Comparison:
    """The difference between a system and the first one, and how likely one so large is by chance."""

    difference: float
    p_bootstrap: float | None
    """Two-sided paired bootstrap (Koehn 2004); None for fewer than `FEWEST_ROWS` sentences or blocks."""
    p_randomisation: float | None
    """Approximate randomisation (Riezler & Maxwell 2005); None if outputs of two systems cannot be exchanged."""


def compare(first: Statistics, other: Statistics) -> Comparison:
    """Both tests of one system against the first, on the same sentences."""
    p_bootstrap = paired_bootstrap(first, other)[1] if len(first.rows) >= FEWEST_ROWS else None
    difference, p_randomisation = paired_randomisation(first, other)
    return Comparison(difference, p_bootstrap, p_randomisation)


def paired_bootstrap(
    a: Statistics, b: Statistics, samples: int = BOOTSTRAP_DRAWS, seed: int = SEED
) -> tuple[float, float]:
    """The score of b minus that of a, and the two-sided p value by the choice of sentences.

    p is the share of draws, the same for both systems (Koehn 2004), whose difference is at least as far from the mean
    difference as the observed one is from 0: the shift method (Noreen 1989; Riezler & Maxwell 2005, section 3). Moses
    and sacreBLEU drop the sign before they take the mean, which keeps one side of the distribution and about halves p:
    of equally good systems, one pair in ten has p < 0.05 by that method and one in twenty by this.
    """
    delta = _difference(a, b, a.rows.sum(axis=0), b.rows.sum(axis=0))
    drawn_a, drawn_b = (values(each, resampled_totals(each.rows, samples, seed)) for each in (a, b))
    return delta, shifted_p_value(drawn_b - drawn_a, delta)


def shifted_p_value(differences: NDArray[np.float64], delta: float) -> float:
    """The p value of a difference, given those of bootstrap draws; see `paired_bootstrap`."""
    return _p_value(np.abs(differences - differences.mean()), delta)


def paired_randomisation(
    a: Statistics, b: Statistics, samples: int = RANDOMISATION_DRAWS, seed: int = SEED
) -> tuple[float, float]:
    """The score of b minus that of a, and the probability of a difference so large if the systems were equal.

    Approximate randomisation (Noreen 1989; Riezler & Maxwell 2005): if they were equal, it would not matter which of
    them translated which sentence, so the sentences are swapped at random.
    """
    total_a, total_b, apart = a.rows.sum(axis=0), b.rows.sum(axis=0), a.rows - b.rows
    random = np.random.default_rng(seed)
    moved = np.empty((samples, len(total_a)))
    for each in moved:
        each[:] = random.integers(2, size=len(apart), dtype=bool) @ apart
    sizes = np.abs(values(b, total_b + moved) - values(a, total_a - moved))
    delta = _difference(a, b, total_a, total_b)
    return delta, _p_value(sizes, delta)


def _difference(a: Statistics, b: Statistics, totals_a: NDArray[np.float64], totals_b: NDArray[np.float64]) -> float:
    return b.value(totals_b) - a.value(totals_a)


def _p_value(sizes: NDArray[np.float64], delta: float) -> float:
    """The share of draws at least as extreme as `delta`, which itself counts as one.

    sacreBLEU counts only more extreme draws, so that two equal systems differ with p = 1/1001 instead of 1. The margin
    is for equal differences of edits, which rounding makes unequal as scores.
    """
    return float((np.sum(sizes >= abs(delta) - 1e-9) + 1) / (len(sizes) + 1))
