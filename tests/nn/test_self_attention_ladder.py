"""Lecture 9's ladder of self-attention: each rung equals its definition in a Transformer's encoder block."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import Tensor

from heed.models.transformer import EncoderBlock, TransformerConfig
from heed.nn.attention import MultiHeadAttention

D_MODEL, HEADS = 8, 2


def softmax_of(queries: Tensor, keys: Tensor, values: Tensor, scale: float) -> Tensor:
    """Σ_j exp(scale · q_i · k_j) / Σ_k exp(scale · q_i · k_k) · v_j, position by position."""
    contexts = []
    for query in queries:
        shares = [math.exp(scale * float(query @ key)) for key in keys]
        contexts.append(sum(share / sum(shares) * value for share, value in zip(shares, values, strict=True)))
    return torch.stack(contexts)  # type: ignore[arg-type]


def projections(attention: Any, h: Tensor) -> list[Tensor]:
    """Q, K and V with their biases."""
    key, value = attention.key_value.weight.chunk(2)
    key_bias, value_bias = attention.key_value.bias.chunk(2)
    pairs = ((attention.query.weight, attention.query.bias), (key, key_bias), (value, value_bias))
    return [h @ weight.T + bias for weight, bias in pairs]


def rung(name: str, attention: Any, h: Tensor) -> Tensor:
    """The definition of a rung, for the vectors of one text."""
    if name in ("dot", "scaled_dot"):
        return softmax_of(h, h, h, 1.0 if name == "dot" else 1 / math.sqrt(D_MODEL))
    num_heads = 1 if name == "projected" else HEADS
    heads = zip(*(each.chunk(num_heads, dim=-1) for each in projections(attention, h)), strict=True)
    contexts = torch.cat([softmax_of(*head, 1 / math.sqrt(D_MODEL // num_heads)) for head in heads], dim=-1)
    return contexts @ attention.output.weight.T + attention.output.bias if name == "multi_head" else contexts


@pytest.mark.parametrize("name", ["dot", "scaled_dot", "projected", "projected_heads", "multi_head"])
@torch.no_grad()
def test_each_rung_equals_its_definition(name: str) -> None:
    torch.manual_seed(2)
    config = TransformerConfig(d_model=D_MODEL, num_heads=HEADS, attention=name)
    attention = EncoderBlock(config).attention
    for parameter in attention.parameters():
        torch.nn.init.normal_(parameter, std=0.5)
    h = torch.randn(1, 5, D_MODEL)
    found = attention(h, attention.project(h))
    torch.testing.assert_close(found[0], rung(name, attention, h[0]), rtol=1e-4, atol=1e-5)


def test_each_rung_has_the_weights_of_its_definition() -> None:
    def size(name: str) -> int:
        config = TransformerConfig(d_model=D_MODEL, num_heads=HEADS, attention=name)
        return sum(weight.numel() for weight in EncoderBlock(config).attention.parameters())

    matrix = D_MODEL * D_MODEL + D_MODEL
    assert [size(name) for name in ("dot", "scaled_dot", "projected", "projected_heads", "multi_head")] == [
        0, 0, 3 * matrix, 3 * matrix, 4 * matrix,
    ]  # fmt: skip
    assert isinstance(EncoderBlock(TransformerConfig()).attention, MultiHeadAttention)
