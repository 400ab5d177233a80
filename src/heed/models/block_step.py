"""Single tokens through a Transformer block, with few calls.

A search reads one token of each row at a time. The products of a small model are then so short that most of the time is
spent in calling modules. A `BlockStep` computes what the `forward` of a block does for one token, without dropout and
without a trace, by functions of tensors `[R, D]` alone; queries, keys and values of a token are one product. `pack` of
`heed.nn.packing` makes it, after which weights no longer change. It is used for rows that began in the same column and
have room in their caches.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from heed.nn.attention import Attention
from heed.nn.attention.multi_head import FusedMultiHeadAttention, MultiHeadAttention, MultiHeadAttentionWithoutBias
from heed.nn.packing import function_of, joint_function_of
from heed.nn.scaled_dot_product import attend, split_heads
from heed.nn.states import AppendKV, KeysValues

Function = Callable[[Tensor], Tensor]


class BlockStep:
    """The parts of one block in their order; `cross_attention` and its norm are None without a source."""

    def __init__(
        self, self_attention: MultiHeadAttention | FusedMultiHeadAttention, cross_attention: MultiHeadAttention | None,
        feed_forward: Function, norms: Sequence[nn.LayerNorm], pre_norm: bool,
    ) -> None:  # fmt: skip
        """`norms`: those of the parts, in the same order."""
        self.num_heads = self_attention.num_heads
        if isinstance(self_attention, FusedMultiHeadAttention):
            self._project = function_of(self_attention.query_key_value)
        else:
            self._project = joint_function_of(self_attention.query, self_attention.key_value)
        self._self_output = function_of(self_attention.output)
        self._query = None if cross_attention is None else function_of(cross_attention.query)
        self._cross_output = None if cross_attention is None else function_of(cross_attention.output)
        self._feed_forward = feed_forward
        self._norms = [_normalisation(norm) for norm in norms]
        self._pre_norm = pre_norm

    def __call__(
        self, x: Float[Tensor, "R D"], append_kv: AppendKV, memory: KeysValues | None = None,
        memory_mask: Bool[Tensor, "B 1 1 S"] | None = None,
    ) -> Float[Tensor, "R D"]:  # fmt: skip
        """The same shape, as the block's `forward`."""
        norms = iter(self._norms)
        x = self._around(x, next(norms), lambda x: self._attend_self(x, append_kv))
        if memory is not None:
            x = self._around(x, next(norms), lambda x: self._attend_source(x, memory, memory_mask))
        return self._around(x, next(norms), self._feed_forward)

    def _around(self, x: Tensor, norm: Function, part: Function) -> Tensor:
        return x + part(norm(x)) if self._pre_norm else norm(x + part(x))

    def _attend_self(self, x: Tensor, append_kv: AppendKV) -> Tensor:
        projected = self._project(x).view(len(x), 3, self.num_heads, -1)
        keys, values = append_kv.append_token(projected.narrow(1, 1, 2))
        query = projected.select(1, 0).unsqueeze(2)  # [R, H, 1, K]
        context = attend(query.to(keys.dtype), keys, values, None)
        return self._self_output(context.reshape(x.shape).to(x.dtype))

    def _attend_source(self, x: Tensor, memory: KeysValues, mask: Tensor | None) -> Tensor:
        assert self._query is not None
        assert self._cross_output is not None
        keys, values = memory
        query = split_heads(self._query(x).view(keys.shape[0], -1, x.shape[1]), self.num_heads)  # [B, H, W, K]
        context = attend(query, keys, values, mask)
        return self._cross_output(context.transpose(1, 2).reshape(x.shape))


def can_step(attention: Attention | nn.Module) -> bool:
    """Whether a `BlockStep` knows this attention; those that depend on positions are not among them."""
    return type(attention) in (MultiHeadAttention, MultiHeadAttentionWithoutBias, FusedMultiHeadAttention)


def _normalisation(norm: nn.LayerNorm) -> Function:
    shape, weight, bias, epsilon = norm.normalized_shape, norm.weight, norm.bias, norm.eps
    return lambda x: torch.layer_norm(x, shape, weight, bias, epsilon)
