"""BLEU of words from sums of counts (Papineni et al. 2002), for tuning: one reference, not smoothed.

The statistics of a sentence are the matches of n-grams of one to four words, the numbers of its n-grams, and the
length of its reference.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence

import numpy as np

from heed.statistical.predictor import Floats, Ints

LONGEST = 4
NUM_STATISTICS = 2 * LONGEST + 1


def statistics(output: Sequence[Hashable], reference: Sequence[Hashable]) -> Ints:
    """The statistics of an output, [9]."""
    counts = np.zeros(NUM_STATISTICS, dtype=np.int64)
    counts[-1] = len(reference)
    for n in range(1, LONGEST + 1):
        ours, theirs = _ngrams(output, n), _ngrams(reference, n)
        counts[n - 1] = (ours & theirs).total()
        counts[LONGEST + n - 1] = ours.total()
    return counts


def _ngrams(words: Sequence[Hashable], n: int) -> Counter[tuple[Hashable, ...]]:
    return Counter(zip(*(words[place:] for place in range(n)), strict=False))


def bleu(sums: Ints) -> Floats:
    """BLEU from 0 to 100 of sums of statistics, [..., 9] -> [...]."""
    matches, totals = sums[..., :LONGEST], sums[..., LONGEST:-1]
    with np.errstate(divide="ignore", invalid="ignore"):
        precision = np.log(matches / totals).mean(-1)
        penalty = np.minimum(0.0, 1.0 - sums[..., -1] / totals[..., 0])
        scores = 100.0 * np.exp(precision + penalty)
    return np.asarray(np.where(matches.min(-1) > 0, scores, 0.0))
