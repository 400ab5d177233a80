"""Recurrent cells, and their application to sequences.

A cell computes the next state from an input and the previous state; `CELLS` names them. W x is one product for all
steps, so a step takes the input's part of the gates. Weights and the order of gates are those of PyTorch if it has the
cell.
"""

from __future__ import annotations

import math
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import ClassVar

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from heed.nn.dropout_keys import DropoutKeys
from heed.nn.packing import is_packed
from heed.nn.repeated_product import Product, repeated_product

States = tuple[Tensor, ...]
"""The state of a cell, each `[B, N]`: h, which is also its output, and c in an LSTM."""
Kernel = Callable[..., tuple[Tensor, ...]]


class Cell(nn.Module, ABC):
    """One step of a layer. `input` gives W x + b, `recurrent` gives U h (+ b'), concatenated for all gates."""

    num_gates: ClassVar[int] = 1
    two_biases: ClassVar[bool] = False
    """Whether U h has a bias, as in PyTorch."""
    keeping_gate: ClassVar[int | None] = None
    """Number of the gate that keeps the old state if it is 1."""
    kernel: ClassVar[Kernel | None] = None
    """PyTorch's equivalent kernel for a whole sequence, if it has one."""
    fastest_on_cpu: ClassVar[bool] = False
    """Whether that kernel is faster than `unroll`'s loop on a CPU, in float32."""

    def __init__(self, input_size: int, hidden_size: int, bound: float | None = None, forget_bias: float = 0.0) -> None:
        """Initial weights are uniform in ± `bound` (None: 1 / √hidden_size); the keeping gate gets `forget_bias`."""
        super().__init__()
        self.hidden_size = hidden_size
        self.input = nn.Linear(input_size, self.num_gates * hidden_size)
        self._add_recurrent()
        bound = 1.0 / math.sqrt(hidden_size) if bound is None else bound
        for parameter in self.parameters():
            nn.init.uniform_(parameter, -bound, bound)
        if self.keeping_gate is not None:
            self.input.bias.data.view(self.num_gates, -1)[self.keeping_gate] += forget_bias

    def _add_recurrent(self) -> None:
        self.recurrent = nn.Linear(self.hidden_size, self.num_gates * self.hidden_size, bias=self.two_biases)

    def recurrents(self) -> tuple[nn.Module, ...]:
        """The recurrent products, as `step` takes them."""
        return (self.recurrent,)

    def zeros(self, num_rows: int) -> States:
        """The state before the first step."""
        return (self.input.bias.new_zeros(num_rows, self.hidden_size),)

    @property
    def state_sizes(self) -> tuple[int, ...]:
        """The sizes of the parts of a state."""
        return tuple(part.shape[1] for part in self.zeros(0))

    @abstractmethod
    def step(self, x: Float[Tensor, "B G"], states: States, *products: Product) -> States:
        """The next state, from x's part of the gates."""

    def forward(self, x: Float[Tensor, "B G"], states: States) -> States:
        """One step, where `x` is `self.input` of the input."""
        return self.step(x, states, *self.recurrents())

    def fuses(self, x: Tensor) -> bool:
        """Whether to use PyTorch's kernel for a sequence `[T, B, I]`."""
        if self.kernel is None or is_packed(self.input) or is_packed(self.recurrent):
            return False
        return x.is_cuda or (self.fastest_on_cpu and x.dtype == torch.float32)


class TanhCell(Cell):
    """The vanilla RNN (Elman 1990): h' = tanh(W x + U h + b)."""

    two_biases = True
    kernel = staticmethod(torch.rnn_tanh)

    def step(self, x: Float[Tensor, "B G"], states: States, *products: Product) -> States:
        return (torch.tanh(x + products[0](states[0])),)


class SigmoidCell(Cell):
    """The vanilla RNN of McAllester's notes, with two-input threshold units: h' = σ(W x + U h - B), b = -B."""

    def step(self, x: Float[Tensor, "B G"], states: States, *products: Product) -> States:
        return (torch.sigmoid(x + products[0](states[0])),)


class UGRNNCell(Cell):
    """The update gate RNN (Collins, Sohl-Dickstein & Sussillo 2017; McAllester's notes with b = -B).

    G = σ(W_G x + U_G h + b_G), R = tanh(W_R x + U_R h + b_R), h' = G ⊙ h + (1 - G) ⊙ R.
    """

    num_gates = 2
    keeping_gate = 0

    def step(self, x: Float[Tensor, "B G"], states: States, *products: Product) -> States:
        [h] = states
        gate, new = (x + products[0](h)).chunk(2, dim=-1)
        return (torch.lerp(torch.tanh(new), h, torch.sigmoid(gate)),)


