"""Layers of a reader with a head, for freezing, gradual unfreezing and discriminative rates (Howard & Ruder 2018).

The layer of a weight follows from its name. Layer 0 are the embeddings, `blocks.N` and `layers.N` are layer N + 1, what
comes after them (a last normalisation) belongs to the highest of them, and the head and the weights of a scalar mix are
the top.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from heed.training.config import TrainingConfig

_NUMBERED = re.compile(r"\b(?:blocks|layers)\.(\d+)\.")
_TOP = re.compile(r"^head\.|^reader\.mix\.")
_AFTER = re.compile(r"^reader\.(?:\w+_lm\.)?norm\.")
_VECTORS = re.compile(r"^reader\.(?:\w+_lm\.)?(?:embedding|positions|segments)\b|^reader\.embedding_norm\.")
"""Vectors of tokens: in readers without numbered layers, layer 0 has more than these."""


def from_the_top(names: Iterable[str]) -> list[list[str]]:
    """The names by layer: those of the head first, those of the embeddings last."""
    names = list(names)
    numbers = {name: int(match[1]) for name in names if (match := _NUMBERED.search(name)) and not _TOP.search(name)}
    last = max(numbers.values(), default=-1) + 1
    layers: list[list[str]] = [[] for _ in range(last + 2)]
    for name in names:
        if _TOP.search(name):
            layers[0].append(name)
        elif name in numbers:
            layers[last - numbers[name]].append(name)
        else:
            layers[1 if _AFTER.search(name) and last else -1].append(name)
    return [layer for layer in layers if layer]


def trained_names(config: TrainingConfig, names: Iterable[str], epoch: int) -> set[str]:
    """The names of the weights that are trained in an epoch, counted from 0."""
    names = list(names)
    if config.freeze == "none" and not config.unfreeze_every:
        return set(names)
    layers = from_the_top(names)
    number = len(layers) if not config.unfreeze_every else 1 + int(epoch / config.unfreeze_every)
    if config.freeze == "reader":
        number = 1
    trained = {name for layer in layers[:number] for name in layer}
    return {name for name in trained if config.freeze != "embeddings" or not _VECTORS.search(name)}
