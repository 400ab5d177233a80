"""Array types and helpers of count-based models."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


def log(probabilities: Floats) -> Floats:
    """Natural logarithm; -inf, without a warning, for what is impossible."""
    with np.errstate(divide="ignore"):
        return np.log(probabilities)


def starts(lengths: Ints) -> Ints:
    """Where each of several parts of these lengths begins, and where the last one ends, [N] -> [N + 1]."""
    found = np.zeros(len(lengths) + 1, dtype=np.int64)
    np.cumsum(lengths, out=found[1:])
    return found


def members(parts: Ints, bounds: Ints) -> tuple[Ints, Ints]:
    """Everything that the given parts hold, part after part: for each member whose it is, and its place.

    Part p holds the places from `bounds[p]` to `bounds[p + 1]`; the first answer counts the given parts from 0.
    """
    begins = bounds[parts]
    lengths = bounds[parts + 1] - begins
    owners = np.repeat(np.arange(len(parts)), lengths)
    return owners, np.arange(len(owners)) + np.repeat(begins - starts(lengths)[:-1], lengths)