class GRUCell(Cell):
    """The gated recurrent unit as PyTorch and cuDNN compute it: reset after the recurrent product.

    r = σ(W_r x + U_r h), z = σ(W_z x + U_z h), n = tanh(W_n x + r ⊙ (U_n h)), h' = (1 - z) ⊙ n + z ⊙ h, with two
    biases at each gate, which are omitted here.
    """

    num_gates = 3
    two_biases = True
    keeping_gate = 1
    kernel = staticmethod(torch.gru)

    def step(self, x: Float[Tensor, "B G"], states: States, *products: Product) -> States:
        [h] = states
        sizes = [2 * self.hidden_size, self.hidden_size]
        gates_x, new_x = torch.split(x, sizes, dim=-1)
        gates_h, new_h = torch.split(products[0](h), sizes, dim=-1)
        reset, update = torch.sigmoid(gates_x + gates_h).chunk(2, dim=-1)
        return (torch.lerp(torch.tanh(torch.addcmul(new_x, reset, new_h)), h, update),)


class GRUResetBeforeCell(Cell):
    """The gated recurrent unit of Cho et al. (2014): reset before the recurrent product.

    r = σ(W_r x + U_r h + b_r), z = σ(W_z x + U_z h + b_z), n = tanh(W_n x + U_n (r ⊙ h) + b_n),
    h' = (1 - z) ⊙ n + z ⊙ h.
    """

    num_gates = 3
    keeping_gate = 1

    def _add_recurrent(self) -> None:
        size = self.hidden_size
        self.recurrent = nn.Linear(size, 2 * size, bias=False)
        self.recurrent_new = nn.Linear(size, size, bias=False)

    def recurrents(self) -> tuple[nn.Module, ...]:
        """U_r and U_z; U_n."""
        return self.recurrent, self.recurrent_new

    def step(self, x: Float[Tensor, "B G"], states: States, *products: Product) -> States:
        [h] = states
        gates, new = torch.split(x, [2 * self.hidden_size, self.hidden_size], dim=-1)
        reset, update = torch.sigmoid(gates + products[0](h)).chunk(2, dim=-1)
        return (torch.lerp(torch.tanh(new + products[1](reset * h)), h, update),)


class LSTMCell(Cell):
    """Long short-term memory with a forget gate (Hochreiter & Schmidhuber 1997; Gers et al. 2000), as PyTorch has it.

    i, f, o = σ(W x + U h) each, g = tanh(W_g x + U_g h), c' = f ⊙ c + i ⊙ g, h' = o ⊙ tanh(c'); gates in the order
    i, f, g, o, with two biases each, which are omitted here. The memory c has at least float32.
    """

    num_gates = 4
    two_biases = True
    keeping_gate = 1
    kernel = staticmethod(torch.lstm)
    fastest_on_cpu = True

    def zeros(self, num_rows: int) -> States:
        """h and c."""
        [h] = super().zeros(num_rows)
        return h, h.to(torch.promote_types(h.dtype, torch.float32))

    def step(self, x: Float[Tensor, "B G"], states: States, *products: Product) -> States:
        h, c = states
        i, f, g, o = (x + products[0](h)).chunk(4, dim=-1)
        c = torch.addcmul(torch.sigmoid(f) * c, torch.sigmoid(i), torch.tanh(g))
        return (torch.sigmoid(o) * torch.tanh(c)).to(h.dtype), c


CELLS: dict[str, type[Cell]] = {
    "tanh": TanhCell, "sigmoid": SigmoidCell, "ugrnn": UGRNNCell, "gru_reset_before": GRUResetBeforeCell,
    "gru_reset_after": GRUCell, "lstm": LSTMCell,
}  # fmt: skip


def unroll(
    cell: Cell, x: Float[Tensor, "T B I"], states: States, dropout: float = 0.0, dropout_keys: DropoutKeys | None = None
) -> tuple[Float[Tensor, "T B N"], States]:
    """Read T vectors, time first; returns h after each of them and the state after the last.

    `dropout` is DropConnect on the recurrent weights (Merity et al. 2018, section 2), with one mask for the whole call.
    """
    if cell.fuses(x):
        return _fused(cell, x, states, dropout, dropout_keys)
    products = [
        repeated_product(linear, len(x), dropout, dropout_keys, site) for site, linear in enumerate(cell.recurrents())
    ]
    outputs = []
    for gates in cell.input(x).unbind(0):
        states = cell.step(gates, states, *products)
        outputs.append(states[0])
    return torch.stack(outputs), states


