"""Attention: equal to the papers' formulas and PyTorch's layer, dropout included."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor, nn

from heed.nn.attention import AdditiveAttention, MultiHeadAttention, MultiHeadAttentionWithoutBias
from heed.nn.dropout_keys import DropoutKeys
from heed.nn.scaled_dot_product import _MANY_KEYS, attend, attention_weights

D_MODEL, HEADS = 12, 3


def pair_of_equals(bias: bool = True) -> tuple[MultiHeadAttention, nn.MultiheadAttention]:
    """Our layer, and PyTorch's with the same random weights."""
    torch.manual_seed(2)
    ours = (MultiHeadAttention if bias else MultiHeadAttentionWithoutBias)(D_MODEL, HEADS)
    theirs = nn.MultiheadAttention(D_MODEL, HEADS, bias=bias, batch_first=True)
    for parameter in ours.parameters():
        nn.init.normal_(parameter, std=0.4)
    copy = {
        "in_proj_weight": torch.cat((ours.query.weight, ours.key_value.weight)),
        "out_proj.weight": ours.output.weight,
    }
    if bias:
        copy["in_proj_bias"] = torch.cat((ours.query.bias, ours.key_value.bias))
        copy["out_proj.bias"] = ours.output.bias
    theirs.load_state_dict(copy)
    return ours, theirs


def assert_equal(found: Tensor, expected: Tensor) -> None:
    """Within what the order of float32 sums allows."""
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("traced", [True, False], ids=["plain products", "fused"])
def test_attention_over_a_padded_memory_equals_pytorch(bias: bool, traced: bool) -> None:
    ours, theirs = pair_of_equals(bias)
    x, memory = torch.randn(2, 4, D_MODEL), torch.randn(2, 6, D_MODEL)
    real = torch.arange(6) < torch.tensor([[6], [2]])
    traces: list[Tensor] = []
    found = ours(x, ours.project(memory), real[:, None, None], trace=traces.append if traced else None)
    expected, weights = theirs(x, memory, memory, key_padding_mask=~real, average_attn_weights=False)
    assert_equal(found, expected)
    if traced:
        assert_equal(traces[0], weights)


@pytest.mark.parametrize("traced", [True, False], ids=["plain products", "fused"])
def test_causal_self_attention_equals_pytorch(traced: bool) -> None:
    ours, theirs = pair_of_equals()
    x = torch.randn(2, 5, D_MODEL)
    causal = torch.ones(5, 5, dtype=torch.bool).tril()
    found = ours(x, ours.project(x), causal, trace=[].append if traced else None)
    expected, _ = theirs(x, x, x, attn_mask=~causal)
    assert_equal(found, expected)


def test_gradients_equal_those_of_pytorch() -> None:
    ours, theirs = pair_of_equals()
    x = torch.randn(2, 5, D_MODEL)
    gradients = []
    for out, weight in ((ours(x, ours.project(x)), ours.query.weight), (theirs(x, x, x)[0], theirs.in_proj_weight)):
        gradients.append(torch.autograd.grad(out.square().sum(), weight)[0])
    torch.testing.assert_close(gradients[0], gradients[1][:D_MODEL], rtol=1e-4, atol=1e-4)


def test_scores_are_divided_by_the_root_of_the_head_size() -> None:
    """One head of 4: two equal keys, and one whose product with the query is 2 ln 3 higher."""
    query = torch.tensor([1.0, 0, 0, 0]).view(1, 1, 1, 4)
    keys = torch.zeros(1, 1, 3, 4)
    keys[0, 0, 2, 0] = 2 * math.log(3)
    assert_equal(attention_weights(query, keys, None).flatten(), torch.tensor([0.2, 0.2, 0.6]))


def test_dropout_is_applied_to_the_weights() -> None:
    """With values that are unit vectors and an output that changes nothing, the context is the weights."""
    attention = MultiHeadAttention(4, 1, dropout=0.25)
    for linear in (attention.query, attention.key_value, attention.output):
        nn.init.zeros_(linear.weight)
    attention.output.weight.data = torch.eye(4)
    keys, values = torch.zeros(2, 1, 4, 4), torch.eye(4).expand(2, 1, 4, 4)
    dropout_keys = DropoutKeys.for_step(1, 1, torch.arange(2))
    weights = attention(torch.zeros(2, 300, 4), (keys, values), dropout_keys=dropout_keys)
    assert weights.unique().tolist() == pytest.approx([0.0, 0.25 * 256 / 192])
    assert abs((weights == 0).float().mean().item() - 0.25) < 0.03


def test_dropout_keys_without_a_probability_change_nothing() -> None:
    attention = MultiHeadAttention(D_MODEL, HEADS, dropout=0.0)
    x, dropout_keys = torch.randn(2, 3, D_MODEL), DropoutKeys.for_step(1, 1, torch.arange(2))
    projected = attention.project(x)
    assert attention(x, projected, dropout_keys=dropout_keys).equal(attention(x, projected))


