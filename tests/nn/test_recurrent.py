"""Is the recurrent unit PyTorch's, and does padding leave it as it was?"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from heed.nn.recurrent import BidirectionalGRU, GRUCell

INPUT, HIDDEN = 5, 4


def weights_of(cell: GRUCell, ending: str = "") -> dict[str, Tensor]:
    """Our weights under PyTorch's names."""
    return {
        f"weight_ih{ending}": cell.input.weight, f"bias_ih{ending}": cell.input.bias,
        f"weight_hh{ending}": cell.recurrent.weight, f"bias_hh{ending}": cell.recurrent.bias,
    }  # fmt: skip


def test_a_step_equals_pytorch() -> None:
    torch.manual_seed(5)
    ours, theirs = GRUCell(INPUT, HIDDEN), nn.GRUCell(INPUT, HIDDEN)
    theirs.load_state_dict(weights_of(ours))
    x, h = torch.randn(3, INPUT), torch.randn(3, HIDDEN)
    torch.testing.assert_close(ours(ours.input(x), h), theirs(x, h), rtol=1e-5, atol=1e-5)


def test_the_reset_gate_comes_after_the_recurrent_product() -> None:
    """One unit with U_n = 1, b = 1, r = ½ and z = 0: n = tanh(½ (h + 1)); Cho's order would give tanh(½ h + 1)."""
    cell = GRUCell(1, 1)
    for parameter in cell.parameters():
        nn.init.zeros_(parameter)
    cell.recurrent.weight.data[2], cell.recurrent.bias.data[2] = 1.0, 1.0
    cell.input.bias.data[1] = -100.0  # z = 0: nothing of the old state is kept
    h = torch.tensor([[3.0]])
    torch.testing.assert_close(cell(cell.input(torch.zeros(1, 1)), h), torch.tensor([[2.0]]).tanh())


def test_a_bidirectional_gru_over_padded_rows_equals_pytorch_over_packed_ones() -> None:
    torch.manual_seed(6)
    ours = BidirectionalGRU(INPUT, HIDDEN)
    theirs = nn.GRU(INPUT, HIDDEN, batch_first=True, bidirectional=True)
    theirs.load_state_dict(weights_of(ours.left_to_right, "_l0") | weights_of(ours.right_to_left, "_l0_reverse"))
    lengths = torch.tensor([3, 7, 1])
    x = torch.randn(3, 7, INPUT)
    mask = torch.arange(7) < lengths[:, None]
    states, last = ours(x, mask)
    packed, ends = theirs(pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False))
    expected, _ = pad_packed_sequence(packed, batch_first=True)
    torch.testing.assert_close(states[mask], expected[mask], rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(last, ends[1], rtol=1e-5, atol=1e-5)


def test_weights_start_small() -> None:
    assert all(parameter.abs().max() <= 0.5 for parameter in GRUCell(INPUT, HIDDEN).parameters()), "1 / √4"
