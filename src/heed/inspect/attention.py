"""Attention between words, merged from attention between tokens.

Attention to the tokens of a word is summed, attention from the tokens of a word is averaged, so each row still sums to
one. The row of a word shows where the model looked when it predicted that word. Attention of the output to itself has a
column for the begin of sentence and for each earlier word.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from heed.nn.contract import Trace

MAX_NUMBERS = 200_000
"""Maximum weights of one kind of attention. Beyond it, heads are averaged, then layers; then there is none at all."""

Kind = Literal["source", "self", "text"]


@dataclass(frozen=True)
class Layer:
    """One attention of the model."""

    name: str
    """Its name in the model, e.g. `decoder.2.cross`."""
    heads: list[list[list[float]]]
    """Weights [head][output word][attended word]."""


@dataclass(frozen=True)
class Attention:
    """All attention of one kind, from the lowest layer to the highest."""

    kind: Kind
    """Attention to the source, to the earlier output, or between all words of a text."""
    detail: Literal["heads", "layers", "mean"]
    """All heads of all layers; the mean over heads for each layer; or the mean over heads and the upper layers."""
    layers: list[Layer]


def word_attention(trace: Trace, src_words: Sequence[slice], tgt_words: Sequence[slice]) -> list[Attention]:
    """The attention in a trace, between words given as slices of their tokens. Each side includes its end."""
    previous = [slice(0, 1), *(slice(word.start + 1, word.stop + 1) for word in tgt_words[:-1])]
    kinds = [
        _of_kind(trace, "source", "cross", src_words, tgt_words),
        _of_kind(trace, "self", "self", previous, tgt_words),
    ]
    return [attention for attention in kinds if attention is not None]


def word_attention_within(trace: Trace, words: Sequence[slice]) -> list[Attention]:
    """The attention of a reader in a trace, between all words of a text, given as slices of its positions."""
    attention = _of_kind(trace, "text", "self", words, words)
    return [] if attention is None else [attention]


def pooled_words(trace: Trace, words: Sequence[slice]) -> tuple[float, ...] | None:
    """The weight of each word in the vector of a text; None if attention to its positions did not compute it."""
    parts = trace.weights.get("pooling", [])
    unread = words[-1].stop - parts[0].shape[3] if len(parts) == 1 and words else -1
    if unread < 0:
        return None
    weights = parts[0][0, 0, 0].float()
    weights = torch.cat((weights.new_zeros(unread), weights))  # heads do not see a begin
    return tuple(round(float(weights[word].sum()), 4) for word in words)


def _of_kind(
    trace: Trace, kind: Kind, suffix: str, columns: Sequence[slice], rows: Sequence[slice]
) -> Attention | None:
    """None if the model has no such attention, or recorded less of it than the words need."""
    if not columns:
        return None
    layers: dict[str, Tensor] = {}
    shape = (rows[-1].stop, columns[-1].stop)
    for name, parts in trace.weights.items():
        if name.endswith(suffix):
            if len({part.shape[3] for part in parts}) > 1:  # a long text, read in several parts
                return None
            weights = torch.cat(parts, dim=2)[0].float()  # [H, T, S]
            if weights.shape[1:] != shape:
                return None
            layers[name] = _merged(weights, columns, rows)
    return _within_limit(kind, layers) if layers else None


def _merged(weights: Tensor, columns: Sequence[slice], rows: Sequence[slice]) -> Tensor:
    """`[H, T, S]` to `[H, rows, columns]`."""
    by_column = torch.stack([weights[:, :, column].sum(dim=2) for column in columns], dim=2)
    return torch.stack([by_column[:, row].mean(dim=1) for row in rows], dim=1)


def _within_limit(kind: Kind, layers: dict[str, Tensor]) -> Attention | None:
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
