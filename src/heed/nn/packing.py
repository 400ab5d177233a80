"""How are the weights of a model that only computes kept, so that a CPU's matrix products need not rearrange them?

oneDNN multiplies by weights in blocks of its own, and rearranges plain ones at each product, which for few rows
costs more than the product. Packed once, a product is one call. The values are the same; sums are taken in another
order.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from heed.nn.heads import LinearHead

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


class PackedHead(LinearHead):
    """A linear head whose logits come from a packed weight."""

    def __init__(self, head: LinearHead) -> None:
        super().__init__(head.weight, head.pad_id, bias=False)
        self.bias = head.bias
        self.projection = PackedLinear(head.weight, head.bias)

    def logits(self, features: Float[Tensor, "... D"]) -> Float[Tensor, "... V"]:
        """Unnormalised scores of the whole vocabulary."""
        out: Tensor = self.projection(features)
        return out


def product_with(weight: Float[Tensor, "N K"], bias: Float[Tensor, " N"] | None) -> Callable[[Tensor], Tensor]:
    """x ↦ x Wᵀ + b, for many products of few rows with one weight: packed where that gains. Without gradients."""
    if _able() and _gains(weight):
        return PackedLinear(weight, bias)
    return lambda x: F.linear(x, weight, bias)


def pack(model: nn.Module) -> None:
    """Pack what gains from it, where this processor's PyTorch can."""
    if not _able():
        return
    for module in list(model.modules()):
        for name, child in list(module.named_children()):
            if isinstance(child, nn.Linear | LinearHead) and _gains(child.weight):
                kind = PackedLinear(child.weight, child.bias) if isinstance(child, nn.Linear) else PackedHead(child)
                setattr(module, name, kind)


def _able() -> bool:
    available = torch.backends.mkldnn.is_available()  # type: ignore[no-untyped-call]
    return bool(available) and hasattr(torch.ops.mkldnn, "_reorder_linear_weight")


def _gains(weight: Tensor) -> bool:
    return weight.device.type == "cpu" and (weight.dtype == torch.bfloat16 or weight.numel() >= SMALL)
