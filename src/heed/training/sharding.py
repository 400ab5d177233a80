"""Sharded training, for a model that does not fit into one process's memory.

PyTorch's fully sharded data parallelism (Zhao et al. 2023, "PyTorch FSDP"): each rank keeps a shard of every weight,
its gradient and its optimiser state, and gathers the weights of a block only while it computes. Checkpoints hold
complete tensors, so they do not depend on the number of ranks.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Protocol, TypeGuard, cast

import torch
from torch import Tensor, nn
from torch.distributed.device_mesh import DeviceMesh

if TYPE_CHECKING:  # importing it takes a second
    from torch.distributed.fsdp import MixedPrecisionPolicy
    from torch.distributed.tensor import DTensor


class Shardable(Protocol):
    """A model that declares which of its parts are gathered one at a time."""

    def shards(self) -> Iterable[tuple[nn.Module, Sequence[str]]]:
        """The parts, inner ones first, each with its methods other than `forward` that use its weights."""
        ...


def shard(model: nn.Module, precision: str, mesh: DeviceMesh) -> None:
    """Shard the weights over all ranks, and move each shard to its device.

    Shards are kept in float32; in bfloat16 training they are gathered in bfloat16. The parts that the model declares in
    `shards` are gathered one at a time, the rest (embeddings, norms) at the beginning of `start` and `advance`.
    """
    from torch.distributed.fsdp import MixedPrecisionPolicy

    warnings.filterwarnings("ignore", "FSDP2-wrapped module .* returned a view tensor")  # none is written to
    dtype = torch.bfloat16 if precision == "bfloat16" else torch.float32
    policy = MixedPrecisionPolicy(param_dtype=dtype, reduce_dtype=torch.float32, cast_forward_inputs=False)
    for part, methods in cast(Shardable, model).shards():
        _shard(part, mesh, policy, *methods)
    _shard(model, mesh, policy, "start", "advance")


def _shard(module: nn.Module, mesh: DeviceMesh, policy: MixedPrecisionPolicy, *methods: str) -> None:
    """Shard a module. Gradients are summed, not averaged: the loss is divided by the tokens of all ranks."""
    from torch.distributed.fsdp import FSDPModule, fully_shard, register_fsdp_forward_method

    fully_shard(module, mesh=mesh, mp_policy=policy)
    assert isinstance(module, FSDPModule)
    module.set_gradient_divide_factor(1.0)
    module.set_force_sum_reduction_for_comms(True)  # gloo supports no other
    for name in methods:
        register_fsdp_forward_method(module, name)


def whole(tensor: Tensor) -> Tensor:
    """Gather a tensor that may be sharded. Every rank must call this."""
    return tensor.full_tensor() if _is_sharded(tensor) else tensor


def shared_like(tensor: Tensor, like: Tensor) -> Tensor:
    """Shard a complete tensor in the same way as `like`."""
    if not _is_sharded(like) or tensor.shape != like.shape:
        return tensor
    from torch.distributed.tensor import distribute_tensor

    return distribute_tensor(tensor.to(like.device), like.device_mesh, like.placements, src_data_rank=None)


def _is_sharded(tensor: Tensor) -> TypeGuard[DTensor]:
    tensors = sys.modules.get("torch.distributed.tensor")  # imported by `shard`
    return tensors is not None and isinstance(tensor, tensors.DTensor)
