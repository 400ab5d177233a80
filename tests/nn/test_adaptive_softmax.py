"""Adaptive softmax: equal to PyTorch's, a distribution, and trained only where a batch has words."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from heed.core.errors import UsageError
from heed.nn.adaptive_softmax import AdaptiveHead
from heed.nn.contract import Smoothing

D, V, CUTOFFS = 64, 40, (7, 15, 30)


def both() -> tuple[AdaptiveHead, nn.AdaptiveLogSoftmaxWithLoss]:
    """Ours and PyTorch's with the same weights."""
    torch.manual_seed(4)
    ours, theirs = AdaptiveHead(D, V, CUTOFFS), nn.AdaptiveLogSoftmaxWithLoss(D, V, list(CUTOFFS), div_value=4.0)
    ours.root.weight.data = theirs.head.weight.data
    for cluster, tail in zip(ours.clusters, theirs.tail, strict=True):
        cluster.project.weight.data, cluster.words.weight.data = (layer.weight.data for layer in tail)
    return ours, theirs


def some_words(num_rows: int = 4, length: int = 25) -> tuple[Tensor, Tensor]:
    """Features and words, of all clusters."""
    torch.manual_seed(5)
    return torch.randn(num_rows, length, D), torch.randint(0, V, (num_rows, length))


def test_it_equals_pytorchs() -> None:
    ours, theirs = both()
    features, words = some_words()
    expected = theirs.log_prob(features.flatten(0, 1)).view(4, 25, V)
    torch.testing.assert_close(ours.log_probs(features), expected)
    torch.testing.assert_close(
        ours.log_prob(features, words), theirs(features.flatten(0, 1), words.flatten())[0].view(4, 25)
    )


def test_it_is_a_distribution() -> None:
    ours, _ = both()
    features, _ = some_words()
    torch.testing.assert_close(ours.log_probs(features).exp().sum(-1), torch.ones(4, 25))


def test_the_loss_and_its_gradients_are_those_of_the_definition() -> None:
    ours, _ = both()
    features, words = some_words()
    features.requires_grad_()
    mask = torch.arange(25) < torch.tensor([25, 3, 10, 25])[:, None]
    wanted = [features, *ours.parameters()]
    loss_sum, nll_sum = ours.loss(features, words, mask, Smoothing())
    defined = -ours.log_probs(features).gather(-1, words[..., None]).squeeze(-1)[mask].sum()
    torch.testing.assert_close(loss_sum, defined)
    torch.testing.assert_close(nll_sum, defined.detach())
    for found, expected in zip(
        torch.autograd.grad(loss_sum, wanted), torch.autograd.grad(defined, wanted), strict=True
    ):
        torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)


def test_a_batch_without_rare_words_has_gradients_of_zero_for_them() -> None:
    ours, _ = both()
    features, words = some_words()
    loss_sum, _ = ours.loss(features, words % CUTOFFS[0], words >= 0, Smoothing())
    grads = torch.autograd.grad(loss_sum, list(ours.parameters()))
    assert [bool(grad.any()) for grad in grads] == [True] + [False] * 6


@pytest.mark.parametrize("cutoffs", [(0,), (5, 5), (9, 3), (V,)])
def test_cutoffs_that_do_not_ascend_inside_the_vocabulary_are_refused(cutoffs: tuple[int, ...]) -> None:
    with pytest.raises(UsageError, match=r"model\.cutoffs must be ascending"):
        AdaptiveHead(D, V, cutoffs)


def test_label_smoothing_is_refused() -> None:
    ours, _ = both()
    features, words = some_words()
    with pytest.raises(UsageError, match="label_smoothing = 0"):
        ours.loss(features, words, words >= 0, Smoothing(0.1))
