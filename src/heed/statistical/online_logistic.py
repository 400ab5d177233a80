"""Online logistic regression: proper learners, which predict with one weight vector, against Bayesian averaging.

The loss of weights w on an example z = y x is log(1 + exp(-w · z)). A proper learner chooses w before it sees the
example: the leader (maximum likelihood), the leader with a Gaussian penalty (MAP), projected online gradient descent
(Zinkevich 2003). The Bayesian average predicts with the posterior mixture of all w, which is not a logistic model
itself. With a Gaussian prior its regret grows with the logarithm of the number of examples on every sequence (Kakade &
Ng 2004), whereas the regret of every proper learner can grow with the square root (Hazan, Koren & Levy 2014; Foster et
al. 2018).

Sequences are of few distinct examples: `kinds` [K, d] and the kind of each example, so that a function of the data is a
function of K counts.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def losses(points: Floats, kinds: Floats) -> Floats:
    """log(1 + exp(-w · z)) of each w of `points` [M, d] on each z of `kinds` [K, d]: [K, M]."""
    margins: Floats = np.logaddexp(0, -(kinds @ points.T))
    return margins


def counts_of(sequence: Ints, num_kinds: int) -> Ints:
    """How often each kind occurs before each example, and after the last: [T + 1, K]."""
    counts = np.zeros((len(sequence) + 1, num_kinds), dtype=np.int64)
    counts[np.arange(1, len(sequence) + 1), sequence] = 1
    return counts.cumsum(axis=0)


def leader_losses(points: Floats, kinds: Floats, sequence: Ints, penalty: float = 0.0) -> Floats:
    """The loss on each example of the w of `points` that is best on those before it: [T].

    `penalty`: of ‖w‖² / 2; 1 / ν² gives the MAP estimate under a Gaussian prior. Without data, the smallest w is best.
    """
    table, squares = losses(points, kinds), (points**2).sum(axis=1) / 2
    found = np.empty(len(sequence))
    total = (penalty or 1e-12) * squares
    for t, kind in enumerate(sequence.tolist()):
        found[t] = table[kind, total.argmin()]
        total += table[kind]
    return found


def gradient_losses(kinds: Floats, sequence: Ints, radius: float) -> Floats:
    """The loss on each example of projected online gradient descent with the rate radius / √t, from w = 0: [T]."""
    weights, found = np.zeros(kinds.shape[1]), np.empty(len(sequence))
    for t, kind in enumerate(sequence.tolist()):
        z = kinds[kind]
        loss = np.logaddexp(0, -weights @ z)
        found[t] = loss
        weights = weights + radius / np.sqrt(t + 1) * -np.expm1(-loss) * z
        weights *= min(1.0, radius / max(float(np.linalg.norm(weights)), 1e-300))
    return found


@dataclass(frozen=True)
class Quadrature:
    """Points w [M, d] and the logarithms of their prior probabilities [M], which sum to one up to truncation."""

    points: Floats
    log_prior: Floats

    @classmethod
    def gaussian(cls, dimension: int, scale: float, number: int, reach: float = 8.0) -> Quadrature:
        """A Gaussian prior N(0, scale² I) on a grid of `number` points an axis, up to `reach` standard deviations."""
        axis = np.linspace(-reach * scale, reach * scale, number)
        points = np.stack(np.meshgrid(*[axis] * dimension, indexing="ij"), axis=-1).reshape(-1, dimension)
        log_density = -((points / scale) ** 2).sum(axis=1) / 2 - dimension / 2 * np.log(2 * np.pi * scale**2)
        return cls(points, log_density + dimension * np.log(axis[1] - axis[0]))

    def cumulative_loss(self, kinds: Floats, counts: Ints) -> float:
        """The loss of the Bayesian average on a sequence with these counts [K]: -log of its evidence (chain rule)."""
        log_joint = self.log_prior - counts @ losses(self.points, kinds)
        highest = log_joint.max()
        return -float(highest + np.log(np.exp(log_joint - highest).sum()))

    def predictive_loss(self, kinds: Floats, counts: Ints, kind: int) -> float:
        """-log of the posterior mixture's probability of an example after data with these counts."""
        after = counts + (np.arange(len(kinds)) == kind)
        return self.cumulative_loss(kinds, after) - self.cumulative_loss(kinds, counts)


def kakade_ng_bound(weights: Floats, num_examples: int, scale: float) -> float:
    """What the Bayesian average may lose more than `weights` [d]: ‖w‖² / 2ν² + d/2 log(1 + T ν² / 4d).

    Kakade & Ng 2004, theorem 2.2, for ‖x‖ ≤ 1 and a loss whose second derivative is at most 1/4, with the prior
    N(0, ν² I), ν the `scale`.
    """
    dimension = len(weights)
    growth = dimension / 2 * np.log1p(num_examples * scale**2 / (4 * dimension))
    return float(weights @ weights / (2 * scale**2) + growth)


@dataclass(frozen=True)
class Source:
    """Independent examples: their kinds [K, d], ‖z‖ ≤ 1, and the probability of each [K]."""

    kinds: Floats
    shares: Floats

    def draw(self, number: int, seed: int) -> Ints:
        """The kinds of a sequence [T]."""
        return np.random.default_rng(seed).choice(len(self.shares), size=number, p=self.shares)


def opposed(radius: float, depth: float = 20.0, share: float = 0.0125) -> Source:
    """A source on which each proper learner with ‖w‖ ≤ `radius` pays √T.

    Most examples are (0, s / B): they hold w near (0, B), B the radius. The rest are (±1, -k / B) with random signs,
    k the `depth`: their margins are ±w₁ - k, where the loss is linear in w₁ ∈ [-k, k]. Whatever w₁ a learner chooses,
    it gains nothing on average, whereas the best w₁ in hindsight gains |n₊ - n₋| · |w₁|. A mixture of w₁ = k and
    w₁ = -k gives both signs a fair probability, which no single w₁ does. The curvature ends this at about T = e^{2k}.
    """
    scale = np.hypot(1, depth / radius)
    kinds = np.array([[0, 1.28 / radius], [1, -depth / radius], [-1, -depth / radius]]) / scale
    return Source(kinds, np.array([1 - share, share / 2, share / 2]))


def well_specified(weights: Floats, directions: int = 16) -> Source:
    """Examples x in evenly spaced directions of the plane, with labels from the logistic model of `weights` [2]."""
    angles = np.arange(directions) * (2 * np.pi / directions)
    x = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    positive = 1 / (1 + np.exp(-(x @ weights)))
    return Source(np.concatenate([x, -x]), np.concatenate([positive, 1 - positive]) / directions)
