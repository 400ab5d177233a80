"""n-best lists of translations with their features and statistics, from which weights are tuned."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from heed.statistical.phrases.bleu import NUM_STATISTICS, bleu
from heed.statistical.predictor import Bools, Floats, Ints


@dataclass(frozen=True, eq=False)
class Candidates:
    """The n-best lists of S sentences, padded to K candidates."""

    features: Floats
    """[S, K, F]"""
    statistics: Ints
    """[S, K, 9]: see `heed.statistical.phrases.bleu`."""
    exists: Bools
    """[S, K]"""

    @classmethod
    def of(cls, lists: Sequence[tuple[Floats, Ints]]) -> Candidates:
        """From the features [K, F] and statistics [K, 9] of each sentence."""
        longest = max(len(features) for features, _ in lists)
        features = np.zeros((len(lists), longest, lists[0][0].shape[1]))
        statistics = np.zeros((len(lists), longest, NUM_STATISTICS), dtype=np.int64)
        exists = np.zeros((len(lists), longest), dtype=np.bool_)
        for row, (of_row, counts) in enumerate(lists):
            features[row, : len(of_row)], statistics[row, : len(of_row)] = of_row, counts
            exists[row, : len(of_row)] = True
        return cls(features, statistics, exists)

    def bleu(self, weights: Floats) -> float:
        """BLEU of the best candidates."""
        scores = np.where(self.exists, self.features @ weights, -np.inf)
        best = scores.argmax(1)
        return float(bleu(self.statistics[np.arange(len(best)), best].sum(0)))
