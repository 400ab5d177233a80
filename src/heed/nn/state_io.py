"""States as named tensors, to save one in a checkpoint or to continue one in the next batch of a stream.

A state is a frozen dataclass of tensors, integers, tuples and further such dataclasses; its dropout keys belong to
one update. So the state of any model can be taken apart into named tensors, and rebuilt from them and a fresh state
of the same model.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar, cast

import torch
from torch import Tensor

from heed.nn.contract import State
from heed.nn.dropout_keys import DropoutKeys

AnyState = TypeVar("AnyState")


def state_tensors(state: State) -> dict[str, Tensor]:
    """The tensors of a state by name (`hidden`, `caches.0.keys`); integers become tensors. No dropout keys."""
    return {name: torch.as_tensor(value).detach() for name, value in _values("", state)}


def _values(name: str, value: Any) -> Iterator[tuple[str, Tensor | int]]:
    """The tensors and integers of a state by name."""
    if isinstance(value, Tensor | int):
        yield name, value
    else:
        for part, inner in _parts(value):
            yield from _values(f"{name}.{part}".removeprefix("."), inner)


def _parts(value: Any) -> list[tuple[str, Any]]:
    """The fields of a dataclass or the members of a tuple; dropout keys and None have no parts."""
    if isinstance(value, tuple):
        return [(str(index), inner) for index, inner in enumerate(value)]
    if is_dataclass(value) and not isinstance(value, DropoutKeys):
        return [(field.name, getattr(value, field.name)) for field in fields(value)]
    return []


def with_tensors(fresh: AnyState, tensors: Mapping[str, Tensor], device: torch.device) -> AnyState:
    """The state with these tensors and the dropout keys of `fresh`, which is a state of as many rows from `start`.

    Raises KeyError if a tensor of the state is missing.
    """
    return cast(AnyState, _filled("", fresh, {name: tensor.to(device) for name, tensor in tensors.items()}))


def renewed(state: AnyState, fresh: AnyState) -> AnyState:
    """The values of `state`, with the dropout keys of `fresh`, a state of as many rows from `start`."""
    return cast(AnyState, _filled("", fresh, dict(_values("", state))))


def _filled(name: str, fresh: Any, values: Mapping[str, Tensor | int]) -> Any:
    """`fresh` with the given values; dropout keys remain."""
    if fresh is None:  # a field that is None at the start may have a tensor later
        return values.get(name)
    if isinstance(fresh, Tensor):
        return values[name]
    if isinstance(fresh, int):
        return type(fresh)(values[name])
    parts = {part: _filled(f"{name}.{part}".removeprefix("."), inner, values) for part, inner in _parts(fresh)}
    if isinstance(fresh, tuple):
        return tuple(parts.values())
    return replace(fresh, **parts) if parts else fresh
