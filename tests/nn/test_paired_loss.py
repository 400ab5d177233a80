"""R-Drop's loss of two passes, with its gradients."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from heed.nn import heads
from heed.nn.contract import Smoothing
from heed.nn.heads import LinearHead

V, D, PAD = 13, 6, 0
MASK = torch.tensor([[True] * 5, [True] * 2 + [False] * 3, [True] * 4 + [False]])


def head_of(bias: bool = True) -> LinearHead:
    torch.manual_seed(8)
    head = LinearHead(nn.Parameter(torch.randn(V, D)), PAD, bias)
    if head.bias is not None:
        nn.init.normal_(head.bias)
    return head


def two_passes(apart: float = 1.0) -> tuple[Tensor, Tensor]:
    """Concatenated features of two passes, and the targets."""
    generator = torch.Generator().manual_seed(9)
    first = torch.randn(3, 5, D, generator=generator)
    second = first + apart * torch.randn(3, 5, D, generator=generator)
    targets = torch.randint(4, V, (3, 5), generator=generator).masked_fill(~MASK, PAD)
    return torch.cat((first, second)).requires_grad_(), targets


def the_papers(head: LinearHead, features: Tensor, targets: Tensor, epsilon: float, alpha: float) -> Tensor:
    """Equations 2 to 4 of Liang et al. (2021) written out, over the real tokens."""
    logits = [F.linear(part[MASK], head.weight, head.bias) for part in features.chunk(2)]
    nll = sum(F.cross_entropy(z, targets[MASK], reduction="sum", label_smoothing=epsilon) for z in logits)
    p, q = (z.log_softmax(-1) for z in logits)
    forward, backward = (F.kl_div(b, a, reduction="sum", log_target=True) for a, b in ((p, q), (q, p)))
    loss: Tensor = nll + alpha * (forward + backward) / 2
    return loss


@pytest.mark.parametrize("chunk", [heads.CHUNK_ELEMENTS, 3 * V], ids=["one chunk", "chunks of two pairs"])
@pytest.mark.parametrize("bias", [True, False], ids=["bias", "no bias"])
@pytest.mark.parametrize("epsilon", [0.0, 0.1])
@pytest.mark.parametrize("alpha", [0.5, 5.0])
def test_the_paired_loss_is_half_of_the_papers_with_its_gradients(
    alpha: float, epsilon: float, bias: bool, chunk: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(heads, "CHUNK_ELEMENTS", chunk)
    monkeypatch.setattr(heads, "CACHED_ELEMENTS", chunk // 2)
    head, (features, targets) = head_of(bias), two_passes()
    inputs = [features, *head.parameters()]
    expected = the_papers(head, features, targets, epsilon, alpha) / 2
    loss_sum, nll_sum = head.paired_loss(features, targets, MASK, Smoothing(epsilon), alpha)
    torch.testing.assert_close(loss_sum, expected, rtol=1e-5, atol=1e-5)
    found = torch.autograd.grad(loss_sum / MASK.sum(), inputs)
    for ours, theirs in zip(found, torch.autograd.grad(expected / 11, inputs), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-5)
    logits = [head.logits(part.detach())[MASK] for part in features.chunk(2)]
    plain = sum(F.cross_entropy(z, targets[MASK], reduction="sum") for z in logits) / 2
    torch.testing.assert_close(nll_sum, plain)
    assert not nll_sum.requires_grad


@pytest.mark.parametrize("kind", ["uniform", "others", "no_padding"])
def test_two_equal_passes_are_one(kind: str) -> None:
    head, (features, targets) = head_of(), two_passes(apart=0.0)
    smoothing = Smoothing(0.1, kind)
    found = head.paired_loss(features, targets, MASK, smoothing, 5.0)
    expected = head.loss(features[:3], targets, MASK, smoothing)
    torch.testing.assert_close(found[:2], expected[:2])
    [gradient] = torch.autograd.grad(found[0], features)
    [plain] = torch.autograd.grad(expected[0], features)
    torch.testing.assert_close(gradient[:3] + gradient[3:], plain[:3])


def test_the_order_of_the_passes_does_not_matter() -> None:
    head, (features, targets) = head_of(), two_passes()
    exchanged = torch.cat((features[3:], features[:3]))
    one, other = (head.paired_loss(x, targets, MASK, Smoothing(0.1), 2.0)[0] for x in (features, exchanged))
    torch.testing.assert_close(one, other)


def test_in_bfloat16_the_paired_loss_is_close() -> None:
    head, (features, targets) = head_of(), two_passes(apart=0.5)
    exact, _ = head.paired_loss(features, targets, MASK, Smoothing(0.1), 5.0)
    gradients = torch.autograd.grad(exact, [features, *head.parameters()])
    head.to(torch.bfloat16)
    rough = features.detach().bfloat16().requires_grad_()
    loss, _ = head.paired_loss(rough, targets, MASK, Smoothing(0.1), 5.0)
    assert loss.dtype == torch.float32
    torch.testing.assert_close(loss, exact, rtol=0.02, atol=0.0)
    for ours, theirs in zip(torch.autograd.grad(loss, [rough, *head.parameters()]), gradients, strict=True):
        torch.testing.assert_close(ours.float(), theirs, rtol=0.05, atol=0.1)


def test_without_a_real_token_the_paired_loss_is_zero() -> None:
    head, (features, targets) = head_of(), two_passes()
    loss, nll = head.paired_loss(features, targets, torch.zeros_like(MASK), Smoothing(0.1), 5.0)
    assert (loss.item(), nll.item()) == (0.0, 0.0)