def test_in_bfloat16_attention_is_close_to_float32() -> None:
    attention = MultiHeadAttention(D_MODEL, HEADS)
    x = torch.randn(2, 5, D_MODEL)
    exact = attention(x, attention.project(x))
    attention.to(torch.bfloat16)
    x = x.bfloat16()
    with torch.no_grad():
        fused = attention(x, attention.project(x))
    for rough in (fused, attention(x, attention.project(x))):
        assert rough.dtype == torch.bfloat16
        torch.testing.assert_close(rough.float(), exact, rtol=0.05, atol=0.05)


@pytest.mark.parametrize("length", [5, 2100])
@pytest.mark.parametrize("by_head", [True, False])
def test_one_query_attends_to_few_and_many_keys(by_head: bool, length: int) -> None:
    torch.manual_seed(1)
    query, (keys, values) = torch.randn(4, 2, 1, 16), torch.randn(2, 4, length, 2, 16).transpose(2, 3)
    if by_head:
        keys, values = keys.contiguous(), values.contiguous()
    assert (keys.numel() > _MANY_KEYS) == (length > 5)
    mask = torch.arange(length) >= torch.tensor([0, 1, 2, length - 1])[:, None, None, None]
    for seen in (None, mask):
        weights = (query.double() @ keys.double().transpose(2, 3) / 4).masked_fill(
            torch.zeros(1, dtype=torch.bool) if seen is None else ~seen, -torch.inf
        )
        expected = (weights.softmax(dim=-1) @ values.double()).float()
        torch.testing.assert_close(attend(query, keys, values, seen), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("length", [8, 64])
def test_gradients_of_attention_in_bfloat16_are_close_to_float32(length: int) -> None:
    """Short and long sequences are trained by different kernels."""
    torch.manual_seed(2)
    mask = torch.arange(length) < torch.tensor([length, length // 2])[:, None, None, None]
    exact = [torch.randn(2, HEADS, length, 8, requires_grad=True) for _ in range(3)]
    rough = [x.detach().bfloat16().requires_grad_() for x in exact]
    contexts, expected = attend(*rough, mask), attend(*exact, mask)
    assert contexts.dtype == torch.bfloat16
    torch.testing.assert_close(contexts.float(), expected, rtol=0.05, atol=0.05)
    ahead = torch.randn_like(expected)
    of_rough = torch.autograd.grad(contexts, rough, ahead.bfloat16())
    for one, other in zip(of_rough, torch.autograd.grad(expected, exact, ahead), strict=True):
        assert one.dtype == torch.bfloat16
        torch.testing.assert_close(one.float(), other, rtol=0.05, atol=0.05)


def test_additive_attention_equals_the_formula_of_bahdanau() -> None:
    """e_ij = vᵀ tanh(W s_i + U h_j), a_ij = exp(e_ij) / Σ_k exp(e_ik), c_i = Σ_j a_ij h_j, one number at a time."""
    torch.manual_seed(3)
    attention = AdditiveAttention(query_size=3, memory_size=4, attention_size=5)
    s, h = torch.randn(2, 3, 3), torch.randn(2, 6, 4)
    lengths = [6, 4]
    mask = (torch.arange(6) < torch.tensor(lengths)[:, None])[:, None, None]
    found = attention(s, attention.project(h), mask)
    w, u, bias, v = (p.tolist() for p in (attention.query.weight, attention.key.weight, attention.key.bias,
                                          attention.score.weight[0]))  # fmt: skip
    for b, length in enumerate(lengths):
        for i in range(3):
            energies = []
            for j in range(length):
                inner = [
                    sum(w[a][q] * s[b, i, q].item() for q in range(3))
                    + sum(u[a][c] * h[b, j, c].item() for c in range(4))
                    + bias[a]
                    for a in range(5)
                ]
                energies.append(sum(v[a] * math.tanh(inner[a]) for a in range(5)))
            total = sum(map(math.exp, energies))
            context = [sum(math.exp(e) / total * h[b, j, c].item() for j, e in enumerate(energies)) for c in range(4)]
            assert found[b, i].tolist() == pytest.approx(context, abs=1e-5)


def test_weights_are_initialised_as_in_a_transformer_of_pytorch() -> None:
    """Queries, keys and values are one matrix there; begun apart, post-norm models hardly learn."""
    torch.manual_seed(1)
    ours = MultiHeadAttention(256, num_heads=4)
    theirs = (
        nn.Transformer(256, nhead=4, num_encoder_layers=1, num_decoder_layers=1, batch_first=True)
        .encoder.layers[0]
        .self_attn
    )
    packed = torch.cat([ours.query.weight, ours.key_value.weight])
    for mine, other in ((packed, theirs.in_proj_weight), (ours.output.weight, theirs.out_proj.weight)):
        assert mine.abs().max().item() == pytest.approx(other.abs().max().item(), rel=1e-2)
        assert mine.std().item() == pytest.approx(other.std().item(), rel=1e-2)
