"""Transformer blocks: residual sublayers of attention and feed-forward (Vaswani et al. 2017, section 3.1).

Post-norm, as published: LayerNorm(x + Dropout(Sublayer(x))). Pre-norm (Xiong et al. 2020):
x + Dropout(Sublayer(LayerNorm(x))), with one more normalisation after the last block.
"""

from __future__ import annotations

from collections.abc import Callable

import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor, nn

from heed.nn.attention import ATTENTION, BEGINNING
from heed.nn.contract import Recorder, Trace, recorder_of
from heed.nn.dropout_keys import DropoutKeys, dropout
from heed.nn.states import AppendKV, KeysValues, RowPositions

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {"relu": F.relu, "gelu": F.gelu, "silu": F.silu}


class FeedForward(nn.Module):
    """Two layers applied to each position: max(0, x W_1 + b_1) W_2 + b_2 (Vaswani et al. 2017, equation 2)."""

    def __init__(self, d_model: int, d_ff: int, activation: str = "relu") -> None:
        super().__init__()
        self.expand = nn.Linear(d_model, d_ff)
        self.contract = nn.Linear(d_ff, d_model)
        self.activation = ACTIVATIONS[activation]
        for linear in (self.expand, self.contract):
            nn.init.xavier_uniform_(linear.weight)
            nn.init.zeros_(linear.bias)

    def forward(self, x: Float[Tensor, "B T D"]) -> Float[Tensor, "B T D"]:
        """The same shape."""
        out: Tensor = self.contract(self.activation(self.expand(x)))
        return out


class Residual(nn.Module):
    """The residual connection and the normalisation around one sublayer."""

    def __init__(self, d_model: int, pre_norm: bool, dropout: float) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(d_model)
        self.pre_norm = pre_norm
        self.dropout = dropout

    def forward(
        self,
        x: Float[Tensor, "B T D"],
        sublayer: Callable[[Tensor], Tensor],
        dropout_keys: DropoutKeys | None,
        site: int,
        offset: int = 0,
    ) -> Float[Tensor, "B T D"]:
        """LayerNorm(x + Dropout(Sublayer(x))), or its pre-norm form."""
        if self.pre_norm:
            return x + dropout(sublayer(self.norm(x)), self.dropout, dropout_keys, site, offset)
        normalised: Tensor = self.norm(x + dropout(sublayer(x), self.dropout, dropout_keys, site, offset))
        return normalised


class EncoderBlock(nn.Module):
    """Self-attention over the whole source, then the feed-forward layer."""

    def __init__(
        self, d_model: int, num_heads: int, d_ff: int, dropout: float, attention_dropout: float,
        pre_norm: bool, activation: str, attention: str = "multi_head",
    ) -> None:  # fmt: skip
        super().__init__()
        self.attention = ATTENTION[attention].in_block(d_model, num_heads, attention_dropout)
        self.feed_forward = FeedForward(d_model, d_ff, activation)
        self.attention_residual = Residual(d_model, pre_norm, dropout)
        self.feed_forward_residual = Residual(d_model, pre_norm, dropout)

    def forward(
        self, x: Float[Tensor, "B S D"], mask: Bool[Tensor, "B 1 1 S"] | None, dropout_keys: DropoutKeys | None,
        trace: Recorder | None = None,
    ) -> Float[Tensor, "B S D"]:  # fmt: skip
        """The same shape; padding is not attended to."""

        def attend(x: Tensor) -> Tensor:
            inner = dropout_keys and dropout_keys.fold(0)
            contexts: Tensor = self.attention(x, self.attention.project(x), mask, BEGINNING, inner, trace)
            return contexts

        x = self.attention_residual(x, attend, dropout_keys, site=1)
        x = self.feed_forward_residual(x, self.feed_forward, dropout_keys, site=2)
        return x


class DecoderBlock(nn.Module):
    """Causal self-attention, attention over the source, then the feed-forward layer."""

    def __init__(
        self, d_model: int, num_heads: int, d_ff: int, dropout: float, attention_dropout: float,
        pre_norm: bool, activation: str, attention: str = "multi_head",
    ) -> None:  # fmt: skip
        super().__init__()
        self.self_attention = ATTENTION[attention].in_block(d_model, num_heads, attention_dropout)
        self.cross_attention = ATTENTION[attention].in_block(d_model, num_heads, attention_dropout)
        self.feed_forward = FeedForward(d_model, d_ff, activation)
        self.self_residual = Residual(d_model, pre_norm, dropout)
        self.cross_residual = Residual(d_model, pre_norm, dropout)
        self.feed_forward_residual = Residual(d_model, pre_norm, dropout)

    def forward(
        self, x: Float[Tensor, "R T D"], append_kv: AppendKV, self_mask: Bool[Tensor, "..."] | None,
        memory: KeysValues, memory_mask: Bool[Tensor, "B 1 1 S"] | None, positions: RowPositions,
        dropout_keys: DropoutKeys | None, trace: Trace | None = None, name: str = "",
    ) -> Float[Tensor, "R T D"]:  # fmt: skip
        """The same shape. `positions` are those before `x`; their keys and values are in the cache of `append_kv`."""

        def attend_self(x: Tensor) -> Tensor:
            inner, recorder = dropout_keys and dropout_keys.fold(0), recorder_of(trace, f"{name}.self")
            contexts: Tensor = self.self_attention(x, append_kv, self_mask, positions, inner, recorder)
            return contexts

        def attend_source(x: Tensor) -> Tensor:
            inner, recorder = dropout_keys and dropout_keys.fold(1), recorder_of(trace, f"{name}.cross")
            contexts: Tensor = self.cross_attention(x, memory, memory_mask, positions, inner, recorder)
            return contexts

        x = self.self_residual(x, attend_self, dropout_keys, 2, positions.length)
        x = self.cross_residual(x, attend_source, dropout_keys, 3, positions.length)
        x = self.feed_forward_residual(x, self.feed_forward, dropout_keys, 4, positions.length)
        return x
