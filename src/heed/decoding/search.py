"""How is an output found, whatever the model? The loop: features, log-probabilities, filters, a chooser.

The loop knows no model and no rule of choice. A chooser (beam, or one token at a time: greedy and sampling)
says which rows go on with which tokens; finished rows leave the batch.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

import torch
from jaxtyping import Float, Int
from torch import Tensor

from heed.decoding.beam import Watch
from heed.decoding.filters import Filter
from heed.decoding.hypothesis import Hypothesis
from heed.decoding.rows import Rows
from heed.nn.contract import Autoregressive, Source, Trace


class Chooser(Rows, Protocol):
    """Decides which tokens follow, and keeps the hypotheses."""

    rows_per_source: int
    watch: Watch | None
    """Sees each step of a beam; greedy search and sampling have no beam to see."""

    def begin_with(self, tokens: Int[Tensor, "S P"], log_probs: Float[Tensor, "S P"]) -> None:
        """Every hypothesis of a source begins with these tokens: a forced prefix. To be said before the search."""
        ...

    def choose(self, log_probs: Float[Tensor, "R V"]) -> tuple[Int[Tensor, " N"], Int[Tensor, " N"]]:
        """(rows to go on with, their next tokens); both empty when all is done."""
        ...

    def give_up(self, source: int) -> None:
        """Nobody waits for a source any longer: it leaves at the next step."""
        ...

    def hypotheses(self) -> list[list[Hypothesis]]:
        """For each source, its hypotheses, best first."""
        ...


@torch.inference_mode()
def search(
    model: Autoregressive,
    source: Source | None,
    chooser: Chooser,
    filters: Sequence[Filter],
    prefix: Int[Tensor, "R P"],
    limit: int,
    trace: Trace | None = None,
) -> list[list[Hypothesis]]:
    """Hypotheses for each source.

    `prefix` starts every row: begin of sentence, a prompt. At most `limit` more tokens follow; the chooser sees to it.
    """
    for _ in steps(model, source, chooser, filters, prefix, limit, trace):
        pass
    return chooser.hypotheses()


@torch.inference_mode()
def steps(
    model: Autoregressive, source: Source | None, chooser: Chooser, filters: Sequence[Filter],
    prefix: Int[Tensor, "R P"], limit: int, trace: Trace | None = None,
) -> Iterator[None]:  # fmt: skip
    """The same search, which pauses after each choice."""
    rows = chooser.rows_per_source
    state = model.start(source, rows if source is not None else prefix.shape[0], reserve=prefix.shape[1] + limit)
    ids = prefix
    while ids.shape[0]:
        features, state = model.advance(ids, state, trace)
        log_probs = model.head.log_probs(features[:, -1])
        for rule in filters:
            log_probs = rule(log_probs, chooser)
        kept, next_ids = chooser.choose(log_probs)
        if len(kept):
            state = state.select(kept)
        ids = next_ids[:, None]
        yield
