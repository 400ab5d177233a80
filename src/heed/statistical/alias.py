"""Alias table: draws from a discrete distribution in constant time (Walker 1977; Vose 1991).

Column i of n keeps its own number with probability `threshold[i]`, and gives `other[i]` otherwise. The columns and
thresholds are made such that number i is drawn with its probability.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_HALF = np.uint64(32)
_LOW = np.uint64(0xFFFF_FFFF)


class AliasTable:
    """Draws numbers below n in proportion to `weights` [n]. Raises ValueError unless one is positive, none negative."""

    def __init__(self, weights: NDArray[np.float64]) -> None:
        total = float(weights.sum())
        if not (total > 0 and (weights >= 0).all()):
            raise ValueError("the weights of a distribution must be at least 0, and one of them positive")
        scaled = (np.asarray(weights, dtype=np.float64) * (len(weights) / total)).tolist()
        other = list(range(len(scaled)))
        small = [i for i, weight in enumerate(scaled) if weight < 1]
        large = [i for i, weight in enumerate(scaled) if weight >= 1]
        while small and large:
            poor, rich = small.pop(), large[-1]
            other[poor] = rich
            scaled[rich] -= 1 - scaled[poor]
            if scaled[rich] < 1:
                small.append(large.pop())
        for i in (*small, *large):  # what is left is 1 up to rounding
            scaled[i] = 1.0
        self.other = np.array(other, dtype=np.int64)
        self.threshold = np.round(np.array(scaled) * 2.0**32).astype(np.uint64)

    def draw(self, raw: NDArray[np.uint64]) -> NDArray[np.int64]:
        """One number for each 64-bit random number of any shape: its upper half chooses the column."""
        columns = (((raw >> _HALF) * np.uint64(len(self.other))) >> _HALF).astype(np.int64)
        return np.where((raw & _LOW) < self.threshold[columns], columns, self.other[columns])