def unroll_rows(
    cell: Cell, x: Float[Tensor, "B S I"], mask: Bool[Tensor, "B S"]
) -> tuple[Float[Tensor, "B S N"], States]:
    """Read rows from the beginning; padding, at the end of a row, is not read: each state is that after its last step.

    The outputs at padding are undefined.
    """
    states = cell.zeros(len(x))
    if bool(mask.all()):
        out, states = unroll(cell, x.transpose(0, 1), states)
        return out.transpose(0, 1), states
    if cell.fuses(x):
        return _fused_rows(cell, x, states, mask.sum(1))
    products = [repeated_product(linear, x.shape[1]) for linear in cell.recurrents()]
    outputs = []
    for gates, is_real in zip(cell.input(x).unbind(1), mask.unbind(1), strict=True):
        after = cell.step(gates, states, *products)
        states = tuple(torch.where(is_real[:, None], new, old) for new, old in zip(after, states, strict=True))
        outputs.append(states[0])
    return torch.stack(outputs, 1), states


def _fused_rows(
    cell: Cell, x: Float[Tensor, "B S I"], states: States, lengths: Int[Tensor, " B"]
) -> tuple[Float[Tensor, "B S N"], States]:
    """As `unroll_rows`, by PyTorch's kernel for packed sequences."""
    assert cell.kernel is not None
    packed = pack_padded_sequence(x, lengths.cpu(), batch_first=True, enforce_sorted=False)
    weights = [cell.input.weight, cell.recurrent.weight, cell.input.bias, cell.recurrent.bias]
    before = tuple(state[None].to(x.dtype) for state in states)
    _allow_scattered_weights(x)
    data, *after = cell.kernel(
        packed.data, packed.batch_sizes, before if len(before) > 1 else before[0], weights, True, 1, 0.0,
        torch.is_grad_enabled(), False,
    )  # fmt: skip
    out, _ = pad_packed_sequence(packed._replace(data=data), batch_first=True, total_length=x.shape[1])
    order = packed.unsorted_indices
    return out, tuple(new[0, order].to(old.dtype) for new, old in zip(after, states, strict=True))


def _fused(
    cell: Cell, x: Float[Tensor, "T B I"], states: States, dropout: float, dropout_keys: DropoutKeys | None
) -> tuple[Float[Tensor, "T B N"], States]:
    assert cell.kernel is not None
    recurrent = (
        cell.recurrent.weight if dropout_keys is None else dropout_keys.weights(cell.recurrent.weight, dropout, 0)
    )
    weights = [cell.input.weight, recurrent, cell.input.bias, cell.recurrent.bias]
    before = tuple(state[None].to(x.dtype) for state in states)
    _allow_scattered_weights(x)
    out, *after = cell.kernel(
        x, before if len(before) > 1 else before[0], weights, has_biases=True, num_layers=1, dropout=0.0,
        train=torch.is_grad_enabled(), bidirectional=False, batch_first=False,
    )  # fmt: skip
    return out, tuple(new[0].to(old.dtype) for new, old in zip(after, states, strict=True))


def _allow_scattered_weights(x: Tensor) -> None:
    """Do not warn that cuDNN concatenates the weights at each call, which costs little."""
    if x.is_cuda:
        warnings.filterwarnings("ignore", "RNN module weights are not part of single contiguous chunk")


class Bidirectional(nn.Module):
    """Two cells, one in each direction (Schuster & Paliwal 1997); padding (at the end of a row) is not read."""

    def __init__(self, cell: type[Cell], input_size: int, hidden_size: int) -> None:
        super().__init__()
        self.left_to_right = cell(input_size, hidden_size)
        self.right_to_left = cell(input_size, hidden_size)

    def forward(
        self, x: Float[Tensor, "B S E"], mask: Bool[Tensor, "B S"]
    ) -> tuple[Float[Tensor, "B S C"], Float[Tensor, "B N"]]:
        """The concatenated h of both directions at each position (C = 2 N), and the last h of right-to-left."""
        order = reversed_positions(mask)[..., None]
        forward = _read(self.left_to_right, x)
        backward = _read(self.right_to_left, x.take_along_dim(order, dim=1)).take_along_dim(order, dim=1)
        return torch.cat((forward, backward), dim=-1), backward[:, 0]


def reversed_positions(mask: Bool[Tensor, "B S"]) -> Tensor:
    """`[B, S]`: the real positions of each row from its last to its first, then those of the padding in order."""
    positions = torch.arange(mask.shape[1], device=mask.device)
    return torch.where(mask, mask.sum(1, keepdim=True) - 1 - positions, positions)


def _read(cell: Cell, x: Float[Tensor, "B S E"]) -> Float[Tensor, "B S N"]:
    out, _ = unroll(cell, x.transpose(0, 1), cell.zeros(len(x)))
    return out.transpose(0, 1)
