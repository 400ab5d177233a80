"""Products with one weight at every step of a sequence, with one computation of its gradient.

Autograd accumulates a weight's gradient step by step: T products of few rows, each with a pass over the whole gradient.
Here each step keeps its input and the gradient of its output, and after the backward pass of all steps, one product of
their B · T rows gives the gradient of the weight. On a CPU the weight is packed once for all steps.
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
"""Minimum number of steps from which packing and one gradient pay."""


class _Steps:
    """Shared data of the steps of one sequence: the weight, and the inputs and gradients of the backward pass."""

    def __init__(self, weight: Float[Tensor, "N K"], bias: Float[Tensor, " N"] | None) -> None:
        self.weight = weight.detach()
        self.forward = product_with(self.weight, None if bias is None else bias.detach())
        self.inputs: list[Tensor] = []
        self.gradients: list[Tensor] = []

    @cached_property
    def backward(self) -> Product:
        """The gradient of the input from that of the output."""
        return product_with(self.weight.t().contiguous(), None)

    def collect(self) -> tuple[Tensor, Tensor]:
        """The gradients of weight and bias, summed over all steps."""
        gradients, inputs = torch.cat(self.gradients), torch.cat(self.inputs)
        self.gradients, self.inputs = [], []
        return gradients.t() @ inputs, gradients.sum(0)


class _Weight(torch.autograd.Function):
    """The weight as an input of all steps: autograd visits it after the backward pass of all steps."""

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
    if is_packed(linear):  # for inference
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
