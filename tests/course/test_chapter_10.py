"""Solutions of chapter 10: an offset is a rotation, and three kinds of label smoothing."""

from __future__ import annotations

import math

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from heed.nn.embeddings import interleaved


def rotation(offset: int, size: int) -> Tensor:
    """Solution 1: M_k, which turns pair i by k · 10000^(-2i/d): sin(a + b) = sin a cos b + cos a sin b, and so on."""
    matrix = torch.zeros(size, size, dtype=torch.float64)
    for i in range(0, size, 2):
        angle = offset / 10000 ** (i / size)
        matrix[i, i] = matrix[i + 1, i + 1] = math.cos(angle)
        matrix[i, i + 1], matrix[i + 1, i] = math.sin(angle), -math.sin(angle)
    return matrix


@pytest.mark.parametrize("offset", [1, 3, 40])
def test_one_matrix_moves_all_positions_by_an_offset(offset: int) -> None:
    positions = interleaved(100, 16).double()
    moved = positions[:-offset] @ rotation(offset, 16).T
    torch.testing.assert_close(moved, positions[offset:], rtol=0, atol=1e-4)
    torch.testing.assert_close(rotation(offset, 16) @ rotation(-offset, 16), torch.eye(16, dtype=torch.float64))


def smoothed(vocab_size: int, epsilon: float, kind: str) -> Tensor:
    """The target distribution of word 2, in the three forms."""
    if kind == "picture":
        target = torch.full((vocab_size,), epsilon / (vocab_size - 1))
        target[2] = 1 - epsilon
    elif kind == "annotated":  # padding, word 0, gets nothing
        target = torch.full((vocab_size,), epsilon / (vocab_size - 2))
        target[0], target[2] = 0.0, 1 - epsilon
    else:
        target = torch.full((vocab_size,), epsilon / vocab_size)
        target[2] += 1 - epsilon
    return target


@pytest.mark.parametrize("kind", ["picture", "annotated", "pytorch"])
def test_smoothing_by_a_divergence_has_the_same_gradient_and_another_value(kind: str) -> None:
    """Solution 2: cross-entropy = KL(q || p) + H(q), and H(q) does not depend on the model."""
    torch.manual_seed(1)
    logits, target = torch.randn(5, requires_grad=True), smoothed(5, 0.1, kind)
    assert target.sum().item() == pytest.approx(1)
    log_p = logits.log_softmax(-1)
    cross_entropy = -(target * log_p).sum()
    divergence = F.kl_div(log_p, target, reduction="sum")
    entropy = torch.special.entr(target).sum()
    torch.testing.assert_close(cross_entropy, divergence + entropy)
    gradients = [torch.autograd.grad(loss, logits, retain_graph=True)[0] for loss in (cross_entropy, divergence)]
    torch.testing.assert_close(*gradients)
    torch.testing.assert_close(gradients[0], logits.softmax(-1).detach() - target)  # so the best p is q, not certainty
    built_in = F.cross_entropy(logits[None], torch.tensor([2]), label_smoothing=0.1)
    assert (abs(built_in.item() - cross_entropy.item()) < 1e-6) == (kind == "pytorch")
