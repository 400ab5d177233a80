"""Copies of the weights, their moving average and their mean."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from heed.training.weights import MovingAverage, Weights, mean_of


def linear(seed: int = 0) -> nn.Linear:
    torch.manual_seed(seed)
    return nn.Linear(3, 2)


def test_in_float32_the_model_itself_is_optimised() -> None:
    model = linear()
    weights = Weights(model, "float32")
    assert weights.master["weight"] is model.weight


def test_in_bfloat16_the_model_computes_with_a_copy_and_the_master_stays_float32() -> None:
    model = linear()
    exact = model.weight.detach().clone()
    weights = Weights(model, "bfloat16")
    assert model.weight.dtype == torch.bfloat16
    assert weights.master["weight"].dtype == torch.float32
    assert torch.equal(weights.master["weight"], exact)
    assert torch.equal(model.weight.float(), exact.bfloat16().float())


def test_gradients_of_bfloat16_are_added_up_in_float32() -> None:
    """1 + 2^-9 is 1 in bfloat16: added up there, the small gradients would be lost."""
    model = linear()
    weights = Weights(model, "bfloat16")
    for value in (1.0, 2**-9, 2**-9):
        model.weight.grad = torch.full_like(model.weight, value)
        weights.collect_gradients()
    found = weights.master["weight"].grad
    assert found is not None
    assert found.dtype == torch.float32
    assert torch.equal(found, torch.full((2, 3), 1 + 2**-8))
    weights.clear_gradients()
    assert not found.any()


def test_changes_of_the_optimiser_reach_the_model() -> None:
    model = linear()
    weights = Weights(model, "bfloat16")
    weights.master["bias"].add_(1.0)
    weights.publish()
    assert torch.equal(model.bias, weights.master["bias"].bfloat16())


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_other_weights_can_be_loaded(precision: str) -> None:
    weights = Weights(linear(), precision)
    other = {name: torch.full_like(tensor, 0.5) for name, tensor in weights.master.items()}
    weights.load(other)
    assert torch.equal(weights.model.weight, torch.full_like(weights.model.weight, 0.5))


def test_the_moving_average_equals_its_formula() -> None:
    average = MovingAverage({"w": torch.tensor([0.0])}, decay=0.9)
    by_hand = 0.0
    for step, value in enumerate([1.0, 3.0, -2.0, 8.0], start=1):
        average.update({"w": torch.tensor([value])})
        decay = min(0.9, (1 + step) / (10 + step))
        by_hand = decay * by_hand + (1 - decay) * value
        assert average.tensors["w"].item() == pytest.approx(by_hand, rel=1e-6)
    assert average.num_updates == 4


def test_the_moving_average_reaches_its_full_decay() -> None:
    average = MovingAverage({"w": torch.tensor([1.0])}, decay=0.5)
    for _ in range(20):
        average.update({"w": torch.tensor([1.0])})
    average.update({"w": torch.tensor([3.0])})
    assert average.tensors["w"].item() == pytest.approx(2.0)


def test_the_mean_of_weights_is_computed_in_float64_and_returned_in_their_dtype() -> None:
    sets = [{"w": torch.tensor([value], dtype=torch.float32)} for value in (1.0, 2**-24, 2**-24)]
    mean = mean_of(sets)["w"]
    assert mean.dtype == torch.float32
    assert mean.item() == torch.tensor((1 + 2**-23) / 3, dtype=torch.float32).item()
