"""Fused loss: equal to cross-entropy, with its gradients, for every label smoothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import get_args

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from heed.nn import heads
from heed.nn.contract import Smoothing
from heed.nn.heads import LinearHead, PenalisedHead, smoothing_weights
from heed.training.config import TrainingConfig

V, D, PAD = 11, 6, 0
KINDS = ["uniform", "others", "no_padding"]
MASK = torch.tensor([[True] * 5, [True] * 2 + [False] * 3, [True] * 4 + [False]])
tails = pytest.mark.parametrize("chunk", [heads.CHUNK_ELEMENTS, 3 * V], ids=["one chunk", "chunks of three"])
biases = pytest.mark.parametrize("bias", [True, False], ids=["bias", "no bias"])


def head_of(bias: bool = True, pad_id: int = PAD) -> LinearHead:
    """A head with random weights."""
    torch.manual_seed(8)
    head = LinearHead(nn.Parameter(torch.randn(V, D)), pad_id, bias)
    if head.bias is not None:
        nn.init.normal_(head.bias)
    return head


def features_and_targets() -> tuple[Tensor, Tensor]:
    """Random features, and targets: from 5 on where they are real, so that 0 or 4 can be padding."""
    generator = torch.Generator().manual_seed(9)
    features = torch.randn(3, 5, D, generator=generator, requires_grad=True)
    return features, torch.randint(5, V, (3, 5), generator=generator).masked_fill(~MASK, PAD)


def written_out(kind: str, epsilon: float, truth: int, vocab_size: int, pad_id: int) -> list[float]:
    """The target distribution of a convention, as its authors draw it."""
    if kind == "uniform":
        shares = [epsilon / vocab_size] * vocab_size
        shares[truth] += 1 - epsilon
        return shares
    others = vocab_size - 1 if kind == "others" else vocab_size - 2
    shares = [epsilon / others] * vocab_size
    shares[truth] = 1 - epsilon
    if kind == "no_padding":
        shares[pad_id] = 0.0
    return shares


def assert_same_loss_and_gradients(head: LinearHead, smoothing: Smoothing, plain: Callable[[Tensor], Tensor]) -> None:
    """`plain` takes the logits of the real tokens."""
    features, tgt_out = features_and_targets()
    inputs = [features, *head.parameters()]
    expected = plain(F.linear(features[MASK], head.weight, head.bias))
    loss_sum, nll_sum = head.loss(features, tgt_out, MASK, smoothing)
    torch.testing.assert_close(loss_sum, expected, rtol=1e-5, atol=1e-5)
    logits = head.logits(features.detach())[MASK]
    torch.testing.assert_close(nll_sum, F.cross_entropy(logits, tgt_out[MASK], reduction="sum"))
    assert not nll_sum.requires_grad
    found = torch.autograd.grad(loss_sum / MASK.sum(), inputs)
    for ours, theirs in zip(found, torch.autograd.grad(expected / 11, inputs), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-5)


@tails
@biases
@pytest.mark.parametrize("epsilon", [0.0, 0.1])
def test_uniform_smoothing_equals_the_cross_entropy_of_pytorch(
    bias: bool, epsilon: float, chunk: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(heads, "CHUNK_ELEMENTS", chunk)
    _, tgt_out = features_and_targets()
    assert_same_loss_and_gradients(
        head_of(bias),
        Smoothing(epsilon),
        lambda logits: F.cross_entropy(logits, tgt_out[MASK], reduction="sum", label_smoothing=epsilon),
    )


@tails
@biases
@pytest.mark.parametrize("pad_id", [0, 4])
@pytest.mark.parametrize("kind", KINDS)
def test_every_convention_is_the_cross_entropy_with_its_target_distribution(
    kind: str, pad_id: int, bias: bool, chunk: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(heads, "CHUNK_ELEMENTS", chunk)
    _, tgt_out = features_and_targets()
    q = torch.tensor([written_out(kind, 0.2, truth, V, pad_id) for truth in tgt_out[MASK].tolist()])
    assert_same_loss_and_gradients(
        head_of(bias, pad_id), Smoothing(0.2, kind), lambda logits: -(q * logits.log_softmax(-1)).sum()
    )


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("num_words", [1, 2])
def test_without_smoothing_a_cluster_of_one_word_or_two_is_all_truth(kind: str, num_words: int) -> None:
    assert smoothing_weights(Smoothing(0.0, kind), num_words) == (1.0, 0.0, 0.0)


def test_every_convention_of_a_recipe_exists_and_no_other() -> None:
    assert set(get_args(TrainingConfig.model_fields["smoothing_kind"].annotation)) == set(KINDS)
    with pytest.raises(ValueError, match="'uniform', 'others' or 'no_padding', got 'half'"):
        smoothing_weights(Smoothing(0.1, "half"), V)


@pytest.mark.parametrize("kind", KINDS)
def test_in_bfloat16_loss_and_gradients_are_close(kind: str) -> None:
    head, (features, tgt_out) = head_of(), features_and_targets()
    exact, exact_nll = head.loss(features, tgt_out, MASK, Smoothing(0.1, kind))
    exact_gradient = torch.autograd.grad(exact, [features, *head.parameters()])
    head.to(torch.bfloat16)
    rough = features.detach().bfloat16().requires_grad_()
    loss, nll = head.loss(rough, tgt_out, MASK, Smoothing(0.1, kind))
    assert loss.dtype == nll.dtype == torch.float32, "sums over many tokens need the digits"
    torch.testing.assert_close(loss, exact, rtol=0.02, atol=0.0)
    torch.testing.assert_close(nll, exact_nll, rtol=0.02, atol=0.0)
    for ours, theirs in zip(torch.autograd.grad(loss, [rough, *head.parameters()]), exact_gradient, strict=True):
        assert ours.dtype == torch.bfloat16
        torch.testing.assert_close(ours.float(), theirs, rtol=0.05, atol=0.05)


def test_a_truth_of_vanishing_probability_has_a_finite_loss() -> None:
    """Its softmax is 0 in float32: the loss is then not a logarithm of it."""
    head = LinearHead(nn.Parameter(torch.tensor([[0.0], [200.0], [100.0]])), pad_id=0, bias=False)
    features = torch.ones(1, 2, 1, requires_grad=True)
    loss, nll = head.loss(features, torch.tensor([[0, 1]]), torch.tensor([[True, True]]), Smoothing())
    assert nll.item() == pytest.approx(200.0)
    loss.backward()
    assert features.grad is not None
    assert features.grad.flatten().tolist() == pytest.approx([200.0, 0.0])


def test_without_a_real_token_the_loss_is_zero() -> None:
    head, (features, tgt_out) = head_of(), features_and_targets()
    loss, nll = head.loss(features, tgt_out, torch.zeros_like(MASK), Smoothing(0.1))
    loss.backward()
    assert (loss.item(), nll.item()) == (0.0, 0.0)
    assert head.weight.grad is not None
    assert not head.weight.grad.any()


@pytest.mark.parametrize("chunk", [heads.CHUNK_ELEMENTS, 4 * V, 1])
def test_forced_scores_do_not_depend_on_the_size_of_chunks(chunk: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heads, "CHUNK_ELEMENTS", chunk)
    head, (features, tgt_out) = head_of(), features_and_targets()
    expected = head.logits(features).log_softmax(-1).gather(-1, tgt_out[..., None]).squeeze(-1)
    torch.testing.assert_close(head.log_prob(features, tgt_out), expected)
    torch.testing.assert_close(head.log_prob(features[0, 0], tgt_out[0, 0]), expected[0, 0])


@biases
def test_a_shortlist_is_normalised_over_itself(bias: bool) -> None:
    head, (features, _) = head_of(bias), features_and_targets()
    subset = torch.tensor([3, 9, 1])
    expected = head.logits(features)[..., subset].log_softmax(-1)
    torch.testing.assert_close(head.log_probs(features, subset), expected)


def test_log_probs_are_float32_whatever_the_model_computes_in() -> None:
    head, (features, _) = head_of().to(torch.bfloat16), features_and_targets()
    assert head.log_probs(features.bfloat16()).dtype == torch.float32


def test_sums_of_many_rows_in_bfloat16_are_nearly_exact() -> None:
    torch.manual_seed(4)
    probs = torch.rand(5000, 7).bfloat16()
    sums = heads._column_sums(probs)
    assert sums.dtype == torch.float32
    torch.testing.assert_close(sums.double(), probs.double().sum(0), rtol=1e-3, atol=0)


def test_the_penalty_of_a_batch_is_the_sum_of_those_of_its_rows() -> None:
    features, tgt_out = features_and_targets()
    dropped = features.detach()
    plain = torch.randn(dropped.shape, generator=torch.Generator().manual_seed(10))
    features = torch.cat((dropped, plain), dim=-1)
    mask = MASK.clone()
    mask[1, 1] = False  # a row of one token has no change
    head, smoothing = PenalisedHead(head_of(), D, 2.0, 3.0), Smoothing()

    def penalty(rows: slice) -> Tensor:
        loss_sum, nll_sum = head.loss(features[rows], tgt_out[rows], mask[rows], smoothing)
        return (loss_sum - nll_sum).detach()

    torch.testing.assert_close(sum(penalty(slice(row, row + 1)) for row in range(3)), penalty(slice(3)))
    activation = 2 * sum(
        float(row[:length].square().mean(-1).sum()) for row, length in zip(dropped, (5, 1, 4), strict=True)
    )
    means = [float((plain[row, 1:n] - plain[row, : n - 1]).square().mean()) for row, n in ((0, 5), (2, 4))]
    assert float(penalty(slice(3))) == pytest.approx(activation + 3 * (5 * means[0] + 4 * means[1]), rel=1e-5)
