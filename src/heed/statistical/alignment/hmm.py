"""Hidden Markov model of alignment (Vogel, Ney & Tillmann 1996; Och & Ney 2003, sections 2.2 and 3.3).

    P(f, a | e) = Π_j p(a_j | a_{j-1}, I) t(f_j | e_{a_j})

The source of a target word depends on that of the word before it, by the width of the jump:

    p(i | i', I) = (1 - p_0) (β / I + (1 - β) s(i - i') / Σ_k s(k - i'))         p(empty word | i') = p_0

From the empty word the chain continues at the last position before it (Och & Ney's I additional states). Jumps from the
beginning of the sentence have weights of their own. Sums over alignments are exact, by forward and backward recursions
over all pairs of a block at once.

Each weight s appears in the normalisers of many positions and lengths, so that no closed form maximises it. Iterative
scaling (Hunter 2004, "MM algorithms for generalized Bradley-Terry models") raises the likelihood in every step, where
GIZA++ takes the relative frequencies, which may lower it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from heed.statistical.alignment.aligner import Aligner, Arrays, checked
from heed.statistical.alignment.lexicon import Lexicon
from heed.statistical.alignment.pairs import Block
from heed.statistical.alignment.smoothing import NONE, Smoothing
from heed.statistical.predictor import Floats, Ints

MAX_JUMP = 100
"""Jumps of this width or more share a weight."""
NUM_WEIGHTS = 2 * MAX_JUMP + 1 + MAX_JUMP
"""Weights of jumps from -100 to 100, and of jumps from the beginning to the positions from 1."""
_SCALINGS = 5
"""Steps of iterative scaling in each iteration."""


class Jumps:
    """Probabilities of jumps, from weights that are shared by width."""

    def __init__(self, weights: Floats, uniform: float) -> None:
        """`weights`: s, [`NUM_WEIGHTS`]. `uniform`: β, the share of the uniform distribution."""
        self.weights = weights
        self.uniform = uniform
        self._tables: dict[int, Floats] = {}

    def table(self, num_src: int) -> Floats:
        """p(i | i', I) without the empty word, [I + 1, I]; row 0 is the beginning of the sentence."""
        if (table := self._tables.get(num_src)) is None:
            table = (1 - self.uniform) * self._scaled(num_src) + self.uniform / num_src
            self._tables[num_src] = table
        return table

    def _scaled(self, num_src: int) -> Floats:
        weights = self.weights[widths(num_src)]
        scaled: Floats = weights / weights.sum(-1, keepdims=True)
        return scaled

    def maximised(self, counts: Mapping[int, Floats]) -> Jumps:
        """Jumps that are likelier, from the expected number [I + 1, I] of each, by I."""
        if not counts:
            return self
        places = {num_src: widths(num_src) for num_src in counts}
        own = {n: count * (1 - self.uniform) * self._scaled(n) / self.table(n) for n, count in counts.items()}
        taken = sum(np.bincount(places[n].ravel(), own[n].ravel(), NUM_WEIGHTS) for n in counts)
        jumps = self
        for _ in range(_SCALINGS):
            offered = np.zeros(NUM_WEIGHTS)
            for n, place in places.items():
                rates = own[n].sum(-1) / jumps.weights[place].sum(-1)
                offered += np.bincount(place.ravel(), rates.repeat(n), NUM_WEIGHTS)
            seen = offered > 0
            weights = np.where(seen, taken / np.where(seen, offered, 1.0), jumps.weights)
            weights[: 2 * MAX_JUMP + 1] /= weights[: 2 * MAX_JUMP + 1].max()  # their scale is arbitrary
            weights[2 * MAX_JUMP + 1 :] /= weights[2 * MAX_JUMP + 1 :].max()
            jumps = Jumps(np.maximum(weights, np.finfo(np.float64).tiny), self.uniform)
        return jumps


def widths(num_src: int) -> Ints:
    """The number of the weight of each jump, [I + 1, I]; row 0 is the beginning of the sentence."""
    positions = np.arange(num_src)
    inside = np.clip(positions - positions[:, None], -MAX_JUMP, MAX_JUMP) + MAX_JUMP
    first = 2 * MAX_JUMP + 1 + np.minimum(positions, MAX_JUMP - 1)
    return np.concatenate([first[None], inside])


class _Passes(NamedTuple):
    """Results of the recursions over a block."""

    posteriors: Floats
    log_probs: Floats
    jumps: Floats
    """[I + 1, I]: the expected number of each jump."""


class Hmm(Aligner):
    """The source of a word depends on that of the word before it."""

    name = "hmm"
    title = "hidden Markov model (Vogel et al. 1996; Och & Ney 2003)"
    before = (("ibm1", 1),)
    iterations = 10

    def __init__(
        self, lexicon: Lexicon, smoothing: Smoothing = NONE, p_null: float = 0.2, uniform: float = 0.01
    ) -> None:
        """`p_null`: p_0, `uniform`: β; neither is estimated."""
        super().__init__(lexicon, smoothing)
        self.p_null = p_null
        self.jumps = Jumps(np.ones(NUM_WEIGHTS), uniform)
        self._counts: dict[int, Floats] = {}
        self.last_jumps: Floats = np.zeros((1, 0))
        """The expected number of each jump, [I + 1, I], of the last block of `expect`."""

    def expect(self, block: Block, probs: Floats) -> tuple[Floats, Floats]:
        passes = _recursions(probs, self.jumps.table(block.shape[0]), self.p_null)
        self.last_jumps = passes.jumps
        return passes.posteriors, passes.log_probs

    def begin(self) -> None:
        self._counts = {}

    def count(self, block: Block, posteriors: Floats) -> None:
        num_src = block.shape[0]
        self._counts[num_src] = self._counts.get(num_src, 0.0) + self.last_jumps

    def finish(self) -> None:
        self.jumps = self.jumps.maximised(self._counts)

    def parameters(self) -> dict[str, np.ndarray[Any, Any]]:
        return {
            "jumps": self.jumps.weights,
            "p_null": np.array([self.p_null]),
            "uniform": np.array([self.jumps.uniform]),
        }

    def restore(self, arrays: Arrays) -> None:
        self.p_null = float(checked(arrays, "p_null", (1,))[0])
        self.jumps = Jumps(checked(arrays, "jumps", (NUM_WEIGHTS,)), float(checked(arrays, "uniform", (1,))[0]))


def _recursions(probs: Floats, table: Floats, p_null: float) -> _Passes:
    """Forward and backward recursions, scaled so that the sum over states is 1 after each word.

    A state is the last position, [B, I + 1] with the beginning in column 0, since the empty word keeps it.
    """
    num, num_tgt, width = probs.shape
    move = (1 - p_null) * table
    states = np.zeros((num_tgt + 1, num, width))
    states[0, :, 0] = 1
    real, empty = np.empty((num_tgt, num, width - 1)), np.empty((num_tgt, num, width))
    norms = np.empty((num_tgt, num, 1))
    for j in range(num_tgt):
        np.multiply(states[j] @ move, probs[:, j, 1:], out=real[j])
        np.multiply(states[j], p_null * probs[:, j, :1], out=empty[j])
        states[j + 1] = empty[j]
        states[j + 1, :, 1:] += real[j]
        norms[j] = states[j + 1].sum(-1, keepdims=True)
        states[j + 1] /= norms[j]
    posteriors = np.empty_like(probs)
    arrivals = np.empty((num_tgt, num, width - 1))
    after = np.ones((num, width))
    for j in reversed(range(num_tgt)):
        after /= norms[j]
        posteriors[:, j, 0] = (empty[j] * after).sum(-1)
        posteriors[:, j, 1:] = real[j] * after[:, 1:]
        np.multiply(probs[:, j, 1:], after[:, 1:], out=arrivals[j])
        after *= p_null * probs[:, j, :1]
        after += arrivals[j] @ move.T
    jumps = move * (states[:-1].reshape(-1, width).T @ arrivals.reshape(-1, width - 1))
    return _Passes(posteriors, np.log(norms[..., 0]).sum(0), jumps)
