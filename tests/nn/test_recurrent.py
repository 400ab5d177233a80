"""Recurrent cells: equal to their equations and to PyTorch's cells, however they are run."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from heed.nn.dropout_keys import DropoutKeys
from heed.nn.recurrent import CELLS, Bidirectional, Cell, GRUCell, States, unroll, unroll_rows

INPUT, HIDDEN, ROWS, STEPS = 5, 4, 3, 9
THEIRS = {"tanh": nn.RNN, "gru_reset_after": nn.GRU, "lstm": nn.LSTM}
CLOSE = {"rtol": 1e-5, "atol": 1e-5}
every_cell = pytest.mark.parametrize("name", CELLS)


def cell_of(name: str, hidden: int = HIDDEN) -> Cell:
    """A cell with random weights."""
    torch.manual_seed(5)
    return CELLS[name](INPUT, hidden, bound=0.8)


def weights_of(cell: Cell, ending: str = "") -> dict[str, Tensor]:
    """Our weights under PyTorch's names."""
    return {
        f"weight_ih{ending}": cell.input.weight, f"bias_ih{ending}": cell.input.bias,
        f"weight_hh{ending}": cell.recurrent.weight, f"bias_hh{ending}": cell.recurrent.bias,
    }  # fmt: skip


def random_states(cell: Cell) -> States:
    """Some state under way."""
    return tuple(torch.randn_like(state) for state in cell.zeros(ROWS))


def by_hand(cell: Cell, x: Tensor, states: States) -> tuple[Tensor, States]:
    """Step after step with the cell's `forward`, and nothing else."""
    outputs = []
    for t in range(len(x)):
        states = cell(cell.input(x[t]), states)
        outputs.append(states[0])
    return torch.stack(outputs), states


# Equations


def parts(linear: nn.Module, count: int) -> list[tuple[Tensor, Tensor]]:
    """The weight and bias (0 where there is none) of each gate."""
    weights = linear.weight.chunk(count)
    biases = linear.bias.chunk(count) if linear.bias is not None else [torch.tensor(0.0)] * count
    return list(zip(weights, biases, strict=True))


def equation(name: str, cell: Cell, x: Tensor, states: States) -> States:
    """One step of one row, written out as in the papers: x `[I]`, each state `[N]`."""
    h, sigmoid, tanh = states[0], torch.sigmoid, torch.tanh
    of_x = [w @ x + b for w, b in parts(cell.input, cell.num_gates)]
    if name == "gru_reset_before":
        (u_r, _), (u_z, _) = parts(cell.recurrent, 2)
        r, z = sigmoid(of_x[0] + u_r @ h), sigmoid(of_x[1] + u_z @ h)
        return ((1 - z) * tanh(of_x[2] + cell.recurrent_new.weight @ (r * h)) + z * h,)
    of_h = [u @ h + b for u, b in parts(cell.recurrent, cell.num_gates)]
    both = [a + b for a, b in zip(of_x, of_h, strict=True)]
    if name == "tanh":
        return (tanh(both[0]),)
    if name == "sigmoid":
        return (1 / (1 + torch.exp(-both[0])),)
    if name == "ugrnn":
        gate = sigmoid(both[0])
        return (gate * h + (1 - gate) * tanh(both[1]),)
    if name == "gru_reset_after":
        r, z = sigmoid(both[0]), sigmoid(both[1])
        return ((1 - z) * tanh(of_x[2] + r * of_h[2]) + z * h,)
    i, f, g, o = sigmoid(both[0]), sigmoid(both[1]), tanh(both[2]), sigmoid(both[3])
    c = f * states[1] + i * g
    return o * tanh(c), c


@every_cell
@torch.no_grad()
def test_a_step_is_the_equation(name: str) -> None:
    cell = cell_of(name)
    x, states = torch.randn(ROWS, INPUT), random_states(cell)
    found = cell(cell.input(x), states)
    for row in range(ROWS):
        expected = equation(name, cell, x[row], tuple(state[row] for state in states))
        torch.testing.assert_close(tuple(state[row] for state in found), expected, **CLOSE)


