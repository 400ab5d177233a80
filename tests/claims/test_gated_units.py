"""Claims of McAllester's notes about recurrent units."""

from __future__ import annotations

import torch
from torch import Tensor

from heed.nn.recurrent import CELLS, Cell


def cell_of(name: str) -> tuple[Cell, Tensor, Tensor]:
    """A cell, an input and a state."""
    torch.manual_seed(0)
    return CELLS[name](3, 5).double(), torch.randn(2, 3).double(), torch.rand(2, 5).double()


def test_the_vanilla_rnn_of_the_notes_is_a_sigmoid_with_a_threshold() -> None:
    """McAllester, "Vanilla RNNs": σ(W h + W x - B). Its bias is subtracted; elsewhere the unit is a tanh with an added
    bias, which is another unit: σ(a) = (1 + tanh(a / 2)) / 2, between 0 and 1. heed's bias is -B."""
    cell, x, h = cell_of("sigmoid")
    threshold = -cell.input.bias
    [found] = cell(cell.input(x), (h,))
    expected = torch.sigmoid(h @ cell.recurrent.weight.T + x @ cell.input.weight.T - threshold)
    torch.testing.assert_close(found, expected)
    torch.testing.assert_close(found, (1 + torch.tanh(expected.logit() / 2)) / 2)


def test_a_gate_of_one_is_a_residual_connection_through_time() -> None:
    """McAllester, "Gated RNNs": h' = G ⊙ h + (1 - G) ⊙ R, "analogous to a residual connection": with G = 1 the state
    and its gradient pass unchanged, in an update gate RNN; a convex combination never leaves what it is made of."""
    cell, x, h = cell_of("ugrnn")
    [found] = cell(cell.input(x), (h,))
    _, new = (cell.input(x) + cell.recurrent(h)).chunk(2, dim=-1)
    low, high = torch.minimum(h, new.tanh()), torch.maximum(h, new.tanh())
    assert ((low <= found) & (found <= high)).all()
    cell.input.bias.data[:5] = 50.0
    states: tuple[Tensor, ...] = (h.requires_grad_(),)
    for _ in range(20):
        states = cell(cell.input(x), states)
    [gradient] = torch.autograd.grad(states[0].sum(), h)
    torch.testing.assert_close(states[0], h)
    torch.testing.assert_close(gradient, torch.ones_like(h))
