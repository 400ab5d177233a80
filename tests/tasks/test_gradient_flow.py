"""Gradient norms through time against their equations."""

from __future__ import annotations

import pytest
import torch
from random_models import VOCABULARIES, random_targets
from torch import nn

from heed.models.rnn_lm import Recurrent, RecurrentConfig
from heed.tasks.language_model.gradient_flow import norms_through_time


def build(factor: float, cell: str = "tanh", **choices: object) -> Recurrent:
    """One layer whose recurrent weight is a rotation times `factor`, with inputs so small that tanh is a line."""
    torch.manual_seed(1)
    config = RecurrentConfig.model_validate({"cell": cell, "d_model": 6, "num_layers": 1, "dropout": 0.0, **choices})
    model = Recurrent(config, VOCABULARIES)
    rotation, _ = torch.linalg.qr(torch.randn(6, 6))
    for parameter in model.layers.parameters():
        nn.init.zeros_(parameter)
    model.layers[0].recurrent.weight.data[:6] = factor * rotation
    return model.requires_grad_(False)


@pytest.mark.parametrize("factor", [0.5, 1.0, 2.0])
def test_norms_shrink_or_grow_with_the_power_of_the_recurrent_weight(factor: float) -> None:
    model, ids = build(factor), random_targets(3, 8)
    found = norms_through_time(model, ids, ids[:, 0], model.start(None, 3))
    ages = torch.arange(7, -1, -1)
    torch.testing.assert_close(found, found[:, -1:] * factor**ages, rtol=1e-4, atol=1e-6)


def test_an_open_gate_preserves_norms() -> None:
    """In an LSTM whose forget gate is open, the memory's gradient stays what it is."""
    model, ids = build(0.0, cell="lstm", forget_bias=0.0), random_targets(3, 8)
    model.layers[0].input.bias.data[6:12] = 30.0
    found = norms_through_time(model, ids, ids[:, 0], model.start(None, 3))
    torch.testing.assert_close(found, found[:, :1].expand(3, 8), rtol=1e-4, atol=1e-6)


def test_norms_equal_those_of_finite_differences() -> None:
    torch.manual_seed(0)
    model = Recurrent(RecurrentConfig(d_model=6, hidden_size=5, num_layers=2), VOCABULARIES).double()
    for parameter in model.requires_grad_(False).parameters():
        nn.init.normal_(parameter, std=0.7)
    ids, after = random_targets(1, 4), torch.tensor([5])
    _, state = model.advance(ids[:, :2], model.start(None))
    found = norms_through_time(model, ids, after, model.start(None))[0, 2]

    def loss(layers: tuple[tuple[torch.Tensor, ...], ...]) -> float:
        moved = type(state)(layers, state.length)
        features, _ = model.advance(ids[:, 2:], moved)
        return -float(model.head.log_prob(features[:, -1], after))

    squares = 0.0
    layers = [[tensor.detach().clone() for tensor in states] for states in state.layers]
    for number, states in enumerate(layers):
        for place, tensor in enumerate(states):
            for column in range(tensor.shape[1]):
                changed = [[part.clone() for part in row] for row in layers]
                changed[number][place][0, column] += 1e-3
                up = loss(tuple(map(tuple, changed)))
                changed[number][place][0, column] -= 2e-3
                squares += ((up - loss(tuple(map(tuple, changed)))) / 2e-3) ** 2
    assert float(found) == pytest.approx(squares**0.5, rel=1e-2)
