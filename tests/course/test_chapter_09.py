"""Solutions of chapter 9: why scores are scaled, and what a permutation does to self-attention."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from heed.nn.attention import ATTENTION, Attention


def softmax_gradient(scores: Tensor) -> float:
    """Norm of diag(a) - a a^T."""
    a = scores.double().softmax(-1)
    return float((torch.diag(a) - torch.outer(a, a)).norm())


def test_the_variance_of_a_dot_product_is_its_size_and_a_sharp_softmax_learns_nothing() -> None:
    """Solution 1: each of d products has variance 1, and they are independent. So scores spread like √d, until one
    weight is 1 and the gradient 0."""
    generator = torch.Generator().manual_seed(1)
    gradients: dict[int, tuple[float, float]] = {}
    for size in (4, 64, 1024):
        queries, keys = (torch.randn(4000, size, generator=generator) for _ in range(2))
        products = (queries * keys).sum(1)
        assert products.var().item() == pytest.approx(size, rel=0.1)
        rows = products.view(-1, 8)[:200]
        plain = sum(softmax_gradient(row) for row in rows) / len(rows)
        scaled = sum(softmax_gradient(row / math.sqrt(size)) for row in rows) / len(rows)
        gradients[size] = plain, scaled
    assert gradients[1024][0] < 0.3 * gradients[4][0]
    assert gradients[1024][1] > 0.8 * gradients[4][1]


def attend(attention: Attention, h: Tensor) -> Tensor:
    """Self-attention of one text [T, D]."""
    contexts: Tensor = attention(h[None], attention.project(h[None]))[0]
    return contexts


@pytest.mark.parametrize("rung", ["dot", "scaled_dot", "projected", "projected_heads", "multi_head"])
@torch.no_grad()
def test_permuted_words_give_permuted_outputs_until_positions_are_added(rung: str) -> None:
    """Solution 2: queries, keys and values are permuted alike, so a query finds its keys wherever they are."""
    torch.manual_seed(1)
    attention, h, order = ATTENTION[rung].in_block(8, 2, 0.0), torch.randn(6, 8), torch.randperm(6)
    torch.testing.assert_close(attend(attention, h[order]), attend(attention, h)[order])
    positions = torch.randn(6, 8)
    assert not torch.allclose(
        attend(attention, h[order] + positions), attend(attention, h + positions)[order], atol=1e-2
    )
