"""Links from outputs to answers: one of several labels, several labels at once, or a number.

A link has the negative log-likelihood of targets given outputs z, its gradient, and the product of its Hessian with a
vector, which Newton's method needs.

| link      | answer          | targets            | -log p (nats)                                |
| --------- | --------------- | ------------------ | -------------------------------------------- |
| `Softmax` | one of K labels | one-hot [N, K]     | log Σ exp z - z_y; for K = 2, z_0 = 0        |
| `Sigmoid` | several labels  | 0 or 1 [N, K]      | Σ_k log(1 + exp z_k) - t_k z_k               |
| `Identity`| a number        | [N, 1]             | ½ (z - t)²                                   |
"""

from __future__ import annotations

from typing import Protocol

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor


class Link(Protocol):
    """A link; see the table of this module."""

    def columns(self, num_labels: int) -> int:
        """Number of outputs."""
        ...

    def full(self, z: Float[Tensor, "N C"]) -> Float[Tensor, "N K"]:
        """An output for each label."""
        ...

    def mean(self, z: Float[Tensor, "N C"]) -> Float[Tensor, "N C"]:
        """The expected target of each output."""
        ...

    def loss(self, z: Float[Tensor, "N C"], targets: Float[Tensor, "N C"]) -> Tensor:
        """-log p (nats), summed over the rows."""
        ...

    def curvature(self, mean: Float[Tensor, "N C"], direction: Float[Tensor, "N C"]) -> Float[Tensor, "N C"]:
        """The product of each row's Hessian, at outputs with this mean, with a direction."""
        ...

    def probabilities(self, full: Float[Tensor, "N K"]) -> Float[Tensor, "N K"]:
        """The probability of each label, from an output for each."""
        ...

    def full_loss(self, full: Float[Tensor, "N K"], targets: Float[Tensor, "N K"]) -> Tensor:
        """-log p (nats) from an output for each label, summed over the rows."""
        ...


class Softmax:
    """One of several labels: multinomial logistic regression."""

    def columns(self, num_labels: int) -> int:
        return 1 if num_labels == 2 else num_labels

    def full(self, z: Tensor) -> Tensor:
        return torch.cat([torch.zeros_like(z), z], 1) if z.shape[1] == 1 else z

    def mean(self, z: Tensor) -> Tensor:
        return z.sigmoid() if z.shape[1] == 1 else z.softmax(1)

    def loss(self, z: Tensor, targets: Tensor) -> Tensor:
        if z.shape[1] == 1:
            return F.binary_cross_entropy_with_logits(z, targets, reduction="sum")
        return (z.logsumexp(1) - (z * targets).sum(1)).sum()

    def curvature(self, mean: Tensor, direction: Tensor) -> Tensor:
        if mean.shape[1] == 1:
            return mean * (1 - mean) * direction
        return mean * (direction - (mean * direction).sum(1, keepdim=True))

    def probabilities(self, full: Tensor) -> Tensor:
        return full.softmax(1)

    def full_loss(self, full: Tensor, targets: Tensor) -> Tensor:
        return (full.logsumexp(1) - (full * targets).sum(1)).sum()


class Sigmoid:
    """Several labels at once: a logistic regression for each."""

    def columns(self, num_labels: int) -> int:
        return num_labels

    def full(self, z: Tensor) -> Tensor:
        return z

    def mean(self, z: Tensor) -> Tensor:
        return z.sigmoid()

    def loss(self, z: Tensor, targets: Tensor) -> Tensor:
        return F.binary_cross_entropy_with_logits(z, targets, reduction="sum")

    def curvature(self, mean: Tensor, direction: Tensor) -> Tensor:
        return mean * (1 - mean) * direction

    def probabilities(self, full: Tensor) -> Tensor:
        return full.sigmoid()

    full_loss = loss


class Identity:
    """A number with normally distributed errors: ridge regression."""

    def columns(self, num_labels: int) -> int:
        return 1

    def full(self, z: Tensor) -> Tensor:
        return z

    def mean(self, z: Tensor) -> Tensor:
        return z

    def loss(self, z: Tensor, targets: Tensor) -> Tensor:
        return 0.5 * (z - targets).square().sum()

    def curvature(self, mean: Tensor, direction: Tensor) -> Tensor:
        return direction

    def probabilities(self, full: Tensor) -> Tensor:
        return full

    full_loss = loss


LINKS: dict[str, Link] = {"label": Softmax(), "labels": Sigmoid(), "number": Identity()}
"""The link of each kind of answer."""
