"""Gradient clipping and optimisers.

ASGD and NT-ASGD are SGD with an average of the weights beside it: `training.average` (see `heed.training.weights`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from heed.training.config import TrainingConfig
from heed.training.sharding import whole


def clip_gradients(gradients: Sequence[Tensor], max_norm: float) -> float:
    """Scale all gradients together so that their norm is at most `max_norm` (0: any); the norm that they had.

    g ← g where ‖g‖ ≤ n, and n g / ‖g‖ otherwise (Pascanu et al. 2013; McAllester's notes). PyTorch's `clip_grad_norm_`
    divides by ‖g‖ + 1e-6.
    """
    norm = float(whole(torch.nn.utils.get_total_norm(list(gradients))))
    if max_norm and max_norm < norm < float("inf"):
        torch._foreach_mul_(list(gradients), max_norm / norm)
    return norm


def _adam(
    kind: type[torch.optim.Adam] | type[torch.optim.AdamW],
    config: TrainingConfig,
    parameters: list[Tensor],
    fused: bool,
) -> torch.optim.Optimizer:
    return kind(
        parameters, lr=config.lr, betas=(config.beta1, config.beta2), eps=config.epsilon,
        weight_decay=config.weight_decay, fused=fused,
    )  # fmt: skip


def adam(config: TrainingConfig, parameters: list[Tensor], fused: bool) -> torch.optim.Optimizer:
    """Adam (Kingma & Ba 2015); weight decay is L2 regularisation, a part of the gradient."""
    return _adam(torch.optim.Adam, config, parameters, fused)


def adamw(config: TrainingConfig, parameters: list[Tensor], fused: bool) -> torch.optim.Optimizer:
    """Adam with decoupled weight decay (Loshchilov & Hutter 2019)."""
    return _adam(torch.optim.AdamW, config, parameters, fused)


def sgd(config: TrainingConfig, parameters: list[Tensor], fused: bool) -> torch.optim.Optimizer:
    """w ← w - lr (g + weight_decay · w)."""
    return torch.optim.SGD(parameters, lr=config.lr, weight_decay=config.weight_decay, fused=fused)


OPTIMIZERS: dict[str, Callable[[TrainingConfig, list[Tensor], bool], torch.optim.Optimizer]] = {
    "adam": adam, "adamw": adamw, "sgd": sgd,
}  # fmt: skip


def build_optimizer(config: TrainingConfig, parameters: list[Tensor], device: torch.device) -> torch.optim.Optimizer:
    """The configured optimiser of these weights, in one kernel where the device has it."""
    return OPTIMIZERS[config.optimizer](config, parameters, device.type in ("cpu", "cuda"))
