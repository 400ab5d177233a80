"""Claim of the Transformer summary: multi-head attention can compute a convolution."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor

from heed.nn.attention import MultiHeadAttention

WIDTH, SHARPNESS, CHANNELS = 3, 60.0, 3
KEY_SIZE = 4


def on_grid(image: Tensor) -> Tensor:
    """`[H · W, D]`: the channels of each pixel, then |p|², p_1 and p_2 of its position p, then zeros."""
    _, height, width = image.shape
    grid = torch.stack(torch.meshgrid(torch.arange(height), torch.arange(width), indexing="ij"), dim=-1)
    position = grid.reshape(-1, 2).double()
    square = (position**2).sum(1, keepdim=True)
    filled = torch.cat((image.reshape(CHANNELS, -1).T, square, position), dim=1)
    return F.pad(filled, (0, WIDTH**2 * KEY_SIZE - filled.shape[1]))


def convolving(kernel: Tensor) -> MultiHeadAttention:
    """A head for each offset Δ of the kernel, which looks at p + Δ alone.

    The score -α |p + Δ - s|² of position s is, up to what all s share, α (-|s|² + 2 (p + Δ) · s): the product of a key
    (|s|², s) and a query that are both linear in the features of their positions.
    """
    layer = MultiHeadAttention(WIDTH**2 * KEY_SIZE, WIDTH**2).double()
    for parameter in layer.parameters():
        torch.nn.init.zeros_(parameter)
    scale = SHARPNESS * math.sqrt(KEY_SIZE)
    key, value = layer.key_value.weight.data.chunk(2)
    for head in range(WIDTH**2):
        first, (down, right) = head * KEY_SIZE, divmod(head, WIDTH)
        query, bias = layer.query.weight.data, layer.query.bias.data
        bias[first] = -scale
        for axis, offset in enumerate((down - WIDTH // 2, right - WIDTH // 2)):
            query[first + 1 + axis, CHANNELS + 1 + axis] = 2 * scale
            bias[first + 1 + axis] = 2 * scale * offset
        key[first : first + 3, CHANNELS : CHANNELS + 3] = torch.eye(3)
        value[first : first + CHANNELS, :CHANNELS] = torch.eye(CHANNELS)
        layer.output.weight.data[: len(kernel), first : first + CHANNELS] = kernel[:, :, down, right]
    return layer


@torch.no_grad()
def test_k_squared_heads_compute_a_convolution_of_k_by_k() -> None:
    """Transformer summary, "Can we simulate convolution with multi-head?!": yes, with k² heads that are functions of
    positions (Cordonnier et al. 2020, theorem 1). Built here, and equal to a 3 x 3 convolution with zeros around."""
    torch.manual_seed(0)
    image, kernel = torch.randn(CHANNELS, 5, 6).double(), torch.randn(4, CHANNELS, WIDTH, WIDTH).double()
    layer = convolving(kernel)
    padded = on_grid(F.pad(image, (1, 1, 1, 1)))
    inside = F.pad(torch.ones(5, 6, dtype=torch.bool), (1, 1, 1, 1)).flatten()
    found = layer(padded[None, inside], layer.project(padded[None]))[0, :, :4]
    expected = F.conv2d(image[None], kernel, padding=1)[0].flatten(1).T
    torch.testing.assert_close(found, expected)
