"""Diagonal model of fast_align (Dyer, Chahuneau & Smith 2013): Model 2 with two parameters in place of its tables.

    a(0 | j, I, J) = p_0          a(i | j, I, J) = (1 - p_0) exp(-λ |i / I - j / J|) / Z_j(I, J)       i, j from 1

The tension λ is estimated: the expected distance from the diagonal is brought to that of the model, by bisection, which
is the maximum because log Z is convex in λ (their section 3.2 takes gradient steps). With λ = 0 and p_0 = 1 / (I + 1)
the model is Model 1.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from heed.statistical.alignment.aligner import Arrays, checked
from heed.statistical.alignment.ibm1 import Independent
from heed.statistical.alignment.lexicon import Lexicon
from heed.statistical.alignment.pairs import Block
from heed.statistical.alignment.smoothing import NONE, Smoothing
from heed.statistical.predictor import Floats, starts

_LEAST, _MOST = 0.1, 14.0
"""Range of the tension; fast_align's."""
_HALVINGS = 12
"""Halvings of that range: to 0.003."""


class Diagonal(Independent):
    """Words near the diagonal of a pair are likelier to be linked."""

    name = "diagonal"
    title = "diagonal model (Dyer et al. 2013)"

    def __init__(
        self, lexicon: Lexicon, smoothing: Smoothing = NONE, tension: float = 4.0, p_null: float = 0.08
    ) -> None:
        """`tension`: λ at the beginning; `p_null`: p_0, which is not estimated. The defaults are fast_align's."""
        super().__init__(lexicon, smoothing)
        self.tension, self.p_null = tension, p_null
        self._priors: dict[tuple[int, int], Floats] = {}
        self._seen: dict[tuple[int, int], tuple[Floats, float]] = {}

    def prior(self, num_src: int, num_tgt: int) -> Floats:
        if (prior := self._priors.get((num_src, num_tgt))) is None:
            near = np.exp(-self.tension * distances(num_src, num_tgt))
            near *= (1 - self.p_null) / near.sum(-1, keepdims=True)
            prior = np.concatenate([np.full((num_tgt, 1), self.p_null), near], axis=1)
            self._priors[num_src, num_tgt] = prior
        return prior

    def begin(self) -> None:
        self._seen = {}

    def count(self, block: Block, posteriors: Floats) -> None:
        real = posteriors.sum(0)[:, 1:]
        masses, distance = self._seen.get(block.shape, (np.zeros(len(real)), 0.0))
        of_block = float((real * distances(*block.shape)).sum())
        self._seen[block.shape] = masses + real.sum(-1), distance + of_block

    def finish(self) -> None:
        self.tension = self._best_tension()
        self._priors = {}

    def _best_tension(self) -> float:
        """The tension with which the model expects the distance that the posteriors have."""
        shapes = list(self._seen)
        if not shapes:
            return self.tension
        cells = np.concatenate([distances(*shape).ravel() for shape in shapes])
        begins = starts(np.concatenate([np.full(num_tgt, num_src) for num_src, num_tgt in shapes]))[:-1]
        masses = np.concatenate([mass for mass, _ in self._seen.values()])
        seen = sum(distance for _, distance in self._seen.values())
        low, high = _LEAST, _MOST
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            near = np.exp(-middle * cells)
            expected = np.add.reduceat(near * cells, begins) / np.add.reduceat(near, begins)
            low, high = (middle, high) if float(expected @ masses) > seen else (low, middle)
        return (low + high) / 2

    def parameters(self) -> dict[str, np.ndarray[Any, Any]]:
        return {"tension": np.array([self.tension]), "p_null": np.array([self.p_null])}

    def restore(self, arrays: Arrays) -> None:
        self.tension = float(checked(arrays, "tension", (1,))[0])
        self.p_null = float(checked(arrays, "p_null", (1,))[0])
        self._priors = {}


def distances(num_src: int, num_tgt: int) -> Floats:
    """|i / I - j / J|, [J, I], for positions counted from 1."""
    return np.abs(np.arange(1, num_src + 1) / num_src - np.arange(1, num_tgt + 1)[:, None] / num_tgt)
