"""Scaled dot-product attention in blocks of queries: equal to the whole square, with its gradient and its dropout."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from heed.nn.attention import FusedMultiHeadAttention
from heed.nn.dropout_keys import DropoutKeys
from heed.nn.scaled_dot_product import BLOCK, WeightDropout, causal_context
from heed.nn.states import AppendKV, RowPositions

DROPOUT_KEYS = DropoutKeys.for_step(1, 2, torch.tensor([3, 4]))


def heads(num_positions: int, seed: int) -> Tensor:
    """Random vectors of two rows and three heads in float64."""
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(2, 3, num_positions, 8, generator=generator, dtype=torch.float64)
    return x.requires_grad_()


def contexts(
    query: Tensor, keys: Tensor, values: Tensor, columns: RowPositions, dropout: WeightDropout | None = None
) -> Tensor:
    """`causal_context` with the mask of these positions."""
    mask = columns.causal_mask(query.shape[2], query.device)
    return causal_context(query, keys, values, columns, mask, dropout)


def written_out(
    query: Tensor, keys: Tensor, values: Tensor, columns: RowPositions, dropout: WeightDropout | None
) -> Tensor:
    """The whole square of weights."""
    mask = columns.causal_mask(query.shape[2], query.device)
    scores = query @ keys.transpose(2, 3) / math.sqrt(query.shape[3])
    weights = (scores if mask is None else scores.masked_fill(~mask, float("-inf"))).softmax(-1)
    if dropout is not None:
        weights = DROPOUT_KEYS.dropout_ragged(
            weights.transpose(1, 2), dropout.probability, 0, dropout.offset
        ).transpose(1, 2)
    return weights @ values


@pytest.mark.parametrize("probability", [0.0, 0.3])
@pytest.mark.parametrize(
    ("num_queries", "past"), [(1, 0), (5, 0), (BLOCK, 0), (2 * BLOCK + 1, 0), (BLOCK + 6, 30), (1, BLOCK), (3, 200)]
)
def test_blocks_equal_the_whole_square(num_queries: int, past: int, probability: float) -> None:
    query, keys, values = heads(num_queries, 1), heads(past + num_queries, 2), heads(past + num_queries, 3)
    dropout = WeightDropout(DROPOUT_KEYS, probability, past) if probability else None
    found = contexts(query, keys, values, RowPositions(past), dropout)
    expected = written_out(query, keys, values, RowPositions(past), dropout)
    torch.testing.assert_close(found, expected)
    wish = torch.randn(found.shape, generator=torch.Generator().manual_seed(4), dtype=torch.float64)
    for ours, theirs in zip(
        *(torch.autograd.grad(x, (query, keys, values), wish) for x in (found, expected)), strict=True
    ):
        torch.testing.assert_close(ours, theirs)


def test_gradients_equal_finite_differences() -> None:
    query, keys, values = heads(4, 1), heads(6, 2), heads(6, 3)
    dropout = WeightDropout(DROPOUT_KEYS, 0.4, 2)
    assert torch.autograd.gradcheck(lambda q, k, v: contexts(q, k, v, RowPositions(2), dropout), (query, keys, values))


@pytest.mark.parametrize("with_gradients", [True, False])
def test_the_empty_columns_of_a_row_that_began_later_are_not_seen(with_gradients: bool) -> None:
    query, keys, values = heads(3, 1), heads(9, 2), heads(9, 3)
    columns = RowPositions(6, torch.tensor([0, 4]))
    with torch.set_grad_enabled(with_gradients):
        found = contexts(query, keys, values, columns)
        alone = contexts(query[1:], keys[1:, :, 4:], values[1:, :, 4:], RowPositions(2))
        torch.testing.assert_close(found[1:], alone)
        torch.testing.assert_close(found[:1], contexts(query[:1], keys[:1], values[:1], RowPositions(6)))


def test_it_equals_pytorchs_multi_head_attention_with_a_causal_mask() -> None:
    torch.manual_seed(5)
    ours, theirs = FusedMultiHeadAttention(24, 3), torch.nn.MultiheadAttention(24, 3, batch_first=True)
    theirs.load_state_dict(
        {
            "in_proj_weight": ours.query_key_value.weight, "in_proj_bias": ours.query_key_value.bias,
            "out_proj.weight": ours.output.weight, "out_proj.bias": ours.output.bias,
        }
    )  # fmt: skip
    x = torch.randn(2, 9, 24)
    mask = torch.ones(9, 9, dtype=torch.bool).triu(1)
    expected, _ = theirs(x, x, x, attn_mask=mask)
    torch.testing.assert_close(ours(x, AppendKV(ours.empty_cache(2, 0, x), 0)), expected)
