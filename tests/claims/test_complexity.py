"""The complexity table of the Transformer summary: operations and sequential steps, counted and not timed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import FlopCounterMode

from heed.models.cnn import Cnn, CnnConfig
from heed.nn.attention import ATTENTION
from heed.nn.contract import TokenSource, Vocabularies
from heed.nn.linear_recurrence import linear_recurrence
from heed.nn.recurrent import CELLS

WIDTH = 3


def attention(length: int, size: int) -> Tensor:
    """softmax(H Hᵀ) H, without projections."""
    layer, h = ATTENTION["dot"].in_block(size, 1, 0.0), torch.randn(1, length, size)
    contexts: Tensor = layer(h, layer.project(h))
    return contexts


def recurrence(length: int, size: int) -> Tensor:
    """A vanilla RNN, step by step: h' = tanh(W x + U h + b)."""
    cell, x = CELLS["tanh"](size, size), torch.randn(length, 1, size)
    states = cell.zeros(1)
    for gates in cell.input(x):
        states = cell(gates, states)
    return states[0]


def convolution(length: int, size: int) -> Tensor:
    """A filter of `WIDTH` positions for each feature."""
    model = Cnn(CnnConfig(d_model=size, widths=(WIDTH,), num_filters=size), Vocabularies(20, 2))
    ids = torch.full((1, length), 5)
    return model.read(TokenSource(ids, ids > 0))


def flops(layer: Callable[[int, int], Tensor], length: int, size: int) -> int:
    """Multiplications and additions of matrix products and convolutions."""
    with torch.no_grad(), FlopCounterMode(display=False) as counter:
        layer(length, size)
    return counter.get_total_flops()


@pytest.mark.parametrize("length, size", [(8, 16), (16, 16), (16, 32), (40, 8)])
def test_operations_are_those_of_the_table(length: int, size: int) -> None:
    """Transformer summary, "Attention is cheap": n² d for self-attention, n d² for a recurrence, k n d² for a
    convolution. Counted, with two operations for each product of numbers: 4 n² d, 4 n d² for a vanilla RNN (W x and
    U h; an LSTM has four times as many), 2 k n d²."""
    assert flops(attention, length, size) == 4 * length**2 * size
    assert flops(recurrence, length, size) == 4 * length * size**2
    assert flops(convolution, length, size) == 2 * WIDTH * length * size**2


def test_self_attention_is_cheaper_only_for_texts_shorter_than_its_size() -> None:
    """Transformer summary: "attention is cheap". The table says so for n < d; at n = d both are equal, and for a long
    text self-attention is dearer. With its four projections of d x d it also pays 8 n d² however short the text."""
    size = 16
    for length in (8, 16, 32):
        difference = flops(attention, length, size) - flops(recurrence, length, size)
        assert (difference > 0) == (length > size) and (difference == 0) == (length == size)

    def multi_head(length: int, size: int) -> Tensor:
        layer, h = ATTENTION["multi_head"].in_block(size, 2, 0.0), torch.randn(1, length, size)
        contexts: Tensor = layer(h, layer.project(h), trace=lambda weights: None)
        return contexts

    assert flops(multi_head, 8, size) == flops(attention, 8, size) + 8 * 8 * size**2


class Depth(TorchDispatchMode):
    """Counts the matrix products, element-wise products and convolutions that are called one after another."""

    calls = 0

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        Depth.calls += any(name in str(function) for name in ("mm", "matmul", "convolution", "softmax", "addcmul"))
        return function(*args, **(kwargs or {}))


def steps(layer: Callable[[int, int], Tensor], length: int) -> int:
    Depth.calls = 0
    with torch.no_grad(), Depth():
        layer(length, 4)
    return Depth.calls


def test_a_recurrence_takes_a_step_for_each_position_and_self_attention_does_not() -> None:
    """Kakade, section 5, "the LSTM fundamentally needs a for-loop": sequential steps are n for a recurrence, and do not
    depend on n for self-attention and convolution. A recurrence that is linear in its state, as SSRU's, takes about
    log₂ n rounds instead."""

    def linear(length: int, size: int) -> Tensor:
        return linear_recurrence(torch.rand(1, length, size), torch.rand(1, length, size), torch.rand(1, size))

    assert steps(attention, 64) == steps(attention, 8)
    assert steps(convolution, 64) == steps(convolution, 8)
    assert steps(recurrence, 64) - steps(recurrence, 8) == 64 - 8
    assert steps(linear, 64) - steps(linear, 8) == 3
