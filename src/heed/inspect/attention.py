"""Which words does a model look at when it writes a word? Its attention, merged from tokens to words.

The attention to the pieces of a word is added up, that from the pieces of a word is averaged: each row still sums to
one. The attention to the output itself is that to what was written before: its columns are the begin and the words, and
the row of a word says where the model looked when it was about to write it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from heed.nn.contract import Trace

MAX_NUMBERS = 200_000
"""Of one kind of attention; what has more is shown without heads, then without layers, then not at all."""

Kind = Literal["source", "self"]


@dataclass(frozen=True)
class Layer:
    """One attention of the model."""

    name: str
    """What the model calls it: `decoder.2.cross`."""
    heads: list[list[list[float]]]
    """For each head a row for each word that is written, in it a number for each word that is looked at."""


@dataclass(frozen=True)
class Attention:
    """The attention of one kind, from the lowest layer to the highest."""

    kind: Kind
    """To the source, or to what was written before."""
    detail: Literal["heads", "layers", "mean"]
    """Whether heads and layers are told apart, or only layers, or nothing."""
    layers: list[Layer]


def word_attention(trace: Trace, src_words: Sequence[slice], tgt_words: Sequence[slice]) -> list[Attention]:
    """What the trace holds, for words given by the places of their tokens, the ends being words too."""
    before = [slice(0, 1), *(slice(word.start + 1, word.stop + 1) for word in tgt_words[:-1])]
    found = [
        _of_kind(trace, "source", "cross", src_words, tgt_words),
        _of_kind(trace, "self", "self", before, tgt_words),
    ]
    return [attention for attention in found if attention is not None]


def _of_kind(
    trace: Trace, kind: Kind, ending: str, columns: Sequence[slice], rows: Sequence[slice]
) -> Attention | None:
    """None where the model has no such attention, or keeps less of it than the words need."""
    if not columns:
        return None
    layers: dict[str, Tensor] = {}
    shape = (rows[-1].stop, columns[-1].stop)
    for name, parts in trace.weights.items():
        if name.endswith(ending):
            if len({part.shape[3] for part in parts}) > 1:  # a long text that was read in parts
                return None
            weights = torch.cat(parts, dim=2)[0].float()  # [H, T, S]
            if weights.shape[1:] != shape:
                return None
            layers[name] = _merged(weights, columns, rows)
    return _small_enough(kind, layers) if layers else None


def _merged(weights: Tensor, columns: Sequence[slice], rows: Sequence[slice]) -> Tensor:
    """`[H, T, S]` to `[H, rows, columns]`."""
    by_column = torch.stack([weights[:, :, column].sum(dim=2) for column in columns], dim=2)
    return torch.stack([by_column[:, row].mean(dim=1) for row in rows], dim=1)


def _small_enough(kind: Kind, layers: dict[str, Tensor]) -> Attention | None:
    if _count(layers) <= MAX_NUMBERS:
        return Attention(kind, "heads", _as_lists(layers))
    layers = {name: weights.mean(dim=0, keepdim=True) for name, weights in layers.items()}
    if _count(layers) <= MAX_NUMBERS:
        return Attention(kind, "layers", _as_lists(layers))
    upper = list(layers.values())[len(layers) // 2 :]  # as in decoding/ranking.py: the lower blocks attend less
    mean = {"mean": torch.stack(upper).mean(dim=0)}
    return Attention(kind, "mean", _as_lists(mean)) if _count(mean) <= MAX_NUMBERS else None


def _count(layers: dict[str, Tensor]) -> int:
    return sum(weights.numel() for weights in layers.values())


def _as_lists(layers: dict[str, Tensor]) -> list[Layer]:
    return [
        Layer(name, [[[round(x, 3) for x in row] for row in head] for head in weights.tolist()])
        for name, weights in layers.items()
    ]
