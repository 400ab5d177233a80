"""Sharded training, for a model that does not fit into one process's memory.

PyTorch's fully sharded data parallelism (Zhao et al. 2023, "PyTorch FSDP"): each rank keeps a part of every weight,
of its gradient and of the optimiser's state, and a block's weights are put together only while it computes. A
tensor is written to disk whole, so a checkpoint does not depend on how many ranks wrote it.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Protocol, TypeGuard, cast

import torch
from torch import Tensor, nn
from torch.distributed.device_mesh import DeviceMesh

if TYPE_CHECKING:  # a second to import, and few need it
    from torch.distributed.fsdp import MixedPrecisionPolicy
    from torch.distributed.tensor import DTensor


class Shardable(Protocol):
    """A model that declares the parts to gather one after another."""

    def shards(self) -> Iterable[tuple[nn.Module, Sequence[str]]]:
        """Inner parts first, each with its methods besides `forward` that need its weights."""
        ...


def shard(model: nn.Module, precision: str, mesh: DeviceMesh) -> None:
    """Split the weights over all ranks, and bring each part to its device.

    Weights are kept in float32; in bfloat16 training they are gathered in bfloat16. The parts that the model declares
    (its `shards`) are gathered one after another, the rest (embeddings, norms) at the beginning of `start` and of
    `advance`.
    """
    from torch.distributed.fsdp import MixedPrecisionPolicy

    warnings.filterwarnings("ignore", "FSDP2-wrapped module .* returned a view tensor")  # nobody writes into one
    dtype = torch.bfloat16 if precision == "bfloat16" else torch.float32
    policy = MixedPrecisionPolicy(param_dtype=dtype, reduce_dtype=torch.float32, cast_forward_inputs=False)
    for part, methods in cast(Shardable, model).shards():
        _shard(part, mesh, policy, *methods)
    _shard(model, mesh, policy, "start", "advance")


def _shard(module: nn.Module, mesh: DeviceMesh, policy: MixedPrecisionPolicy, *methods: str) -> None:
    """Gradients are summed over the ranks, not averaged: the loss is divided by the tokens of all of them."""
    from torch.distributed.fsdp import FSDPModule, fully_shard, register_fsdp_forward_method

    fully_shard(module, mesh=mesh, mp_policy=policy)
    assert isinstance(module, FSDPModule)
    module.set_gradient_divide_factor(1.0)
    module.set_force_sum_reduction_for_comms(True)  # gloo knows no other
    for name in methods:
        register_fsdp_forward_method(module, name)


def whole(tensor: Tensor) -> Tensor:
    """All of a tensor of which each rank may have a part. Every rank must ask."""
    return tensor.full_tensor() if _is_part(tensor) else tensor


def shared_like(tensor: Tensor, like: Tensor) -> Tensor:
    """A whole tensor, split over the ranks as `like` is."""
    if not _is_part(like) or tensor.shape != like.shape:
        return tensor
    from torch.distributed.tensor import distribute_tensor

    return distribute_tensor(tensor.to(like.device), like.device_mesh, like.placements, src_data_rank=None)


def _is_part(tensor: Tensor) -> TypeGuard[DTensor]:
    tensors = sys.modules.get("torch.distributed.tensor")  # which `shard` has loaded, if there are any
    return tensors is not None and isinstance(tensor, tensors.DTensor)
