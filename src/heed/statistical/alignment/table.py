"""Table of distributions whose entries are numbered, so that a model can list those that are factors of an alignment.

Every entry belongs to a distribution (its group), and to a kind of entries that are alike in all groups. With
smoothing, each distribution has a Dirichlet prior whose mean is that of its kinds, so a rare word has the fertilities
of an average word. `NOTHING` is the number of the factor 1.
"""

from __future__ import annotations

from typing import Self

import numpy as np

from heed.statistical.alignment.smoothing import Smoothing
from heed.statistical.predictor import Floats, Ints

NOTHING = -1
STRENGTH = 2.0
"""Counts that the prior adds to each distribution, if the smoothing is not `none`."""
_LEAST = 1e-300


class Table:
    """E probabilities, in groups that sum to one."""

    def __init__(self, probs: Floats, groups: Ints, kinds: Ints, smoothing: Smoothing) -> None:
        """`probs`, `groups` and `kinds`: [E]."""
        self.probs = probs
        self.groups, self.kinds = groups, kinds
        self.smoothing = smoothing
        self.logs = np.append(np.log(np.maximum(probs, _LEAST)), 0.0)
        """[E + 1]: log-probabilities by number; the last is that of `NOTHING`."""

    @classmethod
    def uniform(cls, groups: Ints, kinds: Ints, smoothing: Smoothing) -> Self:
        """Equal probabilities in each group."""
        sizes = np.bincount(groups)
        return cls(1.0 / sizes[groups], groups, kinds, smoothing)

    @classmethod
    def rectangle(cls, num_groups: int, num_kinds: int, smoothing: Smoothing) -> Self:
        """Groups of equal kinds: entry number group times kinds plus kind."""
        groups = np.arange(num_groups).repeat(num_kinds)
        return cls.uniform(groups, np.tile(np.arange(num_kinds), num_groups), smoothing)

    def maximised(self, counts: Floats) -> Self:
        """The table of expected counts [E + 1] by number. Groups without counts keep their probabilities."""
        values = counts[:-1]
        totals = self._summed(values)
        if self.smoothing.kind == "none":
            probs = np.where(totals > _LEAST, values / np.maximum(totals, _LEAST), self.probs)
        else:
            probs = (values + STRENGTH * self.average(values)) / (totals + STRENGTH)
        return type(self)(probs, self.groups, self.kinds, self.smoothing)

    def average(self, values: Floats) -> Floats:
        """The mean of the prior of each entry: the share of its kind, normalised in its group."""
        kinds = (np.bincount(self.kinds, values) + 1e-2) / np.maximum(np.bincount(self.kinds), 1)
        shares = kinds[self.kinds]
        return shares / self._summed(shares)

    def _summed(self, values: Floats) -> Floats:
        """The sum over the group of each entry."""
        return np.asarray(np.bincount(self.groups, values)[self.groups])

    def restored(self, probs: Floats) -> Self:
        """The table with other probabilities."""
        return type(self)(probs, self.groups, self.kinds, self.smoothing)
