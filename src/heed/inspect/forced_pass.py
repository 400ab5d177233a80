"""What does a model say, and where does it look, at each token of a given output? One pass under teacher forcing."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from heed.decoding.roles import EOS_ID
from heed.decoding.translator import ModelTranslator
from heed.inspect.id_pair import IdPair
from heed.nn.contract import Trace

MAX_TRACED = 600
"""Tokens of the longer side up to which attention is collected: it takes their square."""
NUM_CHOICES = 12
"""How many of the likeliest tokens are told for each place."""
_AT_ONCE = 64
"""Places whose whole distributions are in memory at once."""


@dataclass(frozen=True)
class Place:
    """What the model says where a token stands."""

    log_prob: float
    """Of the token that stands there, in nats."""
    rank: int
    """Its place among all tokens, the likeliest being 1."""
    choices: tuple[tuple[int, float], ...]
    """The likeliest tokens and their log-probabilities."""


@dataclass(frozen=True)
class ForcedPass:
    """The places of an output and its end, and the attention on the way."""

    places: list[Place]
    trace: Trace
    """Without weights where a side is too long."""


@torch.inference_mode()
def forced_pass(translator: ModelTranslator, pair: IdPair) -> ForcedPass:
    """All places of an output, the last of them behind it."""
    trace = Trace()
    state = translator.model.start(pair.source(translator.device), 1)
    tgt_in = torch.tensor([pair.tgt_in], device=translator.device)
    features, _ = translator.model.advance(tgt_in, state, trace if pair.longest <= MAX_TRACED else None)
    ids = torch.tensor([*pair.said, EOS_ID], device=translator.device)
    places: list[Place] = []
    for begin in range(0, len(ids), _AT_ONCE):
        part = slice(begin, begin + _AT_ONCE)
        places += _places(translator.model.head.log_probs(features[0, part]).float(), ids[part])
    return ForcedPass(places, trace)


def _places(log_probs: Tensor, ids: Tensor) -> list[Place]:
    """From the distributions `[N, V]` at the places of the tokens `[N]`."""
    own = log_probs.gather(1, ids[:, None])
    ranks = (log_probs > own).sum(dim=1) + 1
    best, tokens = log_probs.topk(min(NUM_CHOICES, log_probs.shape[1]), dim=1)
    columns = (own[:, 0].tolist(), ranks.tolist(), tokens.tolist(), best.tolist())
    return [
        Place(value, rank, tuple(zip(choices, values, strict=True)))
        for value, rank, choices, values in zip(*columns, strict=True)
    ]
