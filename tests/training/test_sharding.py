"""Sharded models: gathered part by part, with the gradients of the whole model."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
import torch.distributed as dist
from random_models import model_of, random_source, random_targets
from torch import nn
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.fsdp import FSDPModule

from heed.nn.contract import Smoothing
from heed.training.sharding import shard, whole


@pytest.fixture
def mesh(tmp_path: Path) -> Iterator[DeviceMesh]:
    """One process that owns every part."""
    dist.init_process_group("gloo", init_method=f"file://{tmp_path}/store", rank=0, world_size=1)
    yield init_device_mesh("cpu", (1,))
    dist.destroy_process_group()


def gradients(model: nn.Module) -> dict[str, torch.Tensor]:
    source, ids = random_source([5, 2]), random_targets(2, 6)
    features, _ = model.advance(ids, model.start(source))
    loss, _ = model.head.loss(features, ids, ids > 0, Smoothing())
    loss.backward()
    return {name: whole(weight.grad) for name, weight in model.named_parameters() if weight.grad is not None}


@pytest.mark.parametrize(
    ("name", "num_parts"), [("transformer", 2 + 2 * 2), ("transformer, SSRU", 2 + 2 * 2), ("gpt", 2), ("rnn", 0)]
)
def test_a_sharded_model_is_gathered_in_its_parts_and_has_the_same_gradients(
    name: str, num_parts: int, mesh: DeviceMesh
) -> None:
    expected, model = gradients(model_of(name)), model_of(name)
    shard(model, "float32", mesh)
    assert sum(isinstance(module, FSDPModule) for module in model.modules()) == 1 + num_parts
    found = gradients(model)
    assert found.keys() == expected.keys()
    for key, gradient in found.items():
        torch.testing.assert_close(gradient, expected[key])
