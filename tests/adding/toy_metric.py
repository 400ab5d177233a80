"""A metric from outside heed: the share of outputs that are longer than their reference."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from heed.metrics.metric import OutputMetric, Rows


@dataclass(frozen=True)
class TooLong(OutputMetric):
    """Percentage of outputs with more characters than their reference; 0 is best."""

    name = "too_long"
    title = "too long"
    higher_is_better = False

    def counts(self, outputs: Sequence[str], references: Sequence[str]) -> Rows:
        return [[float(len(a) > len(b)), 1.0] for a, b in zip(outputs, references, strict=True)]

    def value(self, totals: NDArray[np.float64]) -> float:
        return float(100 * totals[0] / totals[1])