@pytest.mark.parametrize("name", THEIRS)
def test_a_sequence_equals_pytorch_in_values_and_gradients(name: str) -> None:
    cell, theirs = cell_of(name), THEIRS[name](INPUT, HIDDEN)
    theirs.load_state_dict(weights_of(cell, "_l0"))
    x, weighting = torch.randn(STEPS, ROWS, INPUT), torch.randn(STEPS, ROWS, HIDDEN)
    ours, _ = unroll(cell, x, cell.zeros(ROWS))
    expected, _ = theirs(x)
    torch.testing.assert_close(ours, expected, **CLOSE)
    found = torch.autograd.grad((ours * weighting).sum(), list(weights_of(cell).values()))
    by_name = dict(theirs.named_parameters())
    wanted = torch.autograd.grad((expected * weighting).sum(), [by_name[f"{key}_l0"] for key in weights_of(cell)])
    for ours_grad, theirs_grad in zip(found, wanted, strict=True):
        torch.testing.assert_close(ours_grad, theirs_grad, rtol=1e-4, atol=1e-5)


def test_the_two_grus_differ() -> None:
    """With the same weights, reset before and after the recurrent product give other states."""
    after, before = cell_of("gru_reset_after"), cell_of("gru_reset_before")
    before.input.load_state_dict(after.input.state_dict())
    before.recurrent.weight.data, before.recurrent_new.weight.data = after.recurrent.weight.data.split((8, 4))
    nn.init.zeros_(after.recurrent.bias)
    x = torch.randn(ROWS, INPUT)
    states = random_states(after)
    difference = (after(after.input(x), states)[0] - before(before.input(x), states)[0]).abs().max()
    assert difference > 1e-2


# However it is run


@every_cell
@pytest.mark.parametrize("num_steps", [1, 3, 20])
@pytest.mark.parametrize("with_gradients", [True, False])
def test_a_whole_sequence_equals_single_steps(name: str, num_steps: int, with_gradients: bool) -> None:
    cell = cell_of(name)
    x, states = torch.randn(num_steps, ROWS, INPUT), random_states(cell)
    with torch.set_grad_enabled(with_gradients):
        torch.testing.assert_close(unroll(cell, x, states), by_hand(cell, x, states), **CLOSE)


