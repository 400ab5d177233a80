"""How much would a score move with another test set of the same kind?

Bootstrap (Efron 1979; Koehn 2004 for translation): draw as many sentences as there are, with replacement, many
times, and score each draw. A corpus score is a function of statistics summed over sentences, so a draw costs one
weighted sum of numbers that exist already; nothing is scored twice.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

SEED = 12345
"""The seed of every interval and test; sacreBLEU's default, so that its numbers come out."""


def resampled_totals(statistics: NDArray[np.float64], samples: int, seed: int = SEED) -> NDArray[np.float64]:
    """The summed statistics of each draw: [S sentences, K] -> [samples, K].

    The same seed and number of sentences draw the same sentences, whatever the statistics: tests between two
    systems rely on it. Memory does not grow with samples times sentences.
    """
    random = np.random.default_rng(seed)
    num_sentences = len(statistics)
    totals = np.empty((samples, statistics.shape[1]))
    for total in totals:
        drawn = random.choice(num_sentences, size=num_sentences)
        total[:] = np.bincount(drawn, minlength=num_sentences) @ statistics
    return totals


def interval(scores: Sequence[float] | NDArray[np.float64]) -> tuple[float, float]:
    """The ends of the 95 % interval: what is left without the lowest and the highest fortieth of the draws."""
    ordered = np.sort(np.asarray(scores, dtype=np.float64))
    cut = len(ordered) // 40
    return float(ordered[cut]), float(ordered[-1 - cut])
