"""Images as a source, and the convolutional encoder that reads them.

An image is a square of patches of `PATCH` × `PATCH` pixels, and each patch is a position of the source: rows first,
from the top left. The encoder gives one annotation vector for each patch, whose receptive field is much larger. It
normalises groups of channels (Wu & He 2018) and never across the batch, so that an image's features do not depend on
its neighbours.
"""

from __future__ import annotations

import hashlib
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, UInt8
from torch import Tensor, nn

from heed.nn.contract import Trace
from heed.nn.dropout_keys import DropoutKeys, dropout

PATCH = 8
"""Pixels of each side of a patch: the encoder halves the resolution three times."""


@dataclass(frozen=True)
class ImageSource:
    """A source of images of one size; there is no padding."""

    pixels: UInt8[Tensor, "S_rows 3 height width"]

    def __len__(self) -> int:
        return self.pixels.shape[0]

    @property
    def mask(self) -> Bool[Tensor, "S_rows S"]:
        """True for each patch."""
        height, width = (size // PATCH for size in self.pixels.shape[-2:])
        return torch.ones(len(self), height * width, dtype=torch.bool, device=self.pixels.device)

    def part(self, rows: slice) -> ImageSource:
        """Some of the images."""
        return ImageSource(self.pixels[rows])

    def repeat(self, times: int) -> ImageSource:
        """All images, repeated `times` times in sequence."""
        return ImageSource(self.pixels.repeat(times, 1, 1, 1))

    def to(self, device: torch.device) -> ImageSource:
        """The same images on another device."""
        return ImageSource(self.pixels.to(device))

    def key(self, row: int) -> Hashable:
        """A digest of the pixels of an image."""
        return hashlib.blake2b(self.pixels[row].cpu().numpy().tobytes(), digest_size=16).digest()


def _normalisation(channels: int) -> nn.GroupNorm:
    """Groups of about eight channels."""
    groups = next(groups for groups in range(max(1, channels // 8), 0, -1) if channels % groups == 0)
    return nn.GroupNorm(groups, channels)


class ResidualBlock(nn.Module):
    """Two convolutions with a shortcut, each after normalisation and ReLU (He et al. 2016, "Identity mappings")."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.norms = nn.ModuleList(_normalisation(channels) for _ in range(2))
        self.convolutions = nn.ModuleList(nn.Conv2d(channels, channels, 3, padding=1, bias=False) for _ in range(2))

    def forward(self, x: Float[Tensor, "B C height width"]) -> Float[Tensor, "B C height width"]:
        """The same shape."""
        out = x
        for norm, convolution in zip(self.norms, self.convolutions, strict=True):
            out = convolution(F.relu(norm(out)))
        return x + out


class ImageEncoder(nn.Module):
    """Convolutional encoder: three stages, each of which halves the resolution; with `read`, as readers have it.

    The kernels that halve it have an even size, so that a vector's receptive field is centred on its patch.
    """

    def __init__(self, channels: Sequence[int], num_blocks: int, dropout: float) -> None:
        """`channels`: of each stage; the last are the features of an annotation vector (C)."""
        super().__init__()
        self.num_features = channels[-1]
        self.dropout = dropout
        sizes = [3, *channels]
        self.reductions = nn.ModuleList(
            nn.Conv2d(before, after, 4, stride=2, padding=1) for before, after in pairwise(sizes)
        )
        self.stages = nn.ModuleList(
            nn.Sequential(*(ResidualBlock(size) for _ in range(num_blocks))) for size in channels
        )
        self.norm = _normalisation(channels[-1])
        for module in self.modules():
            # On the meta device there is nothing to draw, and PyTorch would import its compiler for it.
            if isinstance(module, nn.Conv2d) and not module.weight.is_meta:
                nn.init.kaiming_normal_(module.weight, nonlinearity="relu")
                if module.bias is not None:
                    nn.init.zeros_(module.bias)

    def read(
        self, source: ImageSource, dropout_keys: DropoutKeys | None = None, trace: Trace | None = None
    ) -> Float[Tensor, "B S C"]:
        """One annotation vector for each patch, with dropout."""
        x = source.pixels.to(self.norm.weight.dtype) / 64 - 2  # about zero mean and unit variance
        for reduction, stage in zip(self.reductions, self.stages, strict=True):
            x = stage(reduction(x))
        annotations = F.relu(self.norm(x)).flatten(2).transpose(1, 2)
        return dropout(annotations, self.dropout, dropout_keys, 0)
