"""Solutions of chapter 5: what a gate does to the gradient, and why two models are better than one."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from heed.nn.recurrent import CELLS, Cell

STEPS, SIZE = 50, 8


def gradient_through_time(cell: Cell) -> Tensor:
    """Solution 1: ∂h_T / ∂h_0 after `STEPS` steps, [N, N]."""
    generator = torch.Generator().manual_seed(1)
    inputs = cell.input(torch.randn(STEPS, 1, SIZE, generator=generator))

    def last(h: Tensor) -> Tensor:
        states = (h[None],)
        for gates in inputs:
            states = cell(gates, states)
        return states[0][0]

    return torch.autograd.functional.jacobian(last, torch.zeros(SIZE))


def test_an_open_gate_passes_the_gradient_and_a_vanilla_network_does_not() -> None:
    torch.manual_seed(2)
    vanilla, sigmoid, gated = (CELLS[name](SIZE, SIZE) for name in ("tanh", "sigmoid", "ugrnn"))
    gated.input.bias.data[:SIZE] += 20.0  # the gate's part: G = 1
    torch.testing.assert_close(gradient_through_time(gated), torch.eye(SIZE), atol=1e-4, rtol=0)
    norms = [gradient_through_time(cell).norm().item() for cell in (vanilla, sigmoid)]
    assert norms[0] < 1e-3 and norms[1] < 1e-9 * norms[0]


def perplexity(probabilities: np.ndarray) -> float:
    """Of the probabilities that a model gave to the tokens of a text."""
    return float(np.exp(-np.log(probabilities).mean()))


def test_the_mean_of_two_models_is_at_least_as_good_as_their_geometric_mean() -> None:
    """Solution 2: log((p + q) / 2) >= (log p + log q) / 2 for every token, by concavity; equal only where p = q. On the
    Penn Treebank an LSTM and Kneser-Ney have 117.0 and 148.0, so together at most 131.6, and in fact 99.7."""
    p, q = np.random.default_rng(1).uniform(1e-4, 1, size=(2, 1000))
    bound = np.sqrt(perplexity(p) * perplexity(q))
    assert perplexity((p + q) / 2) < bound
    assert perplexity((p + p) / 2) == pytest.approx(perplexity(p))
    assert np.sqrt(117.0 * 148.0) == pytest.approx(131.6, abs=0.05)
