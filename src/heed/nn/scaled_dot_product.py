"""Scaled dot-product attention: softmax(Q Kᵀ / √K) V (Vaswani et al. 2017, equation 1).

`attend` is fast without dropout. `causal_context` is fast for training a decoder: queries are split into
blocks, and each block reads only the keys up to its own end, so nearly half of the pairs of positions are never
computed. Its gradient is implemented by hand, so that all blocks add to one tensor.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor

from heed.nn.contract import Recorder
from heed.nn.dropout_keys import DropoutKeys, as_factors
from heed.nn.states import RowPositions

BLOCK = 64
"""Number of queries in a block: small enough to skip many pairs, large enough for fast products."""
_FEW_KEYS, _FEW_QUERIES, _FEW_PAIRS = 50_000, 32, 1500
"""Elements of keys, queries, and pairs of query and key, up to which a way of attending is the faster one."""
_MANY_KEYS = 250_000
"""Elements of keys in float32 from which products are faster than the kernel for one query."""


def split_heads(x: Float[Tensor, "B T D"], num_heads: int) -> Float[Tensor, "B H T K"]:
    """Split the features into heads."""
    return x.view(*x.shape[:2], num_heads, x.shape[2] // num_heads).transpose(1, 2)


def merge_heads(x: Float[Tensor, "B H T K"]) -> Float[Tensor, "B T D"]:
    """Concatenate the heads."""
    return x.transpose(1, 2).flatten(2)


def attention_weights(
    query: Float[Tensor, "B H T K"], keys: Float[Tensor, "B H S K"], mask: Bool[Tensor, "..."] | None
) -> Float[Tensor, "B H T S"]:
    """softmax(Q Kᵀ / √K) over the positions that the mask allows."""
    query = query * (1.0 / math.sqrt(query.shape[-1]))
    if query.shape[2] == 1:  # one query: K qᵀ reads the keys faster
        scores = (keys @ query.transpose(-1, -2)).transpose(-1, -2)
    else:
        scores = query @ keys.transpose(-1, -2)
    if mask is not None:
        scores = scores.masked_fill(~mask, float("-inf"))
    return scores.softmax(dim=-1)


def attend(
    query: Float[Tensor, "B H T K"], keys: Float[Tensor, "B H S K"], values: Float[Tensor, "B H S K"],
    mask: Bool[Tensor, "..."] | None,
) -> Float[Tensor, "B H T K"]:  # fmt: skip
    """The contexts, computed by PyTorch's kernel or, if that is slower, by matrix products.

    The kernel is slower in bfloat16 on a CPU, except for little work: five times slower for one query and many keys
    (torch 2.13, AVX-512), and its gradient ten times slower. Short sequences are trained fastest in float32: bfloat16
    products would have many different sizes, and oneDNN generates code for each. In float32 it takes 1.4 times as long
    for one query and many keys, if those of a head follow each other in memory.
    """
    if query.shape[2] == 1 and query.dtype == torch.float32 and query.device.type == "cpu":
        is_by_head = keys.stride(2) == keys.shape[3]
        if is_by_head and keys.numel() >= _MANY_KEYS and not query.requires_grad:
            return attention_weights(query, keys, mask) @ values
    if query.dtype == torch.bfloat16 and query.device.type == "cpu":
        if query.requires_grad and query.shape[2] * keys.shape[2] <= _FEW_PAIRS:
            context = F.scaled_dot_product_attention(query.float(), keys.float(), values.float(), attn_mask=mask)
            return context.to(query.dtype)
        if query.requires_grad or (keys.numel() > _FEW_KEYS and query.shape[2] <= _FEW_QUERIES):
            return attention_weights(query, keys, mask) @ values
    return F.scaled_dot_product_attention(query, keys, values, attn_mask=mask)


def causal_context(
    query: Float[Tensor, "B H T K"], keys: Float[Tensor, "B H S K"], values: Float[Tensor, "B H S K"],
    positions: RowPositions, mask: Bool[Tensor, "..."] | None, dropout: WeightDropout | None = None,
    trace: Recorder | None = None,
) -> Float[Tensor, "B H T K"]:  # fmt: skip
    """The contexts of the last T of S positions, each of which sees the positions up to its own.

    `positions` are those before the queries, and `mask` is their `causal_mask`. The precision of keys and values may
    differ from that of the queries.
    """
    dtype, query = query.dtype, query.to(keys.dtype)
    if trace is not None:
        trace(attention_weights(query, keys, mask))
    if dropout is None and not query.requires_grad:
        return attend(query, keys, values, mask).to(dtype)
    context: Tensor = _Blocks.apply(query, keys, values, positions.first, dropout)  # type: ignore[no-untyped-call]
    return context.to(dtype)


class WeightDropout:
    """Dropout of attention weights; `offset` is the position of the first query."""

    def __init__(self, dropout_keys: DropoutKeys, probability: float, offset: int) -> None:
        self.dropout_keys = dropout_keys
        self.probability = probability
        self.offset = offset

    def factors(self, weights: Float[Tensor, "B H T S"], first: int) -> Float[Tensor, "B H T S"]:
        """Factors of the weights of queries `first …`: 0, or the factor that preserves the mean."""
        _, num_heads, num_queries, size = weights.shape
        keep = self.dropout_keys.keep_ragged((num_queries, num_heads, size), self.probability, 0, self.offset + first)
        return as_factors(keep.transpose(1, 2), weights.dtype, self.probability)


class _Blocks(torch.autograd.Function):
    """softmax(Q Kᵀ / √K) V, block by block of the queries, whose positions are the last ones of the keys.

    With P the weights, M the factors of dropout, dO the gradient of the context O: dV = (P M)ᵀ dO, and for the scores
    dS = P (M dO Vᵀ - rowsum(dO O)).
    """

    @staticmethod
    def forward(
        ctx: Any, query: Tensor, keys: Tensor, values: Tensor, first: Tensor | None, dropout: WeightDropout | None
    ) -> Tensor:
        num_queries, past = query.shape[2], keys.shape[2] - query.shape[2]
        query = query * (1.0 / math.sqrt(query.shape[3]))
        keys, values = keys.contiguous(), values.contiguous()
        context = torch.empty_like(query)
        saved: list[Tensor] = []
        for begin, end in _spans(num_queries):
            scores = query[:, :, begin:end] @ keys[:, :, : past + end].transpose(2, 3)  # [B, H, t, S]
            weights = _visible(scores, past + begin, first).softmax(dim=-1)
            saved.append(weights)
            if dropout is not None:
                factors = dropout.factors(weights, begin)
                saved.append(factors)
                weights = weights * factors
            context[:, :, begin:end] = weights @ values[:, :, : past + end]
        ctx.save_for_backward(query, keys, values, context, *saved)
        ctx.dropped = dropout is not None
        return context

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        query, keys, values, context, *saved = ctx.saved_tensors
        num_queries, past = query.shape[2], keys.shape[2] - query.shape[2]
        means = (grad * context).sum(dim=-1, keepdim=True)
        grad_query, grad_keys, grad_values = torch.empty_like(query), torch.zeros_like(keys), torch.zeros_like(values)
        each = iter(saved)
        for begin, end in _spans(num_queries):
            seen, here, weights = slice(0, past + end), slice(begin, end), next(each)
            factors = next(each) if ctx.dropped else None
            grad_here = grad[:, :, here]
            grad_weights = grad_here @ values[:, :, seen].transpose(2, 3)
            if factors is not None:
                grad_weights *= factors
            grad_scores = grad_weights.sub_(means[:, :, here]).mul_(weights)
            dropped = weights if factors is None else weights * factors
            grad_values[:, :, seen] += dropped.transpose(2, 3) @ grad_here
            grad_keys[:, :, seen] += grad_scores.transpose(2, 3) @ query[:, :, here]
            grad_query[:, :, here] = grad_scores @ keys[:, :, seen]
        return grad_query.mul_(1.0 / math.sqrt(query.shape[3])), grad_keys, grad_values, None, None


def _spans(num_queries: int) -> Iterator[tuple[int, int]]:
    return ((begin, min(begin + BLOCK, num_queries)) for begin in range(0, num_queries, BLOCK))


def _visible(scores: Float[Tensor, "B H T S"], position: int, first: Tensor | None) -> Float[Tensor, "B H T S"]:
    """Set the scores of later positions and of the empty columns of rows that began later to minus infinity, in place.

    The queries are the last T of the S positions, the first of them at `position`.
    """
    own = scores[..., position:]
    later = torch.ones(own.shape[2:], dtype=torch.bool, device=scores.device).triu_(1)
    own.masked_fill_(later, float("-inf"))
    if first is not None:
        empty = torch.arange(scores.shape[3], device=scores.device) < first[:, None]  # [B, S]
        scores.masked_fill_(empty[:, None, None], float("-inf"))
    return scores
