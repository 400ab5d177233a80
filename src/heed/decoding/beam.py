"""How does beam search keep the W most likely beginnings of each sentence?

Each step ranks every continuation of the W alive hypotheses and keeps the best 2 W, so that W can go on even
if W of them end. A continuation that ends among the first W is finished. A sentence is done when W hypotheses have
finished, when no alive one can still beat the n-best finished (log-probabilities only fall, and the length
penalty of the longest allowed output bounds what they may gain), or at the longest allowed length.
With W as wide as the space of outputs this is exhaustive search.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from heed.decoding.hypothesis import Hypothesis, LengthPenalty
from heed.decoding.topk import top_k

_NEVER = float("-inf")


@dataclass(frozen=True)
class _Continuations:
    """The most likely ways for each source's beams to go on, best first."""

    beams: Int[Tensor, "S N"]
    """Which beam goes on."""
    tokens: Int[Tensor, "S N"]
    """With which token."""
    steps: Float[Tensor, "S N"]
    """The log-probability of that token."""
    scores: Float[Tensor, "S N"]
    """The log-probability of the whole."""

    def pick(self, places: Int[Tensor, "S W"]) -> _Continuations:
        """Some of them."""
        return _Continuations(*(x.gather(1, places) for x in (self.beams, self.tokens, self.steps, self.scores)))


@dataclass(frozen=True)
class _Beams:
    """The alive hypotheses of each source, best first; a beam of log-probability -inf is a place not yet filled."""

    scores: Float[Tensor, "S W"]
    tokens: Int[Tensor, "S W T"]
    log_probs: Float[Tensor, "S W T"]

    @staticmethod
    def start(num_sources: int, width: int, device: torch.device | None) -> _Beams:
        """One empty hypothesis for each source."""
        scores = torch.full((num_sources, width), _NEVER, device=device)
        scores[:, 0] = 0.0
        none = torch.zeros((num_sources, width, 0), device=device)
        return _Beams(scores, none.long(), none)

    def extend(self, by: _Continuations) -> _Beams:
        """Each chosen beam with its next token."""
        history = by.beams[..., None].expand(-1, -1, self.tokens.shape[2])
        tokens = torch.cat((self.tokens.gather(1, history), by.tokens[..., None]), dim=-1)
        log_probs = torch.cat((self.log_probs.gather(1, history), by.steps[..., None]), dim=-1)
        return _Beams(by.scores, tokens, log_probs)

    def select(self, sources: Int[Tensor, " N"]) -> _Beams:
        """The beams of some sources."""
        return _Beams(self.scores[sources], self.tokens[sources], self.log_probs[sources])


