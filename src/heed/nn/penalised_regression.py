"""Penalised regression with its proper optimum, by a truncated Newton method.

The objective is ½ Σ_jk (w_jk / p_jk)² + C Σ_i loss_i, with a free bias: for p = 1 that of scikit-learn's
`LogisticRegression(C=C)`. A prior scale p_jk that is the log-count ratio of Naive Bayes gives the NB-scaled features of
Wang & Manning (2012), for any number of labels. It is strictly convex but for the bias, so its optimum is unique. As
in liblinear (Lin, Weng & Keerthi 2008), each Newton step is found by conjugate gradients, to a relative residual that
falls with the gradient, and a line search makes the objective fall.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from heed.core.allocator import give_memory_back
from heed.nn.incidence import Features
from heed.nn.links import Link

TOLERANCE = 1e-3
"""Norm of the gradient relative to that without weights at which the optimum is reached."""
_MAX_NEWTON, _MAX_CONJUGATE = 100, 300
_ROWS = 1 << 16
"""Rows whose losses are computed at once in double precision; with more, each step gives freed memory back."""


@dataclass(frozen=True)
class Optimum:
    """The weights of a regression, and the certificate that they are its optimum."""

    weights: Float[Tensor, "J1 K"]
    """One row for each feature, and the bias."""
    objective: float
    relative_gradient: float
    """Norm of the gradient of the scaled weights, relative to that without weights."""
    num_products: int
    """Products with the features that it took."""


def fit(
    features: Features, targets: Float[Tensor, "N K"], link: Link, strength: float,
    prior: Float[Tensor, "J1 K"] | None = None, start: Float[Tensor, "J1 K"] | None = None,
    tolerance: float = TOLERANCE,
) -> Optimum:  # fmt: skip
    """The optimum for C = `strength`; `prior`: p, `start`: the weights to start from."""
    return _Newton(features, targets, link, strength, prior).run(start, tolerance)


class _Newton:
    """The method on scaled weights v = w / p, whose penalty is ½ ‖v‖²."""

    def __init__(self, features: Features, targets: Tensor, link: Link, strength: float, prior: Tensor | None) -> None:
        self.features, self.targets, self.link, self.strength = features, targets, link, strength
        num_features = sum(features.sizes) + 1
        self.prior = targets.new_ones(num_features, 1) if prior is None else prior
        self.penalised = targets.new_ones(num_features, 1)
        self.penalised[-1] = 0
        self.num_products = 0

    def run(self, start: Tensor | None, tolerance: float) -> Optimum:
        zeros = self.targets.new_zeros(len(self.penalised), self.targets.shape[1])
        first = float(self.gradient(zeros, self.outputs(zeros)).norm())
        v = zeros if start is None else torch.where(self.prior != 0, start / self.prior, zeros)
        z = self.outputs(v)
        objective = self.objective(v, z)
        for _ in range(_MAX_NEWTON):
            if len(z) > _ROWS:
                give_memory_back()  # what the conjugate gradients have freed
            gradient = self.gradient(v, z)
            relative = float(gradient.norm()) / max(first, 1e-30)
            if relative <= tolerance:
                break
            step = self.newton_step(z, gradient, min(0.5, math.sqrt(relative)))
            v, z, after = self.line_search(v, z, step, gradient, objective)
            if after >= objective:  # as precise as the arithmetic allows
                break
            objective = after
        return Optimum(self.prior * v, objective, relative, self.num_products)

    def outputs(self, v: Tensor) -> Tensor:
        self.num_products += 1
        return self.features.times(self.prior * v)

    def back(self, values: Tensor) -> Tensor:
        self.num_products += 1
        return self.strength * self.prior * self.features.transposed_times(values)

    def objective(self, v: Tensor, z: Tensor) -> float:
        penalty = 0.5 * float((self.penalised * v).square().sum(dtype=torch.float64))
        parts = zip(torch.split(z, _ROWS), torch.split(self.targets, _ROWS), strict=True)
        return penalty + self.strength * sum(float(self.link.loss(z.double(), t.double())) for z, t in parts)

    def gradient(self, v: Tensor, z: Tensor) -> Tensor:
        return self.penalised * v + self.back(self.link.mean(z) - self.targets)

    def newton_step(self, z: Tensor, gradient: Tensor, precision: float) -> Tensor:
        """An approximate solution of H d = -g by conjugate gradients, with a relative residual of `precision`."""
        mean = self.link.mean(z)
        step, residual = torch.zeros_like(gradient), -gradient
        direction, square = residual, float(residual.square().sum())
        enough = precision**2 * square
        for _ in range(_MAX_CONJUGATE):
            curved = self.penalised * direction + self.back(self.link.curvature(mean, self.outputs(direction)))
            length = square / max(float((direction * curved).sum()), 1e-30)
            step = step + length * direction
            residual = residual - length * curved
            before, square = square, float(residual.square().sum())
            if square <= enough:
                break
            direction = residual + (square / before) * direction
        return step

    def line_search(
        self, v: Tensor, z: Tensor, step: Tensor, gradient: Tensor, objective: float
    ) -> tuple[Tensor, Tensor, float]:
        """Halve the step until the objective falls enough (Armijo's rule)."""
        change, slope = self.outputs(step), float((gradient * step).sum())
        length = 1.0
        while length > 1e-4:
            after = self.objective(v + length * step, z + length * change)
            if after <= objective + 1e-4 * length * slope:
                return v + length * step, z + length * change, after
            length /= 2
        return v, z, objective
