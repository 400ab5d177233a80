"""How likely is each token of an output where it stands, and what else was likely there?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from heed.nn.contract import Autoregressive

_AT_ONCE = 64
"""Places whose whole distributions are in memory at once."""


@dataclass(frozen=True)
class Place:
    """What a model says where a token stands."""

    log_prob: float
    """Of the token that stands there, in nats."""
    rank: int
    """Its place among all tokens, the likeliest being 1."""
    choices: tuple[tuple[int, float], ...]
    """The likeliest tokens and their log-probabilities, best first."""


def places_of(model: Autoregressive, features: Tensor, ids: Sequence[int], num_choices: int) -> list[Place]:
    """The places of the tokens, from what `advance` gave for them: features `[N, D]`."""
    said = torch.tensor(ids, device=features.device)
    places: list[Place] = []
    for begin in range(0, len(ids), _AT_ONCE):
        part = slice(begin, begin + _AT_ONCE)
        places += _places(model.head.log_probs(features[part]).float(), said[part], num_choices)
    return places


def _places(log_probs: Tensor, ids: Tensor, num_choices: int) -> list[Place]:
    """From the distributions `[N, V]` at the places of the tokens `[N]`."""
    own = log_probs.gather(1, ids[:, None])
    ranks = (log_probs > own).sum(dim=1) + 1
    best, tokens = log_probs.topk(min(num_choices, log_probs.shape[1]), dim=1)
    columns = (own[:, 0].tolist(), ranks.tolist(), tokens.tolist(), best.tolist())
    return [
        Place(value, rank, tuple(zip(choices, values, strict=True)))
        for value, rank, choices, values in zip(*columns, strict=True)
    ]
