"""Linear layers that train fast in bfloat16 on a CPU: the bias and a ReLU are part of the product's kernel.

PyTorch's own product copies the bias into the result, has oneDNN add to it, and passes over the result again for the
activation. oneDNN can do it in one pass with the same values, which takes a tenth less time, with a ReLU a sixth.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn


def has_fused_products() -> bool:
    """Whether PyTorch can call oneDNN's products with a bias, an activation or a packed weight."""
    available = torch.backends.mkldnn.is_available()  # type: ignore[no-untyped-call]
    return bool(available) and hasattr(torch.ops.mkldnn, "_reorder_linear_weight")


def multiplies_bfloat16() -> bool:
    """Whether oneDNN has products of bfloat16 for this processor."""
    return bool(torch.ops.mkldnn._is_mkldnn_bf16_supported())


def _fuses(weight: Tensor) -> bool:
    on_cpu = weight.dtype == torch.bfloat16 and weight.device.type == "cpu"
    return on_cpu and has_fused_products() and multiplies_bfloat16()


def affine(
    x: Float[Tensor, "... K"], weight: Float[Tensor, "N K"], bias: Float[Tensor, " N"] | None, relu: bool = False
) -> Float[Tensor, "... N"]:
    """x Wᵀ + b, or its positive part, outside of autograd."""
    if _fuses(weight):
        kind = "relu" if relu else "none"
        out: Tensor = torch.ops.mkldnn._linear_pointwise(x, weight, bias, kind, [], "")
        return out
    out = F.linear(x, weight, bias)
    return F.relu(out) if relu else out


class _Affine(torch.autograd.Function):
    """`affine` with its gradients, which are those of PyTorch."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None, relu: bool) -> Tensor:
        out = affine(x, weight, bias, relu)
        ctx.save_for_backward(x, weight, out if relu else None)
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        x, weight, out = ctx.saved_tensors
        of_x, of_weight, of_bias, _ = ctx.needs_input_grad
        if out is not None:
            grad = torch.ops.aten.threshold_backward(grad, out, 0)
        rows = grad.reshape(-1, grad.shape[-1])
        return (
            (rows @ weight).view(x.shape) if of_x else None,
            rows.t() @ x.reshape(-1, x.shape[-1]) if of_weight else None,
            rows.sum(0) if of_bias else None,
            None,
        )


class Linear(nn.Linear):
    """PyTorch's linear layer, with a faster training in bfloat16 on a CPU, and with an optional ReLU."""

    def forward(self, x: Float[Tensor, "... K"], relu: bool = False) -> Float[Tensor, "... N"]:
        """x Wᵀ + b, or its positive part."""
        if torch.is_grad_enabled() and _fuses(self.weight):
            out: Tensor = _Affine.apply(x, self.weight, self.bias, relu)  # type: ignore[no-untyped-call]
            return out
        out = super().forward(x)
        return F.relu(out) if relu else out
