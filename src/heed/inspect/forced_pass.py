"""What does a model say, and where does it look, at each token of a given output? One pass under teacher forcing."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from heed.decoding.scoring import TokenStats, token_stats
from heed.decoding.translator import ModelTranslator
from heed.inspect.id_pair import IdPair
from heed.nn.contract import Trace
from heed.text.vocabulary import EOS_ID

MAX_TRACED = 600
"""Tokens of the longer side up to which attention is collected: it takes their square."""
NUM_CHOICES = 12
"""How many of the likeliest tokens are told for each place."""


@dataclass(frozen=True)
class ForcedPass:
    """The places of an output and its end, and the attention on the way."""

    places: list[TokenStats]
    trace: Trace
    """Without weights where a side is too long."""


@torch.inference_mode()
def forced_pass(translator: ModelTranslator, pair: IdPair) -> ForcedPass:
    """All places of an output, the last of them behind it."""
    trace = Trace()
    state = translator.model.start(pair.source(translator.device), 1)
    tgt_in = torch.tensor([pair.tgt_in], device=translator.device)
    features, _ = translator.model.advance(tgt_in, state, trace if pair.longest <= MAX_TRACED else None)
    return ForcedPass(token_stats(translator.model, features[0], [*pair.said, EOS_ID], NUM_CHOICES), trace)
