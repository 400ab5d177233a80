"""Search engine: one loop for every model and strategy, over requests that may join while it runs.

Requests that start together are a `RequestGroup` with a decoding strategy and logit rules of its own. A
`ContinuousBatch` advances the rows of all its groups in one step of the model; each group then applies its rules,
chooses the next tokens, and drops the rows that are done. No group sees another one's rows, and by the second law of
the contract no output depends on its neighbours. A batch translator runs one group to its end (`search`); a server lets
groups join as requests arrive (`heed.serve.engine.scheduler`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import torch
from jaxtyping import Float, Int
from torch import Tensor

from heed.decoding.beam import Watch
from heed.decoding.hypothesis import Hypothesis
from heed.decoding.logit_rules import LogitRule, Rows
from heed.nn.contract import Autoregressive, Source, State, Trace


class DecodingStrategy(Rows, Protocol):
    """Chooses the next tokens of its rows and collects the hypotheses."""

    rows_per_source: int
    num_sources: int
    watch: Watch | None
    """Called at each step of a beam search; None for other strategies."""

    def force_prefix(self, tokens: Int[Tensor, "S P"], log_probs: Float[Tensor, "S P"]) -> None:
        """Start all hypotheses of each source with these tokens, whose log-probabilities count in scores.

        Call before the search.
        """
        ...

    def choose(self, log_probs: Float[Tensor, "R V"]) -> tuple[Int[Tensor, " N"], Int[Tensor, " N"]]:
        """(rows to continue, their next tokens); both are empty when the search is done."""
        ...

    def cancel(self, source: int) -> None:
        """Drop a source at the next step."""
        ...

    def hypotheses(self, source: int) -> list[Hypothesis]:
        """The hypotheses of a source, best first."""
        ...


@dataclass(frozen=True)
class SearchInputs:
    """Requests ready to be searched together."""

    source: Source | None
    """None for a language model."""
    strategy: DecodingStrategy
    rules: Sequence[LogitRule]
    prefix: Int[Tensor, "R P"]
    """First tokens of each row: begin of sentence, then a forced prefix or a prompt."""
    limit: int
    """Maximum number of tokens that follow; the strategy enforces it."""
    trace: Trace | None = None
    """Records attention for a coverage penalty. Its rows are those of the whole batch, so the group must run alone."""


class RequestGroup:
    """Requests that started together; `source` numbers count from 0 within the group."""

    def __init__(self, inputs: SearchInputs) -> None:
        self.strategy = inputs.strategy
        self.rules = inputs.rules
        self.num_rows = inputs.prefix.shape[0]
        self.active = self._sources()
        """Sources still being searched."""
        self.finished: list[int] = []
        """Sources that finished in the last step."""

    def choose(self, log_probs: Float[Tensor, "R V"]) -> tuple[Int[Tensor, " N"], Int[Tensor, " N"]]:
        for rule in self.rules:
            log_probs = rule(log_probs, self.strategy)
        kept, tokens = self.strategy.choose(log_probs)
        self.num_rows = len(kept)
        before, self.active = self.active, self._sources()
        self.finished = sorted(set(before) - set(self.active))
        return kept, tokens

    def best_so_far(self) -> dict[int, list[int]]:
        """Tokens of the best partial hypothesis of each active source."""
        rows = zip(self.strategy.row_sources(), self.strategy.row_tokens().tolist(), strict=True)
        return dict(reversed([*rows]))  # the first of each source

    def _sources(self) -> list[int]:
        return list(dict.fromkeys(self.strategy.row_sources())) if self.num_rows else []


class ContinuousBatch:
    """A running search that groups may join at any step; rows are at their own lengths and share one model state."""

    def __init__(self, model: Autoregressive) -> None:
        self.model = model
        self.groups: list[RequestGroup] = []
        self._state: State | None = None
        self._trace: Trace | None = None
        self._ids = torch.empty(0, 1, dtype=torch.long)

    @property
    def num_rows(self) -> int:
        """Rows that the next step advances."""
        return sum(group.num_rows for group in self.groups)

    @torch.inference_mode()
    def join(self, inputs: SearchInputs, is_alone: bool = False) -> RequestGroup:
        """Take the first step of a group, then add its rows. If that raises, the rest of the batch is unchanged.

        `is_alone`: no other group will join, so the cache is reserved for the longest output at once.
        """
        group, prefix = RequestGroup(inputs), inputs.prefix
        rows = group.strategy.rows_per_source if inputs.source is not None else group.num_rows
        state = self.model.start(inputs.source, rows, reserve=prefix.shape[1] + inputs.limit if is_alone else None)
        features, state = self.model.advance(prefix, state, inputs.trace)
        kept, tokens = group.choose(self.model.head.log_probs(features[:, -1]))
        if len(kept):
            state = state.select(kept)
            self._state = state if self._state is None else self._state.join(state)
            self._trace = inputs.trace
            self._ids = torch.cat((self._ids.to(tokens.device), tokens[:, None]))
            self.groups.append(group)
        return group

    @torch.inference_mode()
    def step(self) -> Sequence[RequestGroup]:
        """Add one token to every row; returns all groups that took part, those that finished with it included."""
        state, self._state = self._state, None  # consumed, so that its memory can be released
        assert state is not None
        groups, begin = self.groups, 0
        features, state = self.model.advance(self._ids, state, self._trace)
        log_probs = self.model.head.log_probs(features[:, -1])
        kept, tokens = [], []
        for group in groups:
            end = begin + group.num_rows
            rows, next_tokens = group.choose(log_probs[begin:end])
            kept.append(rows + begin)
            tokens.append(next_tokens)
            begin = end
        rows = torch.cat(kept)
        self.groups = [group for group in groups if group.num_rows]
        self._state = state.select(rows) if len(rows) else None
        self._ids = torch.cat(tokens)[:, None]
        return groups


def search(model: Autoregressive, inputs: SearchInputs) -> list[list[Hypothesis]]:
    """Search one group to its end; the hypotheses of each source, best first."""
    for _ in steps(model, inputs):
        pass
    return [inputs.strategy.hypotheses(source) for source in range(inputs.strategy.num_sources)]


def steps(model: Autoregressive, inputs: SearchInputs) -> Iterator[None]:
    """The search of `search` as a generator that pauses after each step."""
    batch = ContinuousBatch(model)
    batch.join(inputs, is_alone=True)
    yield
    while batch.groups:
        batch.step()
        yield
