"""Transfer of trained weights to a model with more or fewer layers.

The layers of a stack are the modules `blocks.0`, `blocks.1`, ... of one parent. A deeper stack repeats each old layer
in its place (Gong et al. 2019 put a copy of the whole stack on top); a shallower one keeps the first and the last and
others evenly between them (Sanh et al. 2019, "DistilBERT"), and a single layer is the last one, whose output the
model's head was trained on.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TypeVar

T = TypeVar("T")

DEPTHS = frozenset({"num_layers", "num_encoder_layers", "num_decoder_layers"})
"""Keys of `[model]` that say how many layers there are."""
_LAYER = re.compile(r"((?:.*\.)?blocks\.)(\d+)(\..*)")


def with_layers(weights: Mapping[str, T], names: Mapping[str, object]) -> dict[str, T]:
    """Weights, or anything by their names, for the model that has weights of these names.

    A name without a layer to copy keeps its own value if it has one, and is missing otherwise.
    """
    old, new = _depths(weights), _depths(names)
    copied = {name: _origin(name, old, new) for name in names}
    return {name: weights[origin] for name, origin in copied.items() if origin in weights}


def fills(weights: Mapping[str, T], shapes: Mapping[str, T]) -> bool:
    """Whether a model with these shapes can start as copies of layers, and no other weight is left over."""
    left = [name for name in weights if name not in shapes and not _LAYER.fullmatch(name)]
    return not left and with_layers(weights, shapes) == shapes


def _depths(names: Mapping[str, object]) -> dict[str, int]:
    """The number of layers of each stack."""
    depths: dict[str, int] = {}
    for match in filter(None, map(_LAYER.fullmatch, names)):
        stack, layer, _ = match.groups()
        depths[stack] = max(depths.get(stack, 0), int(layer) + 1)
    return depths


def _origin(name: str, old: Mapping[str, int], new: Mapping[str, int]) -> str:
    """The name of the old weight that a new one is copied from."""
    match = _LAYER.fullmatch(name)
    if match is None or match[1] not in old:
        return name
    stack, layer, rest = match.groups()
    return f"{stack}{_old_layer(int(layer), old[stack], new[stack])}{rest}"


def _old_layer(layer: int, num_old: int, num_new: int) -> int:
    """The old layer that a new one starts as."""
    if num_new >= num_old:
        return layer * num_old // num_new
    return num_old - 1 if num_new == 1 else round(layer * (num_old - 1) / (num_new - 1))
