"""Diagonal model of fast_align (Dyer, Chahuneau & Smith 2013): Model 2 with two parameters in place of its tables.

    a(0 | j, I, J) = p_0          a(i | j, I, J) = (1 - p_0) exp(-λ |i / I - j / J|) / Z_j(I, J)       i, j from 1

The tension λ is estimated: the expected distance from the diagonal is brought to that of the model, by bisection, which
is the maximum because log Z is convex in λ (their section 3.2 takes gradient steps). With λ = 0 and p_0 = 1 / (I + 1)
the model is Model 1.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from heed.statistical.alignment.aligner import Arrays, checked
from heed.statistical.alignment.ibm1 import Independent
from heed.statistical.alignment.lexicon import Lexicon
from heed.statistical.alignment.pairs import Block
from heed.statistical.alignment.smoothing import NONE, Smoothing
from heed.statistical.predictor import Floats, Ints, starts

_LEAST, _MOST = 0.1, 14.0
"""Range of the tension; fast_align's."""
_HALVINGS = 12
"""Halvings of that range: to 0.003."""
_CELLS = 1 << 16
"""Cells (target word, source word) whose distances are held at once; as many fit into a processor's cache."""


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
            self._priors = {(num_src, num_tgt): prior}  # pairs of equal lengths follow each other
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
        if not self._seen:
            return self.tension
        all_src, all_tgt = np.array(list(self._seen)).T
        num_src = np.repeat(all_src, all_tgt)
        """[N]: the length of the source of each target word."""
        numbers = np.arange(len(num_src)) - np.repeat(starts(all_tgt)[:-1], all_tgt) + 1
        places = numbers / np.repeat(all_tgt, all_tgt)
        firsts = np.flatnonzero(np.diff(starts(num_src)[:-1] // _CELLS, prepend=-1)).tolist()
        parts = [slice(*ends) for ends in pairwise([*firsts, len(num_src)])]
        masses = np.concatenate([mass for mass, _ in self._seen.values()])
        seen = sum(distance for _, distance in self._seen.values())
        low, high = _LEAST, _MOST
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            expected = np.concatenate([_expected(middle, num_src[part], places[part]) for part in parts])
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


def _expected(tension: float, num_src: Ints, places: Floats) -> Floats:
    """The distance that the model expects of target words, at places from 0 to 1, from their source words.

    `num_src`: the length of the source of each. Their distances are the rows of `distances`, one after another.
    """
    begins = starts(num_src)
    positions = np.arange(begins[-1]) - np.repeat(begins[:-1], num_src) + 1
    cells = np.abs(positions / np.repeat(num_src, num_src) - np.repeat(places, num_src))
    near = np.exp(-tension * cells)
    return np.asarray(np.add.reduceat(near * cells, begins[:-1]) / np.add.reduceat(near, begins[:-1]))