class BeamChooser:
    """The beams of a batch of sources; sources that are done leave it."""

    def __init__(
        self, num_sources: int, beam_size: int, eos_id: int, penalty: LengthPenalty, limits: Sequence[int],
        nbest: int = 1, device: torch.device | None = None,
    ) -> None:  # fmt: skip
        self.rows_per_source = beam_size
        self.eos_id = eos_id
        self.penalty = penalty
        self.nbest = nbest
        self._limits = limits
        self._finished: list[list[Hypothesis]] = [[] for _ in range(num_sources)]
        self._cut: list[list[Hypothesis]] = [[] for _ in range(num_sources)]
        self._sources = list(range(num_sources))  # those that are not done
        self._beams = _Beams.start(num_sources, beam_size, device)
        self._length = 0

    def choose(self, log_probs: Float[Tensor, "R V"]) -> tuple[Int[Tensor, " N"], Int[Tensor, " N"]]:
        """Extend every beam by one token; finished hypotheses are put aside, done sources leave."""
        found = self._continuations(log_probs)
        ends = (found.tokens == self.eos_id) & (found.scores > _NEVER)
        self._put_aside(found, ends)
        # No more than W of the 2 W can end, one for each beam, so W go on.
        going_on = torch.sort(ends.to(torch.uint8), dim=-1, stable=True).indices[:, : self.rows_per_source]
        chosen = found.pick(going_on)
        self._beams = self._beams.extend(chosen)
        self._length += 1
        return self._leave(chosen.beams)

    def _continuations(self, log_probs: Float[Tensor, "R V"]) -> _Continuations:
        """The best 2 W of each source."""
        num_sources, width = self._beams.scores.shape
        per_row = min(2 * width, log_probs.shape[1])
        values, tokens = top_k(log_probs, per_row)
        totals = (self._beams.scores.reshape(-1, 1) + values).reshape(num_sources, -1)
        scores, chosen = totals.topk(2 * width, dim=-1)
        tokens = tokens.reshape(num_sources, -1).gather(1, chosen)
        steps = values.reshape(num_sources, -1).gather(1, chosen)
        return _Continuations(chosen // per_row, tokens, steps, scores)

    def _put_aside(self, found: _Continuations, ends: Bool[Tensor, "S N"]) -> None:
        """Keep what ends among the first W; at the longest allowed length keep the alive ones too, as cut off."""
        for row, rank in ends[:, : self.rows_per_source].nonzero().tolist():
            beam, step = int(found.beams[row, rank]), float(found.steps[row, rank])
            self._finished[self._sources[row]].append(self._hypothesis(row, beam, (step,), True))
        for row, source in enumerate(self._sources):
            if self._length + 1 >= self._limits[source]:
                alive = (self._beams.scores[row] > _NEVER).nonzero().squeeze(1).tolist()
                self._cut[source] = [self._hypothesis(row, beam, (), False) for beam in alive]

    def _hypothesis(self, row: int, beam: int, end: tuple[float, ...], finished: bool) -> Hypothesis:
        """An alive hypothesis; `end` holds the log-probability of its end of sentence, if it has one."""
        ids = tuple(self._beams.tokens[row, beam].tolist())
        log_probs = (*self._beams.log_probs[row, beam].tolist(), *end)
        total = math.fsum(log_probs)
        return Hypothesis(ids, total, total / self.penalty.divisor(len(log_probs)), log_probs, finished)

    def _leave(self, parents: Int[Tensor, "S W"]) -> tuple[Int[Tensor, " N"], Int[Tensor, " N"]]:
        """Rows and tokens of the sources that are not done."""
        best = self._beams.scores[:, 0].tolist()
        going = [row for row, source in enumerate(self._sources) if not self._is_done(source, best[row])]
        kept = torch.tensor(going, dtype=torch.long, device=parents.device)
        rows = (kept[:, None] * self.rows_per_source + parents[kept]).reshape(-1)
        if len(going) < len(self._sources):
            self._sources = [self._sources[row] for row in going]
            self._beams = self._beams.select(kept)
        return rows, self._beams.tokens[:, :, -1].reshape(-1)

    def _is_done(self, source: int, best_alive: float) -> bool:
        finished, limit = self._finished[source], self._limits[source]
        if best_alive == _NEVER or len(finished) >= self.rows_per_source or self._length >= limit:
            return True
        if len(finished) < self.nbest:
            return False
        worst_kept = sorted((h.score for h in finished), reverse=True)[self.nbest - 1]
        return worst_kept >= best_alive / self.penalty.divisor(limit)

    def hypotheses(self) -> list[list[Hypothesis]]:
        """For each source its best finished hypotheses; those cut off only where too few finished."""
        out: list[list[Hypothesis]] = []
        for finished, cut in zip(self._finished, self._cut, strict=True):
            ended = {h.ids for h in finished}
            unended = [h for h in cut if h.ids not in ended]
            out.append((_ranked(finished) + _ranked(unended))[: self.nbest])
        return out


def _ranked(hypotheses: Sequence[Hypothesis]) -> list[Hypothesis]:
    return sorted(hypotheses, key=lambda h: -h.score)
