"""Scores of attention: each equals its formula, written out with loops, and the two additive forms are equal."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from heed.core.errors import UsageError
from heed.nn.attention import (
    ATTENTION,
    AdditiveAttention,
    ConcatenatedAttention,
    DotAttention,
    MonotonicLocalAttention,
    PredictiveLocalAttention,
    ScoredAttention,
)
from heed.nn.attention.local import LocalAttention, SamePositionAttention
from heed.nn.states import RowPositions

QUERY, MEMORY, INSIDE = 4, 4, 5
LENGTHS = [6, 4]
MASK = (torch.arange(6) < torch.tensor(LENGTHS)[:, None])[:, None, None]


def dot(a: Tensor, b: Tensor) -> float:
    return sum(x * y for x, y in zip(a.tolist(), b.tolist(), strict=True))


def additive(it: Any, q: Tensor, k: Tensor) -> float:
    """vᵀ tanh(W q + U k)."""
    return dot(it.score.weight[0], torch.tanh(it.query.weight @ q + it.key.weight @ k + it.key.bias))


def concatenated(it: Any, q: Tensor, k: Tensor) -> float:
    """w_2ᵀ tanh(W_1 [q; k])."""
    return dot(it.score.weight[0], torch.tanh(it.weight @ torch.cat((q, k)) + it.bias))


def bilinear(it: Any, q: Tensor, k: Tensor) -> float:
    """qᵀ W k."""
    w = it.key.weight.tolist()
    return sum(q[i].item() * w[i][j] * k[j].item() for i in range(len(q)) for j in range(len(k)))


def two_networks(it: Any, q: Tensor, k: Tensor) -> float:
    """f(q)ᵀ g(k), with one hidden layer each."""

    def network(layers: Any, x: Tensor) -> Tensor:
        return layers[2].weight @ torch.tanh(layers[0].weight @ x + layers[0].bias) + layers[2].bias

    return dot(network(it.query, q), network(it.key, k))


SCORES: dict[str, Callable[[Any, Tensor, Tensor], float]] = {
    "additive": additive,
    "additive_concatenated": concatenated,
    "bilinear": bilinear,
    "dot": lambda _, q, k: dot(q, k),
    "scaled_dot": lambda _, q, k: dot(q, k) / math.sqrt(MEMORY),
    "two_networks": two_networks,
}


def made(kind: type[ScoredAttention]) -> ScoredAttention:
    torch.manual_seed(3)
    attention = kind.over(QUERY, MEMORY, INSIDE)
    for parameter in attention.parameters():
        nn.init.normal_(parameter)
    return attention


def expected_context(scores: list[float], factors: list[float], memory: Tensor) -> Tensor:
    """Σ_j factor_j exp(score_j) / Σ_k exp(score_k) · h_j."""
    total = sum(math.exp(score) for score in scores)
    shares = [factor * math.exp(score) / total for score, factor in zip(scores, factors, strict=True)]
    return torch.stack([share * h for share, h in zip(shares, memory, strict=True)]).sum(0)


def test_every_score_has_its_formula_here() -> None:
    scored = {name for name, kind in ATTENTION.items() if issubclass(kind, ScoredAttention)}
    by_position = {name for name, kind in ATTENTION.items() if issubclass(kind, LocalAttention | SamePositionAttention)}
    assert scored - by_position == SCORES.keys()


@pytest.mark.parametrize("name", SCORES)
@torch.no_grad()
def test_contexts_are_means_weighted_by_the_softmax_of_the_score(name: str) -> None:
    kind = ATTENTION[name]
    assert issubclass(kind, ScoredAttention)
    attention, q, h = made(kind), torch.randn(2, 3, QUERY), torch.randn(2, 6, MEMORY)
    contexts = attention(q, attention.project(h), MASK)
    for b, length in enumerate(LENGTHS):
        for t in range(3):
            scores = [SCORES[name](attention, q[b, t], h[b, s]) for s in range(length)]
            expected = expected_context(scores, [1.0] * length, h[b, :length])
            torch.testing.assert_close(contexts[b, t], expected, rtol=1e-4, atol=1e-5)


@torch.no_grad()
def test_both_forms_of_additive_attention_are_equal() -> None:
    """W_1 = [W; U] and w_2 = v."""
    bahdanau, luong = made(AdditiveAttention), made(ConcatenatedAttention)
    assert isinstance(bahdanau, AdditiveAttention) and isinstance(luong, ConcatenatedAttention)
    luong.weight.data = torch.cat((bahdanau.query.weight, bahdanau.key.weight), dim=1)
    luong.bias.data, luong.score.weight.data = bahdanau.key.bias, bahdanau.score.weight
    q, h = torch.randn(2, 3, QUERY), torch.randn(2, 6, MEMORY)
    torch.testing.assert_close(luong(q, luong.project(h), MASK), bahdanau(q, bahdanau.project(h), MASK))


class Near(MonotonicLocalAttention):
    """A window of three positions."""

    reach = 1


class NearPredicted(PredictiveLocalAttention):
    """A window of two positions on each side."""

    reach = 2


@torch.no_grad()
def test_monotonic_local_attention_sees_a_window_around_the_position_of_the_query() -> None:
    """p_t = t, or the last position after the end of the text."""
    attention, q, h = made(Near), torch.randn(2, 4, QUERY), torch.randn(2, 6, MEMORY)
    contexts = attention(q, attention.project(h), MASK, RowPositions(2))
    for b, length in enumerate(LENGTHS):
        for t in range(4):
            centre = min(2 + t, length - 1)
            seen = range(max(0, centre - 1), min(length, centre + 2))
            scores = [bilinear(attention, q[b, t], h[b, s]) for s in seen]
            expected = expected_context(scores, [1.0] * len(scores), h[b, seen.start : seen.stop])
            torch.testing.assert_close(contexts[b, t], expected, rtol=1e-4, atol=1e-5)


@torch.no_grad()
def test_predictive_local_attention_multiplies_the_weights_by_a_gaussian() -> None:
    """p = S σ(vᵀ tanh(W q)); inside [p - D, p + D] weights times exp(-(s - p)² / 2σ²), σ = D/2."""
    attention, q, h = made(NearPredicted), torch.randn(2, 3, QUERY), torch.randn(2, 6, MEMORY)
    assert isinstance(attention, NearPredicted)
    contexts = attention(q, attention.project(h), MASK)
    for b, length in enumerate(LENGTHS):
        for t in range(3):
            inner = dot(attention.position.weight[0], torch.tanh(attention.hidden.weight @ q[b, t]))
            centre = length / (1 + math.exp(-inner))
            seen = [s for s in range(length) if centre - 2 <= s <= centre + 2]
            scores = [bilinear(attention, q[b, t], h[b, s]) for s in seen]
            factors = [math.exp(-((s - centre) ** 2) / (2 * 1.0**2)) for s in seen]
            expected = expected_context(scores, factors, h[b, seen])
            torch.testing.assert_close(contexts[b, t], expected, rtol=1e-4, atol=1e-5)


@torch.no_grad()
def test_attention_to_the_same_position_reads_the_memory_in_order() -> None:
    attention, h = SamePositionAttention(QUERY, MEMORY, INSIDE), torch.randn(2, 6, MEMORY)
    contexts = attention(torch.randn(2, 5, QUERY), attention.project(h), MASK, RowPositions(1))
    assert contexts[0].equal(h[0, [1, 2, 3, 4, 5]]) and contexts[1].equal(h[1, [1, 2, 3, 3, 3]])


@pytest.mark.parametrize("name", ["dot", "scaled_dot", "multi_head"])
def test_sizes_that_cannot_be_compared_are_refused_with_advice(name: str) -> None:
    with pytest.raises(UsageError, match=r"queries of 4 features with a memory of 6.*additive"):
        ATTENTION[name].over(4, 6, 5)
    assert isinstance(DotAttention(4, 4, 9), DotAttention)
