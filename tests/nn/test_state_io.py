"""States as tensors: saved, restored, and continued with new dropout keys."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
import torch
from safetensors.torch import load, save
from torch import Tensor

from heed.nn.dropout_keys import DropoutKeys
from heed.nn.state_io import renewed, state_tensors, with_tensors

CPU = torch.device("cpu")


@dataclass(frozen=True)
class Inner:
    layers: tuple[tuple[Tensor, Tensor], ...]
    first: Tensor | None = None


@dataclass(frozen=True)
class Outer:
    inner: Inner
    length: int
    grown: bool = False
    dropout_keys: DropoutKeys | None = None


def state(seed: int, first: bool = False, dropout_keys: int | None = None) -> Outer:
    torch.manual_seed(seed)
    layers = tuple((torch.randn(3, 2), torch.randn(3, 4).bfloat16()) for _ in range(2))
    return Outer(
        Inner(layers, torch.arange(3) if first else None),
        seed,
        seed > 3,
        None if dropout_keys is None else DropoutKeys.for_step(dropout_keys, 0, torch.arange(3)),
    )


def test_a_state_is_tensors_by_name_without_dropout_keys() -> None:
    names = ["inner.layers.0.0", "inner.layers.0.1", "inner.layers.1.0", "inner.layers.1.1", "length", "grown"]
    assert list(state_tensors(state(5, dropout_keys=1))) == names
    assert list(state_tensors(state(5, first=True)))[4] == "inner.first"


@pytest.mark.parametrize("first", [False, True])
def test_a_state_is_restored_from_a_file_bit_for_bit(first: bool) -> None:
    kept, fresh = state(5, first, dropout_keys=1), state(2, dropout_keys=7)
    tensors = load(save({name: t.clone() for name, t in state_tensors(kept).items()}))
    found = with_tensors(fresh, tensors, CPU)
    assert state_tensors(found).keys() == state_tensors(kept).keys()
    for name, tensor in state_tensors(found).items():
        assert tensor.dtype == state_tensors(kept)[name].dtype
        assert torch.equal(tensor, state_tensors(kept)[name])
    assert (found.length, found.grown) == (5, True)
    assert found.dropout_keys is fresh.dropout_keys


def test_a_renewed_state_has_the_dropout_keys_of_a_fresh_one() -> None:
    old, fresh = state(5, first=True, dropout_keys=1), state(2, dropout_keys=7)
    found = renewed(old, fresh)
    assert found.dropout_keys is fresh.dropout_keys
    assert found.inner.first is old.inner.first
    assert found.inner.layers[1][0] is old.inner.layers[1][0]
    assert found.length == 5
    assert renewed(old, state(2)).dropout_keys is None


def test_tensors_of_another_model_are_refused() -> None:
    tensors = state_tensors(state(5))
    del tensors["inner.layers.1.0"]
    with pytest.raises(KeyError, match=r"inner\.layers\.1\.0"):
        with_tensors(state(2), tensors, CPU)
