"""State of streams in a checkpoint, gathered from all ranks and divided among them again.

A checkpoint holds the state of all streams, so it does not depend on how many ranks there were.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from typing import Any

import torch
from torch import Tensor

from heed.core.errors import UsageError
from heed.nn.contract import State
from heed.nn.state_io import state_tensors, with_tensors
from heed.training.ranks import Ranks

NUM_STREAMS = "/num_streams"
"""Beside the tensors of a state, whose names are those of fields."""


def carried_tensors(model: Any, carried: State | None, num_streams: int, ranks: Ranks) -> dict[str, Tensor]:
    """The state of all streams, of which each rank has its part. Every rank must ask."""
    if carried is None:
        return {}
    tensors = state_tensors(carried)
    if ranks.world_size > 1:
        device = _device_of(tensors)
        fresh = model.start(None, num_streams // ranks.world_size)
        states = [with_tensors(fresh, found, device) for found in ranks.gathered(tensors)]
        tensors = state_tensors(reduce(lambda left, right: left.join(right), states))
    return {**tensors, NUM_STREAMS: torch.tensor(num_streams)}


def carried_state(
    model: Any, tensors: Mapping[str, Tensor], num_streams: int, ranks: Ranks, device: torch.device
) -> State | None:
    """This rank's part of what `carried_tensors` gave. Raises UsageError where it is of another model."""
    if not tensors:
        return None
    if (then := int(tensors.get(NUM_STREAMS, torch.tensor(0)))) != num_streams:
        raise UsageError(f"the checkpoint is of {then} streams: training.num_streams = {num_streams} cannot go on.")
    try:
        state: State = with_tensors(model.start(None, num_streams), tensors, device)
    except KeyError as error:
        raise UsageError(f"the checkpoint's state of the streams is of another model: it has no {error}.") from error
    if ranks.world_size == 1:
        return state
    each = num_streams // ranks.world_size
    return state.select(torch.arange(ranks.rank * each, (ranks.rank + 1) * each, device=device))


def _device_of(tensors: Mapping[str, Tensor]) -> torch.device:
    """Where a state is: its whole numbers are on the CPU in any case."""
    return next((tensor.device for tensor in tensors.values() if tensor.device.type != "cpu"), torch.device("cpu"))
