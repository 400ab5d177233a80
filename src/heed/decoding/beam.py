"""How does beam search keep the W most likely beginnings of each sentence?

Each step ranks every continuation of the W alive hypotheses and keeps the best 2 W, so that W can go on even
if W of them end. A continuation that ends among the first W is finished. A sentence is done when W hypotheses have
finished, when no alive one can still beat the n-best finished (log-probabilities only fall, and the length
penalty of the longest allowed output bounds what they may gain), or at the longest allowed length.
With W as wide as the space of outputs this is exhaustive search.

Other ways to choose among the continuations (`diverse.py`, `constrained.py`) replace a step or two of this one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from heed.decoding.coverage import Coverage
from heed.decoding.hypothesis import Hypothesis, LengthPenalty
from heed.decoding.topk import top_k

NEVER = float("-inf")


@dataclass(frozen=True)
class Continuations:
    """The most likely ways for each source's beams to go on, best first."""

    beams: Int[Tensor, "S N"]
    """Which beam goes on."""
    tokens: Int[Tensor, "S N"]
    """With which token."""
    steps: Float[Tensor, "S N"]
    """The log-probability of that token."""
    scores: Float[Tensor, "S N"]
    """The log-probability of the whole."""

    def pick(self, places: Int[Tensor, "S W"]) -> Continuations:
        """Some of them."""
        return Continuations(*(x.gather(1, places) for x in (self.beams, self.tokens, self.steps, self.scores)))


Watch = Callable[[Int[Tensor, "S W T"], Continuations, Bool[Tensor, "S M"], Int[Tensor, "S W"]], None]
"""Sees each step: the tokens of the beams, their continuations, which of those are finished, which go on."""


