"""The feed-forward layer of Transformers, and the activations that a recipe can name."""

from __future__ import annotations

from collections.abc import Callable

import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from heed.nn.affine import Linear
from heed.nn.packing import function_of

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {"relu": F.relu, "gelu": F.gelu, "silu": F.silu}


class FeedForward(nn.Module):
    """Two layers applied to each position: max(0, x W_1 + b_1) W_2 + b_2 (Vaswani et al. 2017, equation 2)."""

    def __init__(self, d_model: int, d_ff: int, activation: str) -> None:
        super().__init__()
        self.expand = Linear(d_model, d_ff)
        self.contract = Linear(d_ff, d_model)
        self.activation = ACTIVATIONS[activation]
        for linear in (self.expand, self.contract):
            nn.init.xavier_uniform_(linear.weight)
            nn.init.zeros_(linear.bias)

    def function(self) -> Callable[[Tensor], Tensor]:
        """`forward` with few calls, for weights that no longer change."""
        expand, activation, contract = function_of(self.expand), self.activation, function_of(self.contract)
        return lambda x: contract(activation(expand(x)))

    def forward(self, x: Float[Tensor, "B T D"]) -> Float[Tensor, "B T D"]:
        """The same shape."""
        if self.activation is F.relu and isinstance(self.expand, Linear):  # not a packed one
            inner = self.expand(x, relu=True)
        else:
            inner = self.activation(self.expand(x))
        out: Tensor = self.contract(inner)
        return out
