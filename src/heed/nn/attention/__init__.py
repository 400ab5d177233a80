"""Attention of the positions of `x` to a memory.

Every attention is one class and one key of `ATTENTION`, and has the same signature:

    contexts = attention(x, memory, mask, positions, dropout_keys, trace)

`memory` is either keys and values that `project` computed once from a whole memory (cross-attention, or an encoder's
self-attention), or an `AppendKV`: then `x` itself is projected and appended to a cache made by `empty_cache`, and
attends to all of it (a decoder's self-attention). `positions` are those before `x`, for attentions that depend on them
(rotary, ALiBi). Masks are True where attention is allowed; None allows it everywhere.
"""

from __future__ import annotations

from heed.nn.attention.attention import BEGINNING, Attention
from heed.nn.attention.local import MonotonicLocalAttention, PredictiveLocalAttention, SamePositionAttention
from heed.nn.attention.multi_head import (
    FusedMultiHeadAttention,
    MultiHeadAttention,
    MultiHeadAttentionWithoutBias,
    RotaryAttention,
    rotated,
)
from heed.nn.attention.projected import ProjectedAttention, ProjectedHeadsAttention
from heed.nn.attention.scores import (
    AdditiveAttention,
    BilinearAttention,
    ConcatenatedAttention,
    DotAttention,
    ScaledDotAttention,
    ScoredAttention,
    TwoNetworksAttention,
)

__all__ = [
    "ATTENTION", "BEGINNING", "AdditiveAttention", "Attention", "BilinearAttention", "ConcatenatedAttention",
    "DotAttention", "FusedMultiHeadAttention", "MonotonicLocalAttention", "MultiHeadAttention",
    "MultiHeadAttentionWithoutBias", "PredictiveLocalAttention", "ProjectedAttention", "ProjectedHeadsAttention",
    "RotaryAttention", "SamePositionAttention", "ScaledDotAttention", "ScoredAttention", "TwoNetworksAttention",
    "rotated",
]  # fmt: skip

ATTENTION: dict[str, type[Attention]] = {
    "multi_head": MultiHeadAttention,
    "multi_head_without_bias": MultiHeadAttentionWithoutBias,
    "fused_multi_head": FusedMultiHeadAttention,
    "rotary": RotaryAttention,
    "additive": AdditiveAttention,
    "additive_concatenated": ConcatenatedAttention,
    "bilinear": BilinearAttention,
    "dot": DotAttention,
    "scaled_dot": ScaledDotAttention,
    "projected": ProjectedAttention,
    "projected_heads": ProjectedHeadsAttention,
    "two_networks": TwoNetworksAttention,
    "local_monotonic": MonotonicLocalAttention,
    "local_predictive": PredictiveLocalAttention,
    "same_position": SamePositionAttention,
}