@pytest.mark.parametrize("name", ["lstm", "tanh"])
def test_pytorchs_kernel_and_our_loop_agree(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    cell = cell_of(name)
    x, states = torch.randn(STEPS, ROWS, INPUT), random_states(cell)
    monkeypatch.setattr(type(cell), "fastest_on_cpu", True)
    assert cell.fuses(x)
    fused = unroll(cell, x, states)
    monkeypatch.setattr(type(cell), "fastest_on_cpu", False)
    assert not cell.fuses(x)
    torch.testing.assert_close(unroll(cell, x, states), fused, **CLOSE)


@every_cell
def test_gradients_computed_once_equal_those_of_single_steps(name: str) -> None:
    cell = cell_of(name)
    inputs = [torch.randn(STEPS, ROWS, INPUT), *random_states(cell)]
    for tensor in inputs:
        tensor.requires_grad_()
    wanted = [*inputs, *cell.parameters()]
    weighting = torch.randn(STEPS, ROWS, HIDDEN)
    found = []
    for run in (unroll, by_hand):
        out, states = run(cell, inputs[0], tuple(inputs[1:]))
        found.append(torch.autograd.grad((out * weighting).sum() + sum(state.sum() for state in states), wanted))
    for at_once, one_by_one in zip(*found, strict=True):
        torch.testing.assert_close(at_once, one_by_one, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", ["ugrnn", "lstm"])
def test_in_bfloat16_a_sequence_is_equal_up_to_rounding(name: str) -> None:
    """Its weights are packed, and the memory of an LSTM stays in float32."""
    cell = cell_of(name, hidden=32)
    x = torch.randn(STEPS, ROWS, INPUT)
    exact, _ = unroll(cell, x, cell.zeros(ROWS))
    exact_grad = torch.autograd.grad(exact.square().sum(), cell.recurrent.weight)[0]
    cell.bfloat16()
    rounded, states = unroll(cell, x.bfloat16(), cell.zeros(ROWS))
    assert [state.dtype for state in states] == [torch.bfloat16, torch.float32][: len(states)]
    torch.testing.assert_close(rounded.float(), exact, rtol=0.05, atol=0.05)
    rounded_grad = torch.autograd.grad(rounded.float().square().sum(), cell.recurrent.weight)[0].float()
    assert torch.nn.functional.cosine_similarity(rounded_grad.flatten(), exact_grad.flatten(), dim=0) > 0.99


@every_cell
def test_dropconnect_is_dropout_of_the_recurrent_weights_once_for_all_steps(name: str) -> None:
    dropout_keys, x = DropoutKeys.for_step(3, 4, torch.arange(ROWS)), torch.randn(STEPS, ROWS, INPUT)
    cell = cell_of(name)
    states = random_states(cell)
    dropped = unroll(cell, x, states, 0.5, dropout_keys)
    for site, linear in enumerate(cell.recurrents()):
        weight = linear.weight.data
        linear.weight.data = dropout_keys.weights(weight, 0.5, site)
        assert set((linear.weight / weight).unique().tolist()) == {0.0, 2.0}
    torch.testing.assert_close(dropped, unroll(cell, x, states), **CLOSE)


# Both directions


@pytest.mark.parametrize("name", THEIRS)
def test_both_directions_over_padded_rows_equal_pytorch_over_packed_ones(name: str) -> None:
    torch.manual_seed(6)
    ours = Bidirectional(CELLS[name], INPUT, HIDDEN)
    theirs = THEIRS[name](INPUT, HIDDEN, batch_first=True, bidirectional=True)
    theirs.load_state_dict(weights_of(ours.left_to_right, "_l0") | weights_of(ours.right_to_left, "_l0_reverse"))
    lengths = torch.tensor([3, 7, 1])
    x = torch.randn(3, 7, INPUT)
    mask = torch.arange(7) < lengths[:, None]
    states, last = ours(x, mask)
    packed, ends = theirs(pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False))
    expected, _ = pad_packed_sequence(packed, batch_first=True)
    torch.testing.assert_close(states[mask], expected[mask], **CLOSE)
    torch.testing.assert_close(last, (ends[0] if name == "lstm" else ends)[1], **CLOSE)


# First weights


def test_initial_weights_are_small_and_the_keeping_gate_is_open() -> None:
    assert all(parameter.abs().max() <= 0.5 for parameter in GRUCell(INPUT, HIDDEN).parameters()), "1 / √4"
    for name, gate in {"lstm": 1, "ugrnn": 0, "gru_reset_after": 1, "gru_reset_before": 1}.items():
        cell = CELLS[name](INPUT, HIDDEN, bound=0.1, forget_bias=3.0)
        biases = cell.input.bias.chunk(cell.num_gates)
        assert [bool((bias > 2).all()) for bias in biases] == [index == gate for index in range(cell.num_gates)]


@pytest.mark.parametrize("name", ["ugrnn", "gru_reset_after", "gru_reset_before"])
@torch.no_grad()
def test_an_open_keeping_gate_keeps_the_state(name: str) -> None:
    cell = CELLS[name](INPUT, HIDDEN, bound=0.1, forget_bias=20.0)
    before = random_states(cell)
    _, after = unroll(cell, torch.zeros(30, ROWS, INPUT), before)
    torch.testing.assert_close(after, before, rtol=0, atol=1e-3)


@every_cell
def test_rows_of_different_lengths_end_in_the_state_after_their_last_step(name: str) -> None:
    torch.manual_seed(2)
    cell, lengths = CELLS[name](3, 4), [5, 2, 12]
    x = torch.randn(3, 12, 3)
    out, states = unroll_rows(cell, x, torch.arange(12) < torch.tensor(lengths)[:, None])
    gradients = torch.autograd.grad(sum((part.sum() for part in states), torch.tensor(0.0)), list(cell.parameters()))
    expected = [
        unroll(cell, x[row : row + 1, :length].transpose(0, 1), cell.zeros(1)) for row, length in enumerate(lengths)
    ]
    for row, (alone, last) in enumerate(expected):
        torch.testing.assert_close(out[row, : lengths[row]], alone[:, 0])
        for ours, theirs in zip(states, last, strict=True):
            torch.testing.assert_close(ours[row], theirs[0])
    total = sum((part.sum() for _, last in expected for part in last), torch.tensor(0.0))
    for ours, theirs in zip(gradients, torch.autograd.grad(total, list(cell.parameters())), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-5)
