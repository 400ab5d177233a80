"""Claims of the notes about the softmax of scores: what sums to one, why scores are scaled, and the dictionary."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from heed.models.transformer import EncoderBlock, TransformerConfig
from heed.nn.attention import ATTENTION, Attention
from heed.nn.scaled_dot_product import attention_weights


def self_attention(name: str, d_model: int) -> Attention:
    """The self-attention of an encoder block."""
    return EncoderBlock(TransformerConfig(d_model=d_model, num_heads=1, attention=name)).attention


def weights_of(attention: Attention, h: Tensor) -> Tensor:
    """The weights A `[T, T]` of one text."""
    traced: list[Tensor] = []
    attention(h[None], attention.project(h[None]), trace=traced.append)
    return traced[0][0, 0]


@pytest.mark.parametrize("name", ["dot", "scaled_dot", "projected", "multi_head"])
@torch.no_grad()
def test_rows_of_the_weights_sum_to_one_and_columns_do_not(name: str) -> None:
    """Lecture 9, "Simple self attention": "sum over any column of A = 1". A row does, by the softmax over t'; Kakade's
    section 4, step 3, has it right."""
    torch.manual_seed(0)
    weights = weights_of(self_attention(name, 6), torch.randn(5, 6))
    torch.testing.assert_close(weights.sum(1), torch.ones(5))
    assert not torch.allclose(weights.sum(0), torch.ones(5), atol=0.01)


@torch.no_grad()
def test_a_context_is_a_convex_combination_of_the_rows_of_v() -> None:
    """Kakade, section 4, step 3: "a convex combination of the columns of V". V is T x d, so h_i combines its rows, the
    values of the T positions; with few positions and many features it is no combination of columns at all."""
    torch.manual_seed(0)
    attention, h = self_attention("projected", 8), torch.randn(1, 3, 8)
    _, values = attention.project(h)
    contexts = attention(h, attention.project(h))[0]
    shares = torch.linalg.lstsq(values[0, 0].T, contexts.T).solution  # [T, T]
    torch.testing.assert_close(shares.T @ values[0, 0], contexts, rtol=1e-4, atol=1e-5)
    assert (shares > 0).all()
    torch.testing.assert_close(shares.sum(0), torch.ones(3))


def test_the_variance_of_a_dot_product_is_its_size_and_scaling_undoes_it() -> None:
    """Transformer summary, "Dot-product attention", and lecture 9, "Scaled dot-product self attention": for independent
    features of unit variance Var(q · k) = d_k, so its size is √d_k. Lecture 9's example, √(1 + … + 1) = √D, is the
    norm of one vector and not a dot product; its scale 1 / √D is right. Here heed's scores, of one query each."""
    generator = torch.Generator().manual_seed(0)
    for size in (4, 64, 256):
        queries, keys = (torch.randn(4000, 1, 1, size, generator=generator) for _ in range(2))
        keys = torch.cat((keys, torch.zeros_like(keys)), dim=2)  # a score of 0 to compare with
        log_weights = attention_weights(queries, keys, None).log()[:, 0, 0]
        scores = log_weights[:, 0] - log_weights[:, 1]
        assert scores.var().item() == pytest.approx(1, rel=0.1)
        assert (scores * math.sqrt(size)).var().item() == pytest.approx(size, rel=0.1)


def test_gradients_of_an_unscaled_softmax_vanish_as_the_size_grows() -> None:
    """Transformer summary, "Dot-product attention": the softmax becomes peaked and its gradient smaller. The gradient
    of the weights with respect to the scores is diag(a) - a aᵀ, which is 0 for a weight of 1."""

    def gradient(name: str, size: int) -> float:
        attention, generator = ATTENTION[name].in_block(size, 1, 0.0), torch.Generator().manual_seed(1)
        norms = []
        for _ in range(60):
            query, keys = torch.randn(1, size, generator=generator), torch.randn(8, size, generator=generator)
            weights: list[Tensor] = []
            attention(query[None], attention.project(keys[None]), trace=weights.append)
            a = weights[0][0, 0, 0].double()
            norms.append((torch.diag(a) - torch.outer(a, a)).norm().item())
        return sum(norms) / 60

    unscaled, scaled = ([gradient(name, size) for size in (4, 64, 1024)] for name in ("dot", "scaled_dot"))
    assert unscaled[0] > 1.5 * unscaled[1] > 3 * unscaled[2]
    assert min(scaled) > 0.8 * max(scaled)


@torch.no_grad()
def test_attention_is_a_look_up_that_becomes_exact_as_keys_match_sharply() -> None:
    """Lecture 9, "Attention as a fuzzy lookup table". The value in the last sum has the index t' of the key; the notes
    write h^(t), with which nothing would be looked up: the weights sum to one, so every context would be h^(t)."""
    torch.manual_seed(0)
    attention = ATTENTION["dot"].in_block(6, 1, 0.0)
    keys, values = torch.linalg.qr(torch.randn(6, 6)).Q, torch.randn(6, 6)
    for sharpness, tolerance in ((1.0, math.inf), (50.0, 1e-6)):
        found = attention(sharpness * keys[None], (keys[None, None], values[None, None]))[0]
        assert (found - values).abs().max() < tolerance
    assert not torch.allclose(attention(keys[None], (keys[None, None], values[None, None]))[0], values, atol=0.1)


@torch.no_grad()
def test_values_have_a_matrix_of_their_own() -> None:
    """Transformer summary, "Multi-head attention": head_i = Attention(QW^Q, KW^K, VW^K). The last is W^V: it changes
    what is looked up, and not where."""
    torch.manual_seed(0)
    attention, h = ATTENTION["multi_head"].in_block(8, 2, 0.0), torch.randn(5, 8)
    before, contexts = weights_of(attention, h), attention(h[None], attention.project(h[None]))
    attention.key_value.weight[8:] *= 2  # W^V
    torch.testing.assert_close(weights_of(attention, h), before)
    assert not torch.allclose(attention(h[None], attention.project(h[None])), contexts, atol=1e-3)
    attention.key_value.weight[:8] *= 2  # W^K
    assert not torch.allclose(weights_of(attention, h), before, atol=1e-3)
