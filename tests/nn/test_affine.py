"""Linear layers in bfloat16 on a CPU: the values and gradients of PyTorch's own."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from heed.models.transformer import TransformerConfig
from heed.nn import affine
from heed.nn.affine import Linear
from heed.nn.feed_forward import FeedForward

pytestmark = pytest.mark.processor
DTYPES = [torch.float32, torch.bfloat16]


def with_gradients(layer: nn.Module, x: Tensor, relu: bool) -> list[Tensor]:
    """The output of a layer and the gradients of its input, weight and bias."""
    leaf = x.clone().requires_grad_()
    out = layer(leaf, relu=True) if relu and isinstance(layer, Linear) else layer(leaf)
    out = F.relu(out) if relu and not isinstance(layer, Linear) else out
    out.backward(torch.linspace(-1, 1, out.numel()).view(out.shape).to(out.dtype))
    assert leaf.grad is not None
    return [out.detach(), leaf.grad, *(p.grad for p in layer.parameters() if p.grad is not None)]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("relu", [True, False])
def test_values_and_gradients_are_those_of_pytorch(dtype: torch.dtype, bias: bool, relu: bool) -> None:
    torch.manual_seed(0)
    ours, x = Linear(48, 40, bias, dtype=dtype), torch.randn(5, 7, 48, dtype=dtype)
    theirs = nn.Linear(48, 40, bias, dtype=dtype)
    theirs.load_state_dict(ours.state_dict())
    found, expected = with_gradients(ours, x, relu), with_gradients(theirs, x, relu)
    assert len(found) == len(expected) == 3 + bias
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other)


@pytest.mark.parametrize("number", [16, 17])
def test_the_output_may_be_changed_in_place(number: int) -> None:
    layer, x = Linear(16, 8, dtype=torch.bfloat16), torch.randn(number, 16, dtype=torch.bfloat16)
    expected = layer(x) + 1
    torch.testing.assert_close(layer(x).add_(1), expected)
    layer(x).add_(1).sum().backward()
    assert layer.bias.grad is not None and layer.bias.grad.eq(number).all()


def test_frozen_weights_and_inputs_get_no_gradient() -> None:
    layer, x = Linear(16, 8, dtype=torch.bfloat16), torch.randn(3, 16, dtype=torch.bfloat16, requires_grad=True)
    layer.weight.requires_grad_(False)
    layer(x).sum().backward()
    assert layer.weight.grad is None and layer.bias.grad is not None and x.grad is not None
    layer(x.detach()).sum().backward()


@pytest.mark.skipif(not (affine.has_fused_products() and affine.multiplies_bfloat16()), reason="no bfloat16 products")
def test_training_in_bfloat16_uses_the_fused_product(monkeypatch: pytest.MonkeyPatch) -> None:
    layer = FeedForward(TransformerConfig().d_model, 64, "relu").to(torch.bfloat16)
    plain, x = copy.deepcopy(layer), torch.randn(2, 3, 256, dtype=torch.bfloat16)
    fused = layer(x)
    step = fused.grad_fn
    while step is not None and "Affine" not in type(step).__name__:
        step = step.next_functions[0][0]
    assert step is not None
    monkeypatch.setattr(affine, "_fuses", lambda weight: False)
    torch.testing.assert_close(fused, plain(x))


@pytest.mark.skipif(not (affine.has_fused_products() and affine.multiplies_bfloat16()), reason="no bfloat16 products")
def test_training_multiplies_few_numbers_of_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = set()
    product = affine.affine

    def counted(x: Tensor, *others: Any) -> Tensor:
        sizes.add(len(x))
        return product(x, *others)

    monkeypatch.setattr(affine, "affine", counted)
    layer = Linear(8, 4, dtype=torch.bfloat16)
    for number in range(1, 2049):
        out = layer(torch.ones(number, 8, dtype=torch.bfloat16))
        assert out.shape == (number, 4)
    assert len(sizes) == 8 + 4 * 8  # up to 128, and of each further power of two
    assert max(sizes) == 2048
