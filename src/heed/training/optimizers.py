"""Optimisers and gradient clipping.

ASGD and NT-ASGD are SGD with an average of the weights: `training.average` (see `heed.training.weights`).
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import torch
from torch import Tensor

from heed.training.config import TrainingConfig
from heed.training.layers import from_the_top
from heed.training.sharding import whole

_MOMENTUM = 0.95
_TYPICAL = 0.2
"""Typical root mean square of Adam's updates, in units of the rate, so that the same rate suits both (Liu et al. 2025).
"""
_ROUNDS, _A, _B, _C = 5, 3.4445, -4.775, 2.0315


_WRAPPED = ("add_param_group", "state_dict", "load_state_dict", "zero_grad")
"""Methods of optimisers that import PyTorch's compiler, as `step` does."""

_Optimizer = TypeVar("_Optimizer", bound=type[torch.optim.Optimizer])


def _uncompiled(optimizer: _Optimizer) -> _Optimizer:
    """An optimiser whose methods do not import PyTorch's compiler, which takes seconds and which heed does not use."""
    for name in _WRAPPED:
        setattr(optimizer, name, inspect.unwrap(getattr(optimizer, name)))
    optimizer.step = torch.no_grad()(inspect.unwrap(optimizer.step))  # type: ignore[method-assign]
    return optimizer


@_uncompiled
class Adam(torch.optim.Adam):
    """Adam (Kingma & Ba 2015) with L2 regularisation."""


@_uncompiled
class AdamW(torch.optim.AdamW):
    """Adam with decoupled weight decay (Loshchilov & Hutter 2019)."""


@_uncompiled
class SGD(torch.optim.SGD):
    """Stochastic gradient descent with L2 regularisation."""


class Muon(AdamW):
    """Muon (Jordan et al. 2024) for groups that are `hidden`, whose parameters are matrices; AdamW for the others.

    A matrix moves along its orthogonalised momentum, all of whose directions are equally long: M = U S Vᵀ → U Vᵀ, with
    Nesterov's momentum.
    """

    dtype = torch.float32
    """The precision in which momentum is orthogonalised; bfloat16 is enough (Jordan et al. 2024)."""

    def __setstate__(self, state: dict[str, Any]) -> None:
        """AdamW looks for its own quantities, which hidden matrices do not have."""
        torch.optim.Optimizer.__setstate__(self, state)

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # type: ignore[override]
        """Make one update."""
        groups = self.param_groups
        try:
            self.param_groups = [group for group in groups if not group["hidden"]]
            super().step()
        finally:
            self.param_groups = groups
        for group in groups:
            if group["hidden"]:
                self._move(group)

    def _move(self, group: Mapping[str, Any]) -> None:
        by_shape: dict[torch.Size, list[Tensor]] = {}
        for weight in group["params"]:
            if weight.grad is not None:
                by_shape.setdefault(weight.shape, []).append(weight)
        for (rows, columns), weights in by_shape.items():
            steps = torch.stack([self._momentum(weight, weight.grad) for weight in weights])
            length = group["lr"] * _TYPICAL * max(rows, columns) ** 0.5
            for weight, direction in zip(weights, orthogonalised(steps, self.dtype), strict=True):
                weight.mul_(1 - group["lr"] * group["weight_decay"])
                weight.sub_(direction, alpha=length)

    def _momentum(self, weight: Tensor, gradient: Any) -> Tensor:
        """The mean of the last gradients, and the newest one again."""
        state = self.state[weight]
        if "momentum" not in state:
            state["momentum"] = torch.zeros_like(weight)
        state["momentum"].lerp_(gradient, 1 - _MOMENTUM)
        return torch.lerp(gradient, state["momentum"], _MOMENTUM)


def orthogonalised(matrices: Tensor, dtype: torch.dtype = torch.float32) -> Tensor:
    """The nearest semi-orthogonal matrices [B, M, N], about, computed in `dtype`: singular values become 0.7 to 1.2.

    Five rounds of X ← a X + (b X Xᵀ + c (X Xᵀ)²) X (Newton and Schulz) with the coefficients of Jordan et al. 2024.
    """
    is_tall = matrices.shape[1] > matrices.shape[2]
    x = matrices.mT if is_tall else matrices
    x = (x / (x.norm(dim=(1, 2), keepdim=True) + 1e-7)).to(dtype).contiguous()
    for _ in range(_ROUNDS):
        product = x @ x.mT
        x = torch.baddbmm(x, torch.baddbmm(product, product, product, beta=_B, alpha=_C), x, beta=_A)
    return (x.mT if is_tall else x).to(matrices.dtype)


