"""Optimisers and gradient clipping.

ASGD and NT-ASGD are SGD with an average of the weights: `training.average` (see `heed.training.weights`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from heed.training.config import TrainingConfig
from heed.training.layers import from_the_top
from heed.training.sharding import whole

OPTIMIZERS: dict[str, Any] = {"adam": torch.optim.Adam, "adamw": torch.optim.AdamW, "sgd": torch.optim.SGD}
"""Adam (Kingma & Ba 2015) and SGD with L2 regularisation; AdamW (Loshchilov & Hutter 2019) decouples the decay."""


def build_optimizer(
    config: TrainingConfig, parameters: Mapping[str, Tensor], device: torch.device, sparse: bool = False
) -> torch.optim.Optimizer:
    """The configured optimiser, as a fused kernel where the device has one, except for sparse gradients.

    With `layer_decay`, the weights of each layer are a group with a rate of its own: `scale` times the rate.
    """
    groups = [
        {"params": [parameters[name] for name in names], "scale": config.layer_decay**distance}
        for distance, names in enumerate(_groups(config, parameters))
    ]
    moments = {} if config.optimizer == "sgd" else {"betas": (config.beta1, config.beta2), "eps": config.epsilon}
    fused = device.type in ("cpu", "cuda") and not sparse
    optimizer: torch.optim.Optimizer = OPTIMIZERS[config.optimizer](
        groups, lr=config.lr, weight_decay=config.weight_decay, fused=fused, **moments
    )
    return optimizer


def _groups(config: TrainingConfig, names: Iterable[str]) -> list[list[str]]:
    return [[*names]] if config.layer_decay == 1 else from_the_top(names)


def optimised_names(config: TrainingConfig, names: Iterable[str]) -> list[str]:
    """The names of the weights in the order of the optimiser's groups."""
    return [name for group in _groups(config, names) for name in group]


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
