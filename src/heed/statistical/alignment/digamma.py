"""Digamma function ψ(x) = d log Γ(x) / dx, by its recurrence and asymptotic series."""

from __future__ import annotations

import numpy as np

from heed.statistical.predictor import Floats

_FAR = 6
"""From here on the series below has an error of less than 1e-10."""


def digamma(x: Floats) -> Floats:
    """ψ of positive numbers of any shape: ψ(x) = ψ(x + 6) - Σ_k 1 / (x + k), and the series of ψ(x + 6)."""
    before = sum(1.0 / (x + k) for k in range(_FAR))
    far = x + _FAR
    squared = 1.0 / (far * far)
    series = squared * (1 / 12 - squared * (1 / 120 - squared * (1 / 252 - squared * (1 / 240 - squared / 132))))
    return np.log(far) - 0.5 / far - series - before
