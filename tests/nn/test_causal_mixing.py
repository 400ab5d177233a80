"""Layers that replace a decoder's self-attention: equal to their equations, token by token, with one vector a row."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from heed.nn.attention import BEGINNING
from heed.nn.causal_mixing import CAUSAL_MIXING, SSRU, AverageAttention, CausalMixing
from heed.nn.linear_recurrence import linear_recurrence
from heed.nn.states import RowPositions

every_mixing = pytest.mark.parametrize("name", CAUSAL_MIXING)

D_MODEL, D_FF = 6, 10


def mixing_of(name: str) -> CausalMixing:
    """The named layer with random weights in float64."""
    torch.manual_seed(3)
    layer = CAUSAL_MIXING[name].in_block(D_MODEL, D_FF, "relu").double()
    for weight in layer.parameters():
        torch.nn.init.normal_(weight, std=0.5)
    return layer


def mixed(layer: CausalMixing, x: Tensor, positions: RowPositions = BEGINNING) -> Tensor:
    """Outputs for tokens without earlier ones."""
    out: Tensor = layer(x, layer.empty_cache(len(x), 0, x).appending(0), None, positions)
    return out


def test_ssru_equals_its_equations_step_by_step() -> None:
    layer, x = mixing_of("ssru"), torch.randn(2, 9, D_MODEL, dtype=torch.float64)
    assert isinstance(layer, SSRU)
    forget, value = layer.gate_value.weight.chunk(2)
    memory, expected = torch.zeros(2, D_MODEL, dtype=torch.float64), []
    for step in x.unbind(1):
        f = torch.sigmoid(step @ forget.T + layer.gate_bias)
        memory = f * memory + (1 - f) * (step @ value.T)
        expected.append(memory.clamp(min=0))
    torch.testing.assert_close(mixed(layer, x), torch.stack(expected, 1))


@pytest.mark.parametrize("name", ["average", "average_without_feed_forward"])
def test_average_attention_equals_its_equations_step_by_step(name: str) -> None:
    layer, x = mixing_of(name), torch.randn(2, 5, D_MODEL, dtype=torch.float64)
    assert isinstance(layer, AverageAttention)
    expected = []
    for t in range(1, 6):
        now, g = x[:, t - 1], x[:, :t].mean(1)
        if name == "average":
            assert layer.feed_forward is not None
            inner, outer = layer.feed_forward.expand, layer.feed_forward.contract
            g = (g @ inner.weight.T + inner.bias).clamp(min=0) @ outer.weight.T + outer.bias
        i, f = torch.sigmoid(torch.cat((now, g), -1) @ layer.gates.weight.T).chunk(2, -1)
        expected.append(i * now + f * g)
    torch.testing.assert_close(mixed(layer, x), torch.stack(expected, 1))


def test_a_row_that_began_later_averages_its_own_tokens() -> None:
    layer, x = mixing_of("average"), torch.randn(1, 3, D_MODEL, dtype=torch.float64)
    later = mixed(layer, x, RowPositions(4, torch.tensor([4])))
    torch.testing.assert_close(later, mixed(layer, x))


@every_mixing
def test_the_state_does_not_grow(name: str) -> None:
    layer, x = mixing_of(name).float(), torch.randn(3, 40, D_MODEL)
    carry = layer.empty_cache(3, 100, x).appending(0)
    for position, token in enumerate(x.split(1, dim=1)):
        layer(token, carry, None, RowPositions(position))
        assert carry.cache.vector.shape == (3, D_MODEL)
        assert carry.cache.vector.untyped_storage().size() == 4 * 3 * D_MODEL, "and it is no view of anything larger"


@every_mixing
def test_in_bfloat16_the_vector_is_carried_in_float32(name: str) -> None:
    layer, x = mixing_of(name).float(), torch.randn(2, 200, D_MODEL)
    carry = layer.empty_cache(2, 0, x.bfloat16()).appending(0)
    rounded = layer.bfloat16()(x.bfloat16(), carry, None, BEGINNING)
    assert rounded.dtype == torch.bfloat16
    assert carry.cache.vector.dtype == torch.float32
    torch.testing.assert_close(rounded.float(), mixed(layer.float(), x), rtol=0.05, atol=0.05)


@pytest.mark.parametrize("length", [1, 2, 7, 8, 13])
def test_a_recurrence_of_all_positions_equals_its_steps_with_their_gradients(length: int) -> None:
    torch.manual_seed(0)
    factors = torch.rand(2, length, 3, dtype=torch.float64, requires_grad=True)
    terms = torch.randn(2, length, 3, dtype=torch.float64, requires_grad=True)
    before = torch.randn(2, 3, dtype=torch.float64, requires_grad=True)
    value, steps = before, []
    for t in range(length):
        value = factors[:, t] * value + terms[:, t]
        steps.append(value)
    expected, found = torch.stack(steps, 1), linear_recurrence(factors, terms, before)
    torch.testing.assert_close(found, expected)
    grad, inputs = torch.randn_like(expected), (factors, terms, before)
    for one, other in zip(
        torch.autograd.grad(found, inputs, grad), torch.autograd.grad(expected, inputs, grad), strict=True
    ):
        torch.testing.assert_close(one, other)


def test_a_recurrence_of_all_positions_takes_logarithmically_many_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []
    addcmul = torch.addcmul
    monkeypatch.setattr(torch, "addcmul", lambda *args, **more: (calls.append(1), addcmul(*args, **more))[1])
    linear_recurrence(torch.rand(1, 64, 2), torch.rand(1, 64, 2), torch.rand(1, 2))
    assert len(calls) == 1 + 6
