"""Products with one weight at every step of a sequence, whose gradient is computed once.

Autograd adds a weight's gradient up step by step: T times a product of few rows, and a pass over the whole gradient.
Here each step keeps its input and the gradient of its output, and when all steps have been gone back through, one
product of their B · T rows gives the gradient of the weight. On a CPU the weight is packed once for all steps.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from heed.nn.dropout_keys import DropoutKeys
from heed.nn.packing import is_packed, product_with

Product = Callable[[Tensor], Tensor]
FEW_STEPS = 8
"""For fewer steps than this nothing is gained by packing, nor by taking gradients together."""


class _Steps:
    """What the steps of one sequence share: the weight, and what they leave behind on the way back."""

    def __init__(self, weight: Float[Tensor, "N K"], bias: Float[Tensor, " N"] | None) -> None:
        self.weight = weight.detach()
        self.forward = product_with(self.weight, None if bias is None else bias.detach())
        self.inputs: list[Tensor] = []
        self.gradients: list[Tensor] = []

    @cached_property
    def backward(self) -> Product:
        """From the gradient of the output to that of the input."""
        return product_with(self.weight.t().contiguous(), None)

    def collect(self) -> tuple[Tensor, Tensor]:
        """The gradients of weight and bias, from all steps."""
        gradients, inputs = torch.cat(self.gradients), torch.cat(self.inputs)
        self.gradients, self.inputs = [], []
        return gradients.t() @ inputs, gradients.sum(0)


class _Weight(torch.autograd.Function):
    """Stands for the weight before all steps: autograd comes back to it when it has been through all of them."""

    @staticmethod
    def forward(ctx: Any, weight: Tensor, bias: Tensor | None, steps: _Steps) -> Tensor:
        ctx.steps, ctx.has_bias = steps, bias is not None
        ctx.set_materialize_grads(False)
        return weight.new_empty(0)

    @staticmethod
    def backward(ctx: Any, grad: Tensor | None) -> Any:
        grad_weight, grad_bias = ctx.steps.collect()
        return grad_weight, grad_bias if ctx.has_bias else None, None


class _Step(torch.autograd.Function):
    """x Wᵀ + b at one step."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, before: Tensor, steps: _Steps) -> Tensor:
        ctx.steps = steps
        ctx.save_for_backward(x)
        out: Tensor = steps.forward(x)
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        ctx.steps.gradients.append(grad)
        ctx.steps.inputs.append(*ctx.saved_tensors)
        return ctx.steps.backward(grad), None, None


def repeated_product(
    linear: nn.Module, num_steps: int, dropout: float = 0.0, dropout_keys: DropoutKeys | None = None, site: int = 0
) -> Product:
    """x ↦ `linear(x)` for the rows `[B, K]` of each of `num_steps` steps; `dropout` is DropConnect's."""
    if is_packed(linear):  # and only computing
        return linear
    weight, bias = linear.weight, linear.bias
    assert isinstance(weight, Tensor)
    assert bias is None or isinstance(bias, Tensor)
    if dropout_keys is not None:
        weight = dropout_keys.weights(weight, dropout, site)
    if num_steps < FEW_STEPS:
        return lambda x: F.linear(x, weight, bias)
    if not torch.is_grad_enabled():
        return product_with(weight, bias)
    steps = _Steps(weight, bias)
    before: Tensor = _Weight.apply(weight, bias, steps)  # type: ignore[no-untyped-call]
    return lambda x: _Step.apply(x, before, steps)  # type: ignore[no-untyped-call]