@dataclass(frozen=True)
class _Beams:
    """The alive hypotheses of each source; a beam of log-probability -inf is a place not yet filled."""

    scores: Float[Tensor, "S W"]
    tokens: Int[Tensor, "S W T"]
    log_probs: Float[Tensor, "S W T"]

    @staticmethod
    def start(num_sources: int, width: int, device: torch.device | None) -> _Beams:
        """One empty hypothesis for each source."""
        scores = torch.full((num_sources, width), NEVER, device=device)
        scores[:, 0] = 0.0
        none = torch.zeros((num_sources, width, 0), device=device)
        return _Beams(scores, none.long(), none)

    def begun(self, tokens: Int[Tensor, "S P"], log_probs: Float[Tensor, "S P"]) -> _Beams:
        """All of a source with the same first tokens."""
        width = self.scores.shape[1]
        wide = [x[:, None].expand(-1, width, -1) for x in (tokens, log_probs)]
        return _Beams(self.scores + log_probs.sum(dim=1, keepdim=True), *wide)

    def extend(self, by: Continuations) -> _Beams:
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

    watch: Watch | None = None
    """Whoever wants to see what is considered, kept and dropped."""

    def __init__(
        self, num_sources: int, beam_size: int, eos_id: int, penalty: LengthPenalty, limits: Sequence[int],
        nbest: int = 1, device: torch.device | None = None, coverage: Coverage | None = None,
    ) -> None:  # fmt: skip
        self.rows_per_source = self.width = beam_size
        self.eos_id = eos_id
        self.penalty = penalty
        self.nbest = nbest
        self.coverage = coverage
        self._limits = list(limits)
        self._finished: list[list[Hypothesis]] = [[] for _ in range(num_sources)]
        self._cut: list[list[Hypothesis]] = [[] for _ in range(num_sources)]
        self._sources = list(range(num_sources))  # those that are not done
        self._beams = _Beams.start(num_sources, beam_size, device)

    def begin_with(self, tokens: Int[Tensor, "N P"], log_probs: Float[Tensor, "N P"]) -> None:
        """Every hypothesis of a source begins with these tokens, and its score with theirs: a forced prefix."""
        self._beams = self._beams.begun(tokens, log_probs)

    @property
    def num_tokens(self) -> int:
        """Tokens of each row so far."""
        return self._beams.tokens.shape[2]

    def row_sources(self) -> list[int]:
        """For each row the number of its source in the batch."""
        return [source for source in self._sources for _ in range(self.width)]

    def row_tokens(self) -> Int[Tensor, "R T"]:
        """The tokens of each row so far."""
        return self._beams.tokens.flatten(0, 1)

    def choose(self, log_probs: Float[Tensor, "R V"]) -> tuple[Int[Tensor, " N"], Int[Tensor, " N"]]:
        """Extend every beam by one token; finished hypotheses are put aside, done sources leave."""
        if self.coverage is not None:
            self.coverage.observe()
        found = self._continuations(log_probs)
        ends = (found.tokens == self.eos_id) & (found.scores > NEVER)
        accepted = self._accepted(found, ends)
        self._put_aside(found, accepted)
        going_on = self._going_on(found, ends)
        if self.watch is not None:
            self.watch(self._beams.tokens, found, accepted, going_on)
        chosen = found.pick(going_on)
        self._beams = self._beams.extend(chosen)
        rows, tokens = self._leave(chosen.beams)
        if self.coverage is not None:
            self.coverage.select(rows)
        return rows, tokens

    def _continuations(self, log_probs: Float[Tensor, "R V"]) -> Continuations:
        """The best 2 W of each source."""
        return best_continuations(self._beams.scores, log_probs, log_probs)

    def _accepted(self, found: Continuations, ends: Bool[Tensor, "S N"]) -> Bool[Tensor, "S M"]:
        """Which of the continuations that end are finished: those among the first W."""
        return ends[:, : self.width]

    def _going_on(self, found: Continuations, ends: Bool[Tensor, "S N"]) -> Int[Tensor, "S W"]:
        """The places of the W that go on: the first that do not end; no more than W of the 2 W can, one a beam."""
        return torch.sort(ends.to(torch.uint8), dim=-1, stable=True).indices[:, : self.width]

    def _put_aside(self, found: Continuations, accepted: Bool[Tensor, "S M"]) -> None:
        """Keep what has finished; where it cannot go on, at the longest allowed length, keep the alive ones, as cut."""
        for row, rank in accepted.nonzero().tolist():
            beam, step = int(found.beams[row, rank]), float(found.steps[row, rank])
            self._finished[self._sources[row]].append(self._hypothesis(row, beam, (step,), True))
        stuck = (found.scores[:, 0] == NEVER).tolist()
        for row, source in enumerate(self._sources):
            if stuck[row] or self.num_tokens + 1 >= self._limits[source]:
                self._cut[source] = [self._hypothesis(row, beam, (), False) for beam in self._worth_keeping(row)]

    def _worth_keeping(self, row: int) -> list[int]:
        """The alive beams of a source that can go on no longer; the first where what it had to say is impossible."""
        alive: list[int] = (self._beams.scores[row] > NEVER).nonzero().squeeze(1).tolist()
        return alive or [0]

    def _hypothesis(self, row: int, beam: int, end: tuple[float, ...], finished: bool) -> Hypothesis:
        """An alive hypothesis; `end` holds the log-probability of its end of sentence, if it has one."""
        ids = tuple(self._beams.tokens[row, beam].tolist())
        log_probs = (*self._beams.log_probs[row, beam].tolist(), *end)
        total = math.fsum(log_probs)
        score = total / self.penalty.divisor(len(log_probs))
        if self.coverage is not None:
            score += self.coverage.penalty(row * self.width + beam, finished)
        return Hypothesis(ids, total, score, log_probs, finished)

    def _leave(self, parents: Int[Tensor, "S W"]) -> tuple[Int[Tensor, " N"], Int[Tensor, " N"]]:
        """Rows and tokens of the sources that are not done."""
        best = self._beams.scores.amax(dim=1).tolist()
        going = [row for row, source in enumerate(self._sources) if not self._is_done(source, best[row])]
        kept = torch.tensor(going, dtype=torch.long, device=parents.device)
        rows = (kept[:, None] * self.width + parents[kept]).reshape(-1)
        if len(going) < len(self._sources):
            self._sources = [self._sources[row] for row in going]
            self._beams = self._beams.select(kept)
        return rows, self._beams.tokens[:, :, -1].reshape(-1)

    def _is_done(self, source: int, best_alive: float) -> bool:
        finished, limit = self._finished[source], self._limits[source]
        if best_alive == NEVER or len(finished) >= self.width or self.num_tokens >= limit:
            return True
        if len(finished) < self.nbest:
            return False
        worst_kept = sorted((h.score for h in finished), reverse=True)[self.nbest - 1]
        return worst_kept >= best_alive / self.penalty.divisor(limit)  # a coverage penalty is never above 0

    def give_up(self, source: int) -> None:
        """Nobody waits for a source any longer: it leaves at the next step."""
        self._limits[source] = 0

    def hypotheses(self) -> list[list[Hypothesis]]:
        """For each source its best finished hypotheses; those cut off only where too few finished."""
        return [self._ranked(source)[: self.nbest] for source in range(len(self._finished))]

    def _ranked(self, source: int) -> list[Hypothesis]:
        """All that is left of a source, best first; what was cut off comes behind what ended."""
        finished = self._finished[source]
        ended = {h.ids for h in finished}
        return by_score(finished) + by_score([h for h in self._cut[source] if h.ids not in ended])


def best_continuations(
    scores: Float[Tensor, "S W"], log_probs: Float[Tensor, "R V"], ranked_by: Float[Tensor, "R V"]
) -> Continuations:
    """The best 2 W of each source by `ranked_by`; their scores count `log_probs`."""
    num_sources, width = scores.shape
    per_row = min(2 * width, log_probs.shape[1])
    values, tokens = top_k(ranked_by, per_row)
    totals = (scores.reshape(-1, 1) + values).reshape(num_sources, -1)
    best, chosen = totals.topk(2 * width, dim=-1)
    steps = (values if ranked_by is log_probs else log_probs.gather(1, tokens)).reshape(num_sources, -1)
    tokens, steps = tokens.reshape(num_sources, -1).gather(1, chosen), steps.gather(1, chosen)
    beams = chosen // per_row
    if ranked_by is not log_probs:
        best = scores.gather(1, beams) + steps
    return Continuations(beams, tokens, steps, best)


def by_score(hypotheses: Sequence[Hypothesis]) -> list[Hypothesis]:
    """Best first."""
    return sorted(hypotheses, key=lambda h: -h.score)
