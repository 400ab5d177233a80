"""How does each position of a text attend to itself and to what stands before it, quickly in training too?

One product makes queries, keys and values. Where gradients or dropout are wanted, queries are taken in blocks, and each
block reads only the keys up to its own end: nearly half of the square of positions is never computed. The gradient
is written out, so that all blocks add theirs into one tensor.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from heed.nn.attention import attend, attention_weights, merge_heads
from heed.nn.contract import Trace
from heed.nn.dropout_keys import DropoutKeys, as_factors
from heed.nn.states import RowPositions

BLOCK = 64
"""Queries of one block: small enough to leave out much, large enough for fast products."""


class CausalSelfAttention(nn.Module):
    """Multi-head self-attention that sees no later token; the weights of Q, K and V are one matrix.

    concat(head_1 … head_H) W_O, head_i = softmax(Q_i K_iᵀ / √K) V_i over the positions up to the query's own
    (Vaswani et al. 2017, section 3.2.3).
    """

    def __init__(self, d_model: int, num_heads: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.num_heads = num_heads
        self.dropout = dropout
        self.query_key_value = nn.Linear(d_model, 3 * d_model)
        self.output = nn.Linear(d_model, d_model)

    def forward(
        self,
        x: Float[Tensor, "B T D"],
        grow: Callable[[Tensor, Tensor], tuple[Tensor, Tensor]],
        columns: RowPositions,
        dropout_keys: DropoutKeys | None,
        offset: int,
        trace: Trace | None = None,
        name: str = "",
    ) -> Float[Tensor, "B T D"]:
        """The same shape. `grow(keys, values)` appends to the cache, whose `columns` hold the tokens before, and
        gives all of it; `offset` is the position of the first query (it keys the dropout)."""
        split = self.query_key_value(x).view(*x.shape[:2], 3, self.num_heads, -1)  # [B, T, 3, H, K]
        query, keys, values = split.permute(2, 0, 3, 1, 4)  # each [B, H, T, K]
        keys, values = grow(keys, values)
        dropped = (
            None
            if dropout_keys is None or not round(self.dropout * 256)
            else WeightDropout(dropout_keys, self.dropout, offset)
        )
        context = causal_context(query, keys, values, columns, dropped, trace, name)
        out: Tensor = self.output(merge_heads(context))
        return out


def causal_context(
    query: Float[Tensor, "B H T K"], keys: Float[Tensor, "B H S K"], values: Float[Tensor, "B H S K"],
    columns: RowPositions, dropout: WeightDropout | None = None, trace: Trace | None = None, name: str = "",
) -> Float[Tensor, "B H T K"]:  # fmt: skip
    """softmax(Q Kᵀ / √K) V over the positions up to each query's own; the queries are the last T of the S positions,
    which come behind `columns`. Keys and values may be kept in another precision than the queries'."""
    dtype, query, mask = query.dtype, query.to(keys.dtype), None
    plain = dropout is None and not query.requires_grad
    if plain or trace is not None:
        mask = columns.causal_mask(query.shape[2], query.device)
    if trace is not None:
        trace.record(name, attention_weights(query, keys, mask))
    if plain:
        return attend(query, keys, values, mask).to(dtype)
    context: Tensor = _Blocks.apply(query, keys, values, columns.first, dropout)  # type: ignore[no-untyped-call]
    return context.to(dtype)


class WeightDropout:
    """What is kept of the attention weights of some queries."""

    def __init__(self, dropout_keys: DropoutKeys, probability: float, offset: int) -> None:
        self.dropout_keys = dropout_keys
        self.probability = probability
        self.offset = offset

    def factors(self, weights: Float[Tensor, "B H T S"], first: int) -> Float[Tensor, "B H T S"]:
        """0, or what keeps the mean, for the weights of the queries from number `first` on."""
        _, num_heads, num_queries, size = weights.shape
        keep = self.dropout_keys.keep_ragged((num_queries, num_heads, size), self.probability, 0, self.offset + first)
        return as_factors(keep.transpose(1, 2), weights.dtype, round(self.probability * 256))


class _Blocks(torch.autograd.Function):
    """softmax(Q Kᵀ / √K) V, block by block of the queries, which are the last of the keys' positions.

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
    """Minus infinity for later positions, and for the empty columns of rows that began later; in place.

    The queries are the last T of the S positions, the first of them at `position`.
    """
    own = scores[..., position:]
    later = torch.ones(own.shape[2:], dtype=torch.bool, device=scores.device).triu_(1)
    own.masked_fill_(later, float("-inf"))
    if first is not None:
        empty = torch.arange(scores.shape[3], device=scores.device) < first[:, None]  # [B, S]
        scores.masked_fill_(empty[:, None, None], float("-inf"))
    return scores
