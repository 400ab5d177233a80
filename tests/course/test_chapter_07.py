"""Solutions of chapter 7: one score in two forms, and attention as a dictionary."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from heed.nn.attention import ATTENTION, AdditiveAttention, ConcatenatedAttention


@torch.no_grad()
def test_both_forms_of_the_additive_score_are_equal() -> None:
    """Solution 1: W_1 [s; h] = W s + U h for W_1 = [W; U], side by side."""
    torch.manual_seed(1)
    bahdanau, concatenated = AdditiveAttention(5, 7, 6), ConcatenatedAttention(5, 7, 6)
    concatenated.weight.copy_(torch.cat((bahdanau.query.weight, bahdanau.key.weight), dim=1))
    concatenated.bias.copy_(bahdanau.key.bias)
    concatenated.score.weight.copy_(bahdanau.score.weight)
    queries, memory = torch.randn(2, 3, 5), torch.randn(2, 4, 7)
    scores = [each.scores(queries, each.keys(memory)) for each in (bahdanau, concatenated)]
    torch.testing.assert_close(scores[0], scores[1])


def look_up(query: Tensor, keys: Tensor, values: Tensor) -> Tensor:
    """Solution 2: softmax(q K^T) V."""
    return (query @ keys.T).softmax(dim=-1) @ values


@torch.no_grad()
def test_attention_is_a_dictionary_when_its_keys_are_sharp() -> None:
    """With orthonormal keys and the query β k_i, the weight of the value i is e^β / (e^β + n - 1): β = ln(99 (n - 1))
    gives it 99 %. The printed sum of the notes has the value of the query in every term, and returns it always."""
    torch.manual_seed(1)
    n = 6
    keys, values = torch.linalg.qr(torch.randn(n, n)).Q, torch.randn(n, n)
    beta = math.log(99 * (n - 1))
    weights = (beta * keys @ keys.T).softmax(dim=-1)
    assert weights.diagonal().tolist() == pytest.approx([0.99] * n, abs=1e-5)
    torch.testing.assert_close(look_up(50 * keys, keys, values), values)
    heed = ATTENTION["dot"].in_block(n, 1, 0.0)
    contexts = heed(beta * keys[None], (keys[None, None], values[None, None]))[0]
    torch.testing.assert_close(contexts, look_up(beta * keys, keys, values))
    as_printed = (weights[:, :, None] * values[:, None, :]).sum(dim=1)  # the value's index is the query's
    torch.testing.assert_close(as_printed, values)
