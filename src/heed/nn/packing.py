"""Packed weights for inference on a CPU.

oneDNN multiplies by weights in a blocked layout, and rearranges plain weights at each product, which for few rows costs
more than the product. Weights that are packed once need no rearranging. The values are the same; the order of sums
differs. A product with one row takes the time of reading its weights: weights of eight bits take half the time of
bfloat16.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, cast

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from heed.core.errors import UsageError
from heed.core.progress import warn
from heed.nn.affine import has_fused_products, multiplies_bfloat16
from heed.nn.heads import LinearHead

MOST_ROWS = 2
"""Maximum number of rows for products with eight-bit weights; with four, packed weights are faster (AVX-512)."""
SMALL = 1 << 18
"""Minimum number of elements of a float32 weight for which packing pays; in bfloat16 it always does."""


class PackedLinear(nn.Module):
    """A linear layer with a packed weight; it cannot be trained."""

    def __init__(self, weight: Float[Tensor, "N K"], bias: Float[Tensor, " N"] | None) -> None:
        super().__init__()
        self.weight = torch.ops.mkldnn._reorder_linear_weight(weight.detach(), None)
        self.bias = None if bias is None else bias.detach()

    def forward(self, x: Float[Tensor, "... K"]) -> Float[Tensor, "... N"]:
        """x Wᵀ + b."""
        out: Tensor = torch.ops.mkldnn._linear_pointwise(x, self.weight, self.bias, "none", [], "")
        return out

    def gelu(self, x: Float[Tensor, "... K"]) -> Float[Tensor, "... N"]:
        """GELU(x Wᵀ + b), by its approximation with tanh."""
        out: Tensor = torch.ops.mkldnn._linear_pointwise(x, self.weight, self.bias, "gelu", [], "tanh")
        return out


class RoundedLinear(nn.Module):
    """A linear layer with eight-bit weights: integers from -127 to 127 times a bfloat16 scale for each output.

    A product with few rows uses the integers; with more rows, the packed weights that they represent.
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
    """A linear head with a packed or eight-bit weight."""

    def __init__(self, head: LinearHead, kind: type[PackedLinear | RoundedLinear] = PackedLinear) -> None:
        super().__init__(head.weight, head.pad_id, bias=False)
        self.bias = head.bias
        self.projection = kind(head.weight, head.bias)

    def logits(self, features: Float[Tensor, "... D"]) -> Float[Tensor, "... V"]:
        """Unnormalised scores of the whole vocabulary."""
        out: Tensor = self.projection(features)
        return out


def is_packed(module: nn.Module) -> bool:
    """Whether a layer's weight is packed, so that only the layer itself can multiply by it."""
    return isinstance(module, PackedLinear | RoundedLinear)


def is_rounded(model: nn.Module) -> bool:
    """Whether any weights of a model have eight bits."""
    return any(isinstance(module, RoundedLinear) for module in model.modules())


def product_with(weight: Float[Tensor, "N K"], bias: Float[Tensor, " N"] | None) -> Callable[[Tensor], Tensor]:
    """x ↦ x Wᵀ + b, for many products of few rows with one weight, which is packed if it pays. No gradients."""
    if has_fused_products() and _gains(weight):
        return PackedLinear(weight, bias)
    return lambda x: F.linear(x, weight, bias)


def function_of(layer: nn.Module) -> Callable[[Tensor], Tensor]:
    """What a linear layer computes, without the time that calling a module takes. Its weight must not be replaced."""
    if not isinstance(layer, nn.Linear):
        return layer.forward
    weight, bias = layer.weight, layer.bias
    return lambda x: F.linear(x, weight, bias)


def gelu_function_of(layer: nn.Module) -> Callable[[Tensor], Tensor]:
    """GELU, by its approximation with tanh, of what a linear layer computes; of a packed one in one call."""
    if isinstance(layer, PackedLinear):
        return layer.gelu
    linear = function_of(layer)
    return lambda x: F.gelu(linear(x), approximate="tanh")


def joint_function_of(*layers: nn.Module) -> Callable[[Tensor], Tensor]:
    """The outputs of several linear layers of one input, concatenated; of plain layers by one product."""
    if all(isinstance(layer, nn.Linear) for layer in layers):
        weight = torch.cat([cast(Tensor, layer.weight) for layer in layers]).detach()
        bias = None if layers[0].bias is None else torch.cat([cast(Tensor, layer.bias) for layer in layers]).detach()
        return lambda x: F.linear(x, weight, bias)
    functions = [function_of(layer) for layer in layers]
    return lambda x: torch.cat([function(x) for function in functions], dim=-1)


class Steps(Protocol):
    """A block that computes single tokens with fewer calls once its weights no longer change."""

    def make_step(self) -> None:
        """Prepare for them."""
        ...


def pack(model: nn.Module, rounded: bool = False) -> None:
    """Pack the weights for which it pays, if PyTorch can on this processor. Weights must not change afterwards.

    `rounded`: round the weights of a bfloat16 model to eight bits. Raises UsageError if that is impossible.
    """
    if rounded and not can_round(model):
        raise UsageError(
            "int8 is not available: it needs a CPU and a PyTorch with int8 matrix products. Use float32 or bfloat16."
        )
    for module in list(model.modules()) if has_fused_products() else []:
        for name, child in list(module.named_children()):
            if isinstance(child, nn.Linear | LinearHead) and _gains(child.weight):
                # The kernel reads 16 numbers at a time, even past the end of a row.
                kind = RoundedLinear if rounded and child.weight.shape[1] % 16 == 0 else PackedLinear
                setattr(
                    module, name,
                    kind(child.weight, child.bias) if isinstance(child, nn.Linear) else PackedHead(child, kind),
                )  # fmt: skip
    for module in model.modules():
        if hasattr(module, "make_step"):
            cast(Steps, module).make_step()


def can_round(model: nn.Module) -> bool:
    """Whether `pack` can round the weights of this model."""
    on_cpu = all(parameter.device.type == "cpu" for parameter in model.parameters())
    return on_cpu and has_rounded_products()


def has_rounded_products() -> bool:
    """Whether PyTorch multiplies by eight-bit weights on this processor."""
    return has_fused_products() and multiplies_bfloat16() and hasattr(torch, "_weight_int8pack_mm")


def name_lack_of_rounded_products() -> None:
    """Warn that PyTorch computes in float32 although eight bits were asked for, which CTranslate2 has everywhere."""
    warn(
        "PyTorch has no int8 matrix products on this processor: what CTranslate2 cannot do, such as sampling, is "
        "computed in float32."
    )


def _gains(weight: Tensor) -> bool:
    if weight.device.type != "cpu":
        return False
    return multiplies_bfloat16() if weight.dtype == torch.bfloat16 else weight.numel() >= SMALL
