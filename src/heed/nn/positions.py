"""Sinusoidal position encodings.

Sinusoidal position encodings (Vaswani et al. 2017, section 3.5): PE(pos, 2i) = sin(pos / 10000^(2i/D)),
PE(pos, 2i+1) = cos(pos / 10000^(2i/D)). The same numbers are laid out in two ways in the field: interleaved,
as the paper writes them, and half-split (all sines, then all cosines), as tensor2tensor and Marian do.
McAllester's notes (TTIC 31230) concatenate them to the embedding instead of adding them.
"""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor


def _angles(num_positions: int, size: int) -> tuple[Tensor, Tensor]:
    if size % 2:
        raise ValueError(f"a sinusoidal encoding has an even size, got {size}")
    positions = torch.arange(num_positions, dtype=torch.float64)[:, None]
    rates = 10000.0 ** (-torch.arange(0, size, 2, dtype=torch.float64) / size)
    return (positions * rates).sin(), (positions * rates).cos()


def interleaved(num_positions: int, size: int) -> Float[Tensor, "P D"]:
    """Sine and cosine in turn, as the paper writes them."""
    if torch.get_default_device().type == "meta":  # only the shape is wanted
        return torch.empty(num_positions, size)
    sines, cosines = _angles(num_positions, size)
    return torch.stack((sines, cosines), dim=-1).reshape(num_positions, size).float()


def half_split(num_positions: int, size: int) -> Float[Tensor, "P D"]:
    """All sines, then all cosines."""
    if torch.get_default_device().type == "meta":
        return torch.empty(num_positions, size)
    return torch.cat(_angles(num_positions, size), dim=-1).float()


POSITIONS = {"interleaved": interleaved, "half_split": half_split}