OPTIMIZERS: dict[str, Any] = {"adam": Adam, "adamw": AdamW, "sgd": SGD, "muon": Muon}


def build_optimizer(
    config: TrainingConfig, parameters: Mapping[str, Tensor], device: torch.device, sparse: bool = False
) -> torch.optim.Optimizer:
    """The configured optimiser, as a fused kernel where the device has one, except for sparse gradients.

    With `layer_decay`, the weights of each layer are a group with a rate of its own: `scale` times the rate.
    """
    groups = [
        {"params": [parameters[name] for name in group.names], "scale": group.scale, "hidden": group.hidden}
        for group in _groups(config, parameters)
    ]
    moments = {} if config.optimizer == "sgd" else {"betas": (config.beta1, config.beta2), "eps": config.epsilon}
    fused = device.type in ("cpu", "cuda") and not sparse
    optimizer: torch.optim.Optimizer = OPTIMIZERS[config.optimizer](
        groups, lr=config.lr, weight_decay=config.weight_decay, fused=fused, **moments
    )
    if isinstance(optimizer, Muon) and config.precision == "bfloat16":
        optimizer.dtype = torch.bfloat16
    return optimizer


@dataclass(frozen=True)
class _Group:
    """Weights that are optimised alike."""

    names: Sequence[str]
    scale: float
    """Their rate, relative to the configured one."""
    hidden: bool
    """Whether they are matrices between hidden layers, which Muon moves in its own way."""


def _groups(config: TrainingConfig, parameters: Mapping[str, Tensor]) -> list[_Group]:
    layers = [[*parameters]] if config.layer_decay == 1 else from_the_top(parameters)
    groups = []
    for distance, names in enumerate(layers):
        hidden = [name for name in names if config.optimizer == "muon" and _is_hidden(name, parameters[name])]
        for members in (hidden, [name for name in names if name not in set(hidden)]):
            if members:
                groups.append(_Group(members, config.layer_decay**distance, members is hidden))
    return groups


def _is_hidden(name: str, weight: Tensor) -> bool:
    """Whether it is the matrix of a linear layer, and not of an embedding or of the output.

    Tables (of characters, positions, segments, hashed n-grams) and kernels have rows that are not the outputs of such a
    layer.
    """
    is_matrix = weight.dim() == 2 and name.endswith(".weight") and not name.endswith("characters.weight")
    return is_matrix and "embedding" not in name and not name.startswith("head.")


def kept_quantities(config: TrainingConfig, parameters: Mapping[str, Tensor]) -> dict[str, set[str]]:
    """What the optimiser remembers of each weight once it has moved it."""
    moments: set[str] = set() if config.optimizer == "sgd" else {"step", "exp_avg", "exp_avg_sq"}
    groups = _groups(config, parameters)
    return {name: {"momentum"} if group.hidden else moments for group in groups for name in group.names}


def optimised_names(config: TrainingConfig, parameters: Mapping[str, Tensor]) -> list[str]:
    """The names of the weights in the order of the optimiser's groups."""
    return [name for group in _groups(config, parameters) for name in group.names]


def clip_gradients(gradients: Sequence[Tensor], max_norm: float) -> float:
    """Scale all gradients so that their global norm is at most `max_norm` (0: no limit); return the norm before.

    g ← g if ‖g‖ ≤ n, else n g / ‖g‖ (Pascanu et al. 2013; McAllester's notes). PyTorch's `clip_grad_norm_` divides by
    ‖g‖ + 1e-6 instead. Sparse gradients are coalesced ones.
    """
    numbers = [gradient.values() if gradient.is_sparse else gradient for gradient in gradients]
    norm = float(whole(torch.nn.utils.get_total_norm(numbers)))
    if max_norm and max_norm < norm < float("inf"):
        torch._foreach_mul_(numbers, max_norm / norm)
    return norm
