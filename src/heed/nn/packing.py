"""Packed weights for inference, so that a CPU's matrix products need not rearrange them.

oneDNN multiplies by weights in blocks of its own, and rearranges plain ones at each product, which for few rows
costs more than the product. Packed once, a product is one call. The values are the same; sums are taken in another
order. For one row, what a product takes is the reading of its weights: those that are rounded to eight bits are read in
half the time of bfloat16.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from heed.core.errors import UsageError
from heed.nn.heads import LinearHead

MOST_ROWS = 2
"""From four rows on, a product with packed weights is faster (AVX-512)."""
SMALL = 1 << 18
"""Elements of a float32 weight from which on packing gains; bfloat16 always does."""


class PackedLinear(nn.Module):
    """A linear layer whose weight is packed; it cannot be trained."""

    def __init__(self, weight: Float[Tensor, "N K"], bias: Float[Tensor, " N"] | None) -> None:
        super().__init__()
        self.weight = torch.ops.mkldnn._reorder_linear_weight(weight.detach(), None)
        self.bias = None if bias is None else bias.detach()

    def forward(self, x: Float[Tensor, "... K"]) -> Float[Tensor, "... N"]:
        """x Wᵀ + b."""
        out: Tensor = torch.ops.mkldnn._linear_pointwise(x, self.weight, self.bias, "none", [], "")
        return out


class RoundedLinear(nn.Module):
    """A linear layer whose weights are rounded to whole numbers up to 127 times a number for each output, in bfloat16.

    A product with few rows reads the whole numbers; with more, the packed weights that they stand for.
    """

    def __init__(self, weight: Float[Tensor, "N K"], bias: Float[Tensor, " N"] | None) -> None:
        super().__init__()
        exact = weight.detach().float()
        self.scale = (exact.abs().amax(dim=1) / 127).clamp_min(1e-30).to(torch.bfloat16)
        steps = self.scale.float()[:, None]
        self.whole = (exact / steps).round().clamp(-127, 127).to(torch.int8)
        self.bias = None if bias is None else bias.detach()
        self.packed = PackedLinear((self.whole.float() * steps).to(torch.bfloat16), self.bias)

    def forward(self, x: Float[Tensor, "... K"]) -> Float[Tensor, "... N"]:
        """x Wᵀ + b."""
        rows = x.reshape(-1, x.shape[-1])
        if len(rows) > MOST_ROWS:
            out: Tensor = self.packed(x)
            return out
        product = torch._weight_int8pack_mm(rows, self.whole, self.scale)
        product = product if self.bias is None else product + self.bias
        return product.view(*x.shape[:-1], product.shape[-1])


class PackedHead(LinearHead):
    """A linear head whose logits come from a packed, or rounded, weight."""

    def __init__(self, head: LinearHead, kind: type[PackedLinear | RoundedLinear] = PackedLinear) -> None:
        super().__init__(head.weight, head.pad_id, bias=False)
        self.bias = head.bias
        self.projection = kind(head.weight, head.bias)

    def logits(self, features: Float[Tensor, "... D"]) -> Float[Tensor, "... V"]:
        """Unnormalised scores of the whole vocabulary."""
        out: Tensor = self.projection(features)
        return out


def is_packed(module: nn.Module) -> bool:
    """Whether a layer's weight is in a form that only the layer itself can multiply by."""
    return isinstance(module, PackedLinear | RoundedLinear)


def is_rounded(model: nn.Module) -> bool:
    """Whether any of a model's weights are rounded to eight bits."""
    return any(isinstance(module, RoundedLinear) for module in model.modules())


def product_with(weight: Float[Tensor, "N K"], bias: Float[Tensor, " N"] | None) -> Callable[[Tensor], Tensor]:
    """x ↦ x Wᵀ + b, for many products of few rows with one weight: packed where that gains. Without gradients."""
    if _able() and _gains(weight):
        return PackedLinear(weight, bias)
    return lambda x: F.linear(x, weight, bias)


def pack(model: nn.Module, rounded: bool = False) -> None:
    """Pack what gains from it, where this processor's PyTorch can.

    `rounded`: the weights of a model in bfloat16 to eight bits. Raises UsageError where that cannot be done.
    """
    if rounded and not can_round(model):
        raise UsageError("int8 is for a CPU, and this PyTorch cannot do it here: choose float32 or bfloat16.")
    if not _able():
        return
    for module in list(model.modules()):
        for name, child in list(module.named_children()):
            if isinstance(child, nn.Linear | LinearHead) and _gains(child.weight):
                # The kernel reads 16 numbers at once, also behind the end of a row.
                kind = RoundedLinear if rounded and child.weight.shape[1] % 16 == 0 else PackedLinear
                setattr(
                    module, name,
                    kind(child.weight, child.bias) if isinstance(child, nn.Linear) else PackedHead(child, kind),
                )  # fmt: skip


def can_round(model: nn.Module) -> bool:
    """Whether `pack` can round the weights of this model."""
    on_cpu = all(parameter.device.type == "cpu" for parameter in model.parameters())
    return on_cpu and _able() and _multiplies_bfloat16() and hasattr(torch, "_weight_int8pack_mm")


def _able() -> bool:
    available = torch.backends.mkldnn.is_available()  # type: ignore[no-untyped-call]
    return bool(available) and hasattr(torch.ops.mkldnn, "_reorder_linear_weight")


def _multiplies_bfloat16() -> bool:
    """Whether oneDNN has products of bfloat16 for this processor."""
    return bool(torch.ops.mkldnn._is_mkldnn_bf16_supported())


def _gains(weight: Tensor) -> bool:
    if weight.device.type != "cpu":
        return False
    return _multiplies_bfloat16() if weight.dtype == torch.bfloat16 else weight.numel() >= SMALL
