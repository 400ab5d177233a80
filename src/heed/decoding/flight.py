"""How do sentences join a search that is under way? In cohorts, which share each step of the model.

Those that depart together are a cohort, with a chooser and filters of their own, as if they were searched alone. A
step advances the rows of all cohorts as one batch, and then each chooses among its own rows. So whatever `roles.py` can
make may join, nothing of it knows of other rows, and by the contract's second law the output of none depends on them.

Rows whose source ends leave at once, wherever their cohort is. What looks at attention (a coverage penalty) would have
to find its rows in the trace of all: such a search is made alone (`search.py`).
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from heed.decoding.departure import Departure
from heed.decoding.hypothesis import Hypothesis
from heed.nn.contract import Autoregressive, State


class Cohort:
    """Sources that departed together; they are numbered from 0."""

    def __init__(self, start: Departure) -> None:
        self.chooser = start.chooser
        self.filters = start.filters
        self.num_rows = start.begin.shape[0]
        self.flying = list(dict.fromkeys(self.chooser.row_sources()))
        """The sources that have not landed."""
        self.landed: list[tuple[int, list[Hypothesis]]] = []
        """Those that landed with the last step, and what was found for each."""

    def choose(self, log_probs: Float[Tensor, "R V"]) -> tuple[Tensor, Tensor]:
        """(the rows of this cohort that go on, their next tokens)."""
        for rule in self.filters:
            log_probs = rule(log_probs, self.chooser)
        kept, tokens = self.chooser.choose(log_probs)
        self.num_rows = len(kept)
        self._land()
        return kept, tokens

    def _land(self) -> None:
        flying = list(dict.fromkeys(self.chooser.row_sources())) if self.num_rows else []
        gone = sorted(set(self.flying) - set(flying))
        self.flying = flying
        hypotheses = self.chooser.hypotheses() if gone else []
        self.landed = [(source, hypotheses[source]) for source in gone]

    def best_so_far(self, source: int) -> list[int]:
        """The tokens of the best beginning of a source that has not landed."""
        tokens: list[int] = self.chooser.row_tokens()[self.chooser.row_sources().index(source)].tolist()
        return tokens


class Flight:
    """One search for all who come: the rows of all cohorts, at their own lengths, in one state."""

    def __init__(self, model: Autoregressive) -> None:
        self.model = model
        self.cohorts: list[Cohort] = []
        self._state: State | None = None
        self._ids = torch.empty(0, 1, dtype=torch.long)

    @property
    def num_rows(self) -> int:
        """Rows under way."""
        return sum(cohort.num_rows for cohort in self.cohorts)

    @torch.inference_mode()
    def join(self, start: Departure) -> Cohort:
        """Take the first step of a departure, and then its rows in. Where that fails, the others are as they were."""
        cohort = Cohort(start)
        num_rows = cohort.chooser.rows_per_source if start.source is not None else cohort.num_rows
        state = self.model.start(start.source, num_rows)
        features, state = self.model.advance(start.begin, state)
        kept, tokens = cohort.choose(self.model.head.log_probs(features[:, -1]))
        if len(kept):
            arriving = state.select(kept)
            self._state = arriving if self._state is None else self._state.join(arriving)
            self._ids = torch.cat((self._ids.to(tokens.device), tokens[:, None]))
            self.cohorts.append(cohort)
        return cohort

    @torch.inference_mode()
    def step(self) -> Sequence[Cohort]:
        """One more token for all rows; the cohorts that took part, those that have wholly landed among them."""
        assert self._state is not None
        cohorts, begin = self.cohorts, 0
        features, state = self.model.advance(self._ids, self._state)
        log_probs = self.model.head.log_probs(features[:, -1])
        kept, tokens = [], []
        for cohort in cohorts:
            end = begin + cohort.num_rows
            rows, next_tokens = cohort.choose(log_probs[begin:end])
            kept.append(rows + begin)
            tokens.append(next_tokens)
            begin = end
        rows = torch.cat(kept)
        self.cohorts = [cohort for cohort in cohorts if cohort.num_rows]
        self._state = state.select(rows) if len(rows) else None
        self._ids = torch.cat(tokens)[:, None]
        return cohorts
