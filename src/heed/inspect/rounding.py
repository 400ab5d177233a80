"""How exact are the numbers of a view? As exact as can be seen: files stay small, and JSON knows no infinity."""

from __future__ import annotations

import math


def probability(log_prob: float) -> float:
    """From a log-probability in nats, to four digits."""
    return float(f"{math.exp(log_prob):.4g}")


def rounded(number: float) -> float | None:
    """To four places; None where it is not finite."""
    return round(number, 4) if math.isfinite(number) else None
