"""Measures of word vectors: the loss that they are trained with, and rank correlation with human judgements."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from heed.metrics.metric import Metric
from heed.metrics.significance import SEED, interval

Floats = NDArray[np.float64]


class NegativeSampling(Metric):
    """The negative sampling loss of each predicted word, with its negatives (nats)."""

    title = "negative sampling loss per word"
    higher_is_better = False
    needs = "vectors"


def ranks(values: Floats) -> Floats:
    """The rank of each value [N] from 1, equal values sharing the mean of theirs."""
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    shared: Floats = (ends - (counts - 1) / 2)[place]
    return shared


def spearman(a: Floats, b: Floats) -> float:
    """Spearman's rank correlation: the correlation of the ranks. NaN if all values of a side are equal."""
    of_a, of_b = ranks(a) - (len(a) + 1) / 2, ranks(b) - (len(b) + 1) / 2
    scale = np.sqrt((of_a @ of_a) * (of_b @ of_b))
    return float(of_a @ of_b / scale) if scale else float("nan")


def resampled_spearman(judged: Floats, systems: Floats, draws: int) -> Floats:
    """The correlation of each system [K, N] with the judgements [N] in each bootstrap draw of the pairs: [draws, K]."""
    random = np.random.default_rng(SEED)
    number = len(judged)
    drawn = [random.choice(number, size=number) for _ in range(draws)]
    return np.array([[spearman(judged[rows], system[rows]) for system in systems] for rows in drawn])


def spearman_interval(values: Floats) -> tuple[float, float] | tuple[None, None]:
    """The 95 % interval of the correlations of bootstrap draws; none if they are undefined."""
    return interval(values[np.isfinite(values)]) if np.isfinite(values).any() else (None, None)
