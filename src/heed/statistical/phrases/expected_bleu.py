"""The weights with the highest BLEU of expected counts on n-best lists (Rosti et al. 2010, section 3.2).

    p(i | s)  =  exp(w · f_si) / Σ_k exp(w · f_sk)                 candidate i of sentence s
    E         =  Σ_s Σ_i p(i | s) c_si                             c_si: its statistics, for BLEU
    w         =  argmax  log BLEU(E) - λ Σ_j σ_j² (w_j - b_j)²

Unlike the BLEU of the best candidates, for which minimum error rate training searches, that of E has a slope. σ_j is
the spread of feature j within the lists, and b the best weights so far: the next search finds other candidates, so
weights far from b are good for these lists alone.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

import numpy as np

from heed.statistical.phrases.bleu import LONGEST
from heed.statistical.phrases.candidates import Candidates
from heed.statistical.predictor import Bools, Floats

_STEPS, _MEMORY, _SUFFICIENT = 200, 8, 1e-4
_LEAST_GAIN = 1e-7
"""Of a step of the ascent, in nats."""
_TINY = 1e-9


class Objective:
    """log BLEU(E) - λ |u - b|² of the weights u = σ w that are free."""

    def __init__(self, candidates: Candidates, near: Floats, is_free: Bools, penalty: float) -> None:
        """`near` [F]: the weights b; those that are not `is_free` are kept."""
        exists = candidates.exists[..., None]
        means = (candidates.features * exists).sum(1, keepdims=True) / exists.sum(1, keepdims=True)
        centred = (candidates.features - means) * exists
        spread = np.sqrt((centred**2).sum((0, 1)) / exists.sum())
        self._near = near
        self._free = is_free & (spread > _TINY)
        self._spread = spread[self._free]
        self._features = centred[..., self._free] / self._spread
        self._fixed = np.where(candidates.exists, centred[..., ~self._free] @ near[~self._free], -np.inf)
        self._statistics = candidates.statistics.astype(np.float64)
        self._penalty = penalty
        self.begin: Floats = near[self._free] * self._spread

    def __call__(self, at: Floats) -> tuple[float, Floats]:
        """The value at free weights u, and its slope."""
        scores = self._features @ at + self._fixed
        shares = np.exp(scores - scores.max(1, keepdims=True))
        shares /= shares.sum(1, keepdims=True)
        value, slope = log_bleu(np.einsum("sk,skn->n", shares, self._statistics))
        gains = self._statistics @ slope
        gains = shares * (gains - (shares * gains).sum(1, keepdims=True))
        away = at - self.begin
        return (
            value - self._penalty * float(away @ away),
            np.einsum("sk,skf->f", gains, self._features) - 2 * self._penalty * away,
        )

    def weights(self, at: Floats) -> Floats:
        """All weights w [F]."""
        found = self._near.copy()
        found[self._free] = at / self._spread
        return found


def log_bleu(expected: Floats) -> tuple[float, Floats]:
    """The logarithm of BLEU, from 0 to 1, of expected statistics [9], and its slope [9] at a fixed reference length."""
    matches, totals = expected[:LONGEST] + _TINY, expected[LONGEST:-1] + _TINY
    missing = max(0.0, expected[-1] / totals[0] - 1)
    slope = np.concatenate([1 / (LONGEST * matches), -1 / (LONGEST * totals), [0.0]])
    if missing:
        slope[LONGEST] += expected[-1] / totals[0] ** 2
    return float(np.log(matches / totals).mean() - missing), slope


def maximise(candidates: Candidates, near: Floats, is_free: Bools, penalty: float) -> Floats:
    """The weights [F], by L-BFGS from `near` (Liu & Nocedal 1989)."""
    objective = Objective(candidates, near, is_free, penalty)
    at = objective.begin
    value, slope = objective(at)
    moves: deque[tuple[Floats, Floats]] = deque(maxlen=_MEMORY)
    for _ in range(_STEPS):
        direction, step = _ascent(slope, moves), 1.0
        reached, new_slope = objective(at + direction)
        while reached < value + _SUFFICIENT * step * float(slope @ direction) and step > _TINY:
            step /= 2
            reached, new_slope = objective(at + step * direction)
        if reached < value + _LEAST_GAIN:
            break
        move, change = step * direction, slope - new_slope
        if move @ change > _TINY:
            moves.append((move, change))
        at, value, slope = at + move, reached, new_slope
    return objective.weights(at)


def _ascent(slope: Floats, moves: Sequence[tuple[Floats, Floats]]) -> Floats:
    """The slope times an estimate of the inverse of the negative Hessian, from moves and the changes of the slope."""
    direction, factors = slope.copy(), list[float]()
    for move, change in reversed(moves):
        factors.append(float(move @ direction) / float(move @ change))
        direction -= factors[-1] * change
    if moves:
        move, change = moves[-1]
        direction *= float(move @ change) / float(change @ change)
    for (move, change), factor in zip(moves, reversed(factors), strict=True):
        direction += (factor - float(change @ direction) / float(move @ change)) * move
    return direction
