"""What does a search of some requests start from: their sources, the parts of the search, and the first tokens?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from heed.data.batch import source_from_ids
from heed.decoding.coverage import Coverage
from heed.decoding.filters import Filter
from heed.decoding.options import SearchOptions
from heed.decoding.request import Request
from heed.decoding.roles import BOS_ID, EOS_ID, PAD_ID, Demand, Roles
from heed.decoding.scoring import token_log_probs
from heed.decoding.search import Chooser
from heed.nn.contract import Autoregressive, Source, Trace


@dataclass(frozen=True)
class Departure:
    """One batch, ready to be searched."""

    source: Source | None
    """None for a language model, whose prompts are in `begin`."""
    chooser: Chooser
    filters: Sequence[Filter]
    begin: Int[Tensor, "R P"]
    """The first tokens of each row: begin of sentence, then a forced prefix or a prompt."""
    limit: int
    """At most so many tokens follow."""
    trace: Trace | None = None
    """Where the search looks at attention."""


def departure(
    model: Autoregressive, roles: Roles, requests: Sequence[Request], options: SearchOptions, conditioned: bool
) -> Departure:
    """One batch: prefixes of one length, and terms of as many steps. `conditioned`: the model has a source."""
    if not conditioned:
        return _of_prompts(roles, requests, options)
    lengths = [len(request.source) for request in requests]
    terms = [roles.terms(request.terms) for request in requests if request.terms]
    demand = Demand(lengths, [request.stream for request in requests], terms, len(requests[0].prefix))
    source = source_from_ids([request.source for request in requests], EOS_ID, PAD_ID).to(roles.device)
    trace = Trace() if options.coverage_penalty else None
    coverage = Coverage(options.coverage_penalty, trace, source.mask) if trace is not None else None
    chooser = roles.chooser(options, demand, coverage)
    prefixes = _prefixes(roles, requests)
    if prefixes.shape[1]:
        chooser.begin_with(prefixes, _prefix_log_probs(model, source, prefixes))
    limit = max(demand.limits(options))
    return Departure(source, chooser, roles.filters(options, demand), _begin(prefixes, chooser), limit, trace)


def _of_prompts(roles: Roles, requests: Sequence[Request], options: SearchOptions) -> Departure:
    """The prompts are read and not said: what follows them is the output."""
    demand = Demand([0] * len(requests), [request.draw for request in requests])
    chooser = roles.chooser(options, demand)
    begin = _begin(_prefixes(roles, requests), chooser)
    return Departure(None, chooser, roles.filters(options, demand), begin, options.limit(0))


def _prefixes(roles: Roles, requests: Sequence[Request]) -> Int[Tensor, "N P"]:
    return torch.tensor([request.prefix for request in requests], dtype=torch.long, device=roles.device)


def _begin(prefixes: Int[Tensor, "N P"], chooser: Chooser) -> Int[Tensor, "R P1"]:
    return torch.nn.functional.pad(prefixes, (1, 0), value=BOS_ID).repeat_interleave(chooser.rows_per_source, 0)


def _prefix_log_probs(model: Autoregressive, source: Source, prefixes: Int[Tensor, "N P"]) -> Float[Tensor, "N P"]:
    """log P of each token of the forced prefixes."""
    before = torch.nn.functional.pad(prefixes[:, :-1], (1, 0), value=BOS_ID)
    return token_log_probs(model, source, before, prefixes)
