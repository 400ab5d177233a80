"""How does a network read a sequence one token at a time?

The gated recurrent unit in the form that PyTorch and cuDNN compute, reset after the recurrent product:
r = σ(W_r x + U_r h), z = σ(W_z x + U_z h), n = tanh(W_n x + r ⊙ (U_n h)), h' = (1 - z) ⊙ n + z ⊙ h, biases
left out here. (Cho et al. 2014 reset before the product; the outputs differ.)
"""

from __future__ import annotations

import math

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn


class GRUCell(nn.Module):
    """One step of a gated recurrent unit, equal to `torch.nn.GRU`'s."""

    def __init__(self, input_size: int, hidden_size: int) -> None:
        super().__init__()
        self.hidden_size = hidden_size
        self.input = nn.Linear(input_size, 3 * hidden_size)
        self.recurrent = nn.Linear(hidden_size, 3 * hidden_size)
        bound = 1.0 / math.sqrt(hidden_size)
        for parameter in self.parameters():
            nn.init.uniform_(parameter, -bound, bound)

    def forward(self, gates: Float[Tensor, "B G"], h: Float[Tensor, "B N"]) -> Float[Tensor, "B N"]:
        """The next hidden state; `gates` is `self.input(x)`, which can be taken for all steps at once."""
        reset_x, update_x, new_x = gates.chunk(3, dim=-1)
        reset_h, update_h, new_h = self.recurrent(h).chunk(3, dim=-1)
        reset = torch.sigmoid(reset_x + reset_h)
        update = torch.sigmoid(update_x + update_h)
        new = torch.tanh(new_x + reset * new_h)
        return new + update * (h - new)


class BidirectionalGRU(nn.Module):
    """Two GRUs, one from each end; padding (at the end of a row) leaves the state as it was."""

    def __init__(self, input_size: int, hidden_size: int) -> None:
        super().__init__()
        self.left_to_right = GRUCell(input_size, hidden_size)
        self.right_to_left = GRUCell(input_size, hidden_size)

    def forward(
        self, x: Float[Tensor, "B S E"], mask: Bool[Tensor, "B S"]
    ) -> tuple[Float[Tensor, "B S C"], Float[Tensor, "B N"]]:
        """Both directions' states side by side at each position (C = 2 N), and the last state of right-to-left."""
        length = x.shape[1]
        forward, _ = _run(self.left_to_right, x, mask, range(length))
        backward, last = _run(self.right_to_left, x, mask, range(length - 1, -1, -1))
        return torch.cat((forward, backward), dim=-1), last


def _run(
    cell: GRUCell, x: Float[Tensor, "B S E"], mask: Bool[Tensor, "B S"], order: range
) -> tuple[Float[Tensor, "B S N"], Float[Tensor, "B N"]]:
    gates = cell.input(x)
    h = x.new_zeros(x.shape[0], cell.hidden_size)
    states: list[Tensor] = []
    for position in order:
        h = torch.where(mask[:, position, None], cell(gates[:, position], h), h)
        states.append(h)
    if order.step < 0:
        states.reverse()
    return torch.stack(states, dim=1), h
