"""Beam search, plain and diverse.

Each step ranks all continuations of the W active hypotheses and keeps the best 2 W, so that W can continue even if W of
them end. A continuation that ends among the first W is finished. A sentence is done when W hypotheses have finished,
when no active one can still beat the n-best finished (log-probabilities only fall, and the length penalty of the
longest allowed output bounds what they can gain), or at the longest allowed length. With W as wide as the space of
outputs this is exhaustive search.

`DiverseBeamSearch`, and `ConstrainedBeamSearch` in `constraints.py`, replace single steps of it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from heed.decoding.cross_attention import Coverage
from heed.decoding.hypothesis import Hypothesis
from heed.decoding.ranking import LengthPenalty, by_score
from heed.decoding.sampling import top_k_of_sums
from heed.text.vocabulary import EOS_ID

NEVER = float("-inf")


@dataclass(frozen=True)
class Continuations:
    """The most likely continuations of each source's beams, best first."""

    beams: Int[Tensor, "S N"]
    """Which beam is continued."""
    tokens: Int[Tensor, "S N"]
    """The next token."""
    steps: Float[Tensor, "S N"]
    """Its log-probability."""
    scores: Float[Tensor, "S N"]
    """Log-probability of the whole hypothesis."""

    def pick(self, index: Int[Tensor, "S W"]) -> Continuations:
        return Continuations(*(x.gather(1, index) for x in (self.beams, self.tokens, self.steps, self.scores)))


Watch = Callable[[Int[Tensor, "S W T"], Continuations, Bool[Tensor, "S M"], Int[Tensor, "S W"]], None]
"""Called at each step: tokens of the beams, their continuations, which of them are finished, which are kept."""


@dataclass(frozen=True)
class _Beams:
    """The active hypotheses of each source; a beam with log-probability -inf is an empty slot."""

    scores: Float[Tensor, "S W"]
    tokens: Int[Tensor, "S W T"]
    log_probs: Float[Tensor, "S W T"]

    @staticmethod
    def start(num_sources: int, width: int, device: torch.device | None) -> _Beams:
        scores = torch.full((num_sources, width), NEVER, device=device)
        scores[:, 0] = 0.0
        none = torch.zeros((num_sources, width, 0), device=device)
        return _Beams(scores, none.long(), none)

    def with_prefix(self, tokens: Int[Tensor, "S P"], log_probs: Float[Tensor, "S P"]) -> _Beams:
        """All beams of a source with the same first tokens."""
        width = self.scores.shape[1]
        wide = [x[:, None].expand(-1, width, -1) for x in (tokens, log_probs)]
        return _Beams(self.scores + log_probs.sum(dim=1, keepdim=True), *wide)

    def extend(self, by: Continuations) -> _Beams:
        history = by.beams[..., None].expand(-1, -1, self.tokens.shape[2])
        tokens = torch.cat((self.tokens.gather(1, history), by.tokens[..., None]), dim=-1)
        log_probs = torch.cat((self.log_probs.gather(1, history), by.steps[..., None]), dim=-1)
        return _Beams(by.scores, tokens, log_probs)

    def select(self, sources: Int[Tensor, " N"]) -> _Beams:
        return _Beams(self.scores[sources], self.tokens[sources], self.log_probs[sources])


class BeamSearch:
    """Beams for a batch of sources; sources that are done leave it."""

    watch: Watch | None = None

    def __init__(
        self, beam_size: int, limits: Sequence[int], penalty: LengthPenalty, nbest: int = 1,
        device: torch.device | None = None, coverage: Coverage | None = None,
    ) -> None:  # fmt: skip
        """`limits`: maximum number of tokens of each source's output, end of sentence included."""
        self.num_sources = num_sources = len(limits)
        self.rows_per_source = self.width = beam_size
        self.penalty = penalty
        self.nbest = nbest
        self.coverage = coverage
        self._limits = list(limits)
        self._finished: list[list[Hypothesis]] = [[] for _ in range(num_sources)]
        self._cut_off: list[list[Hypothesis]] = [[] for _ in range(num_sources)]
        self._sources = list(range(num_sources))  # the active ones
        self._beams = _Beams.start(num_sources, beam_size, device)

    def force_prefix(self, tokens: Int[Tensor, "N P"], log_probs: Float[Tensor, "N P"]) -> None:
        self._beams = self._beams.with_prefix(tokens, log_probs)

    @property
    def num_tokens(self) -> int:
        return self._beams.tokens.shape[2]

    def row_sources(self) -> list[int]:
        return [source for source in self._sources for _ in range(self.width)]

    def row_tokens(self) -> Int[Tensor, "R T"]:
        return self._beams.tokens.flatten(0, 1)

    def choose(self, log_probs: Float[Tensor, "R V"]) -> tuple[Int[Tensor, " N"], Int[Tensor, " N"]]:
        """Extend every beam by one token; finished hypotheses are collected and done sources leave."""
        if self.coverage is not None:
            self.coverage.observe()
        continuations = self._continuations(log_probs)
        ends = (continuations.tokens == EOS_ID) & (continuations.scores > NEVER)
        accepted = self._accepted(continuations, ends)
        self._collect(continuations, accepted)
        kept = self._kept(continuations, ends)
        if self.watch is not None:
            self.watch(self._beams.tokens, continuations, accepted, kept)
        chosen = continuations.pick(kept)
        self._beams = self._beams.extend(chosen)
        rows, tokens = self._drop_done(chosen.beams)
        if self.coverage is not None:
            self.coverage.select(rows)
        return rows, tokens

    def _continuations(self, log_probs: Float[Tensor, "R V"]) -> Continuations:
        """The best 2 W of each source."""
        return best_continuations(self._beams.scores, log_probs, log_probs)

    def _accepted(self, continuations: Continuations, ends: Bool[Tensor, "S N"]) -> Bool[Tensor, "S M"]:
        """Mask of the finished continuations: those among the first W that end."""
        return ends[:, : self.width]

    def _kept(self, continuations: Continuations, ends: Bool[Tensor, "S N"]) -> Int[Tensor, "S W"]:
        """Indices of the W to keep: the first that do not end. At most W of the 2 W end, one per beam."""
        return torch.sort(ends.to(torch.uint8), dim=-1, stable=True).indices[:, : self.width]

    def _collect(self, continuations: Continuations, accepted: Bool[Tensor, "S M"]) -> None:
        """Collect finished hypotheses, and the active ones of sources that cannot continue, as cut off."""
        rows, ranks = accepted.nonzero().unbind(1)
        if len(rows):
            ended = self._hypotheses(rows, continuations.beams[rows, ranks], continuations.steps[rows, ranks])
            for row, hypothesis in zip(rows.tolist(), ended, strict=True):
                self._finished[self._sources[row]].append(hypothesis)
        stuck = (continuations.scores[:, 0] == NEVER).tolist()
        for row, source in enumerate(self._sources):
            if stuck[row] or self.num_tokens + 1 >= self._limits[source]:
                beams = torch.tensor(self._best_unfinished(row), device=rows.device)
                self._cut_off[source] = self._hypotheses(torch.full_like(beams, row), beams)

    def _best_unfinished(self, row: int) -> list[int]:
        """Active beams of a source that cannot continue; the first one where no beam is possible."""
        active: list[int] = (self._beams.scores[row] > NEVER).nonzero().squeeze(1).tolist()
        return active or [0]

    def _hypotheses(
        self, rows: Int[Tensor, " N"], beams: Int[Tensor, " N"], ends: Float[Tensor, " N"] | None = None
    ) -> list[Hypothesis]:
        """Active hypotheses, or with the log-probabilities of their ends of sentence finished ones.

        All are fetched from a GPU at once.
        """
        found, finished = [], ends is not None
        histories = [x[rows, beams].tolist() for x in (self._beams.tokens, self._beams.log_probs)]
        of_ends = [()] * len(rows) if ends is None else [(end,) for end in ends.tolist()]
        places = (rows * self.width + beams).tolist()
        for ids, history, end, place in zip(*histories, of_ends, places, strict=True):
            log_probs = (*history, *end)
            total = math.fsum(log_probs)
            score = total / self.penalty.divisor(len(log_probs))
            if self.coverage is not None:
                score += self.coverage.penalty(place, finished)
            found.append(Hypothesis(tuple(ids), total, score, log_probs, finished))
        return found

    def _drop_done(self, parents: Int[Tensor, "S W"]) -> tuple[Int[Tensor, " N"], Int[Tensor, " N"]]:
        """Rows and next tokens of the sources that are not done."""
        best = self._beams.scores.amax(dim=1).tolist()
        active = [row for row, source in enumerate(self._sources) if not self._is_done(source, best[row])]
        kept = torch.tensor(active, dtype=torch.long, device=parents.device)
        rows = (kept[:, None] * self.width + parents[kept]).reshape(-1)
        if len(active) < len(self._sources):
            self._sources = [self._sources[row] for row in active]
            self._beams = self._beams.select(kept)
        return rows, self._beams.tokens[:, :, -1].reshape(-1)

    def _is_done(self, source: int, best_active: float) -> bool:
        finished, limit = self._finished[source], self._limits[source]
        if best_active == NEVER or len(finished) >= self.width or self.num_tokens >= limit:
            return True
        if len(finished) < self.nbest:
            return False
        worst_kept = sorted((h.score for h in finished), reverse=True)[self.nbest - 1]
        return worst_kept >= best_active / self.penalty.divisor(limit)  # a coverage penalty is never above 0

    def cancel(self, source: int) -> None:
        self._limits[source] = 0

    def hypotheses(self, source: int) -> list[Hypothesis]:
        """The best finished hypotheses of a source; those cut off only where too few finished."""
        return self._ranked(source)[: self.nbest]

    def _ranked(self, source: int) -> list[Hypothesis]:
        """All hypotheses of a source, best first; those cut off come last."""
        finished = self._finished[source]
        ended = {hypothesis.ids for hypothesis in finished}
        cut_off = [hypothesis for hypothesis in self._cut_off[source] if hypothesis.ids not in ended]
        return by_score(finished) + by_score(cut_off)


def best_continuations(
    scores: Float[Tensor, "S W"], log_probs: Float[Tensor, "R V"], ranked_by: Float[Tensor, "R V"]
) -> Continuations:
    """The best 2 W of each source by `ranked_by`; their scores are sums of `log_probs`."""
    num_sources, width = scores.shape
    best, chosen = top_k_of_sums(ranked_by.view(num_sources, width, -1), scores, 2 * width)
    beams, tokens = chosen // log_probs.shape[1], chosen % log_probs.shape[1]
    steps = log_probs.view(num_sources, -1).gather(1, chosen)
    if ranked_by is not log_probs:
        best = scores.gather(1, beams) + steps
    return Continuations(beams, tokens, steps, best)


class DiverseBeamSearch(BeamSearch):
    """Diverse beam search (Vijayakumar et al. 2018), for n-best lists of different outputs.

    The beam is divided into as many groups as there are outputs to return. In each step the groups choose one after the
    other, and a token, end of sentence included, costs λ for each time an earlier group of the same source has chosen
    it in this step (section 3, Hamming diversity). The cost affects what a group keeps and is not part of any score.
    The list holds the best output of each group, and no two groups return the same output. Unlike sampling without
    replacement (Kool et al. 2019) it gives the same list every time. The base class sees each group as a source.
    """

    def __init__(
        self, beam_size: int, limits: Sequence[int], penalty: LengthPenalty, nbest: int, strength: float,
        device: torch.device | None = None, coverage: Coverage | None = None,
    ) -> None:  # fmt: skip
        group_limits = [limit for limit in limits for _ in range(nbest)]
        super().__init__(beam_size // nbest, group_limits, penalty, 1, device, coverage)
        self.num_groups = nbest
        self.strength = strength
        self.num_sources = len(limits)
        self.rows_per_source = nbest * self.width
        self._ended: list[set[tuple[int, ...]]] = [set() for _ in limits]

    def force_prefix(self, tokens: Int[Tensor, "N P"], log_probs: Float[Tensor, "N P"]) -> None:
        super().force_prefix(*(x.repeat_interleave(self.num_groups, dim=0) for x in (tokens, log_probs)))

    def row_sources(self) -> list[int]:
        """The source number of each row, rather than the number of its group."""
        return [group // self.num_groups for group in super().row_sources()]

    def cancel(self, source: int) -> None:
        for group in range(source * self.num_groups, (source + 1) * self.num_groups):
            super().cancel(group)

    def _continuations(self, log_probs: Float[Tensor, "R V"]) -> Continuations:
        """The best 2 W of each group, penalising the first W tokens of each earlier group of its source."""
        by_group = log_probs.view(len(self._sources), self.width, -1)
        used = log_probs.new_zeros(len(self._ended), log_probs.shape[1])  # how often in this step, by source
        rows: list[int] = []
        parts: list[Continuations] = []
        for group in range(self.num_groups):
            members = [row for row, number in enumerate(self._sources) if number % self.num_groups == group]
            if not members:
                continue
            sources = torch.tensor([self._sources[row] // self.num_groups for row in members], device=used.device)
            allowed = self._without_given_outputs(members, by_group[members])
            continuations = self._best_of(members, allowed, used[sources])
            self._record_ends(members, continuations)
            tokens = continuations.tokens[:, : self.width]
            is_possible = continuations.scores[:, : self.width] > NEVER
            index = sources[:, None].expand_as(tokens), tokens
            used.index_put_(index, is_possible.to(used.dtype), accumulate=True)
            rows += members
            parts.append(continuations)
        order = torch.tensor(rows, device=used.device).argsort()
        names = ("beams", "tokens", "steps", "scores")
        return Continuations(*(torch.cat([getattr(part, name) for part in parts])[order] for name in names))

    def _best_of(
        self, members: list[int], log_probs: Float[Tensor, "G W V"], used: Float[Tensor, "G V"]
    ) -> Continuations:
        penalised = log_probs - self.strength * used[:, None]
        return best_continuations(self._beams.scores[members], log_probs.flatten(0, 1), penalised.flatten(0, 1))

    def _without_given_outputs(self, members: list[int], log_probs: Float[Tensor, "G W V"]) -> Float[Tensor, "G W V"]:
        """Forbid the end of an output that another group of the source has already given."""
        is_given = [
            [tuple(ids) in self._ended[self._sources[row] // self.num_groups] for ids in beams]
            for row, beams in zip(members, self._beams.tokens[members].tolist(), strict=True)
        ]
        log_probs[..., EOS_ID].masked_fill_(torch.tensor(is_given, device=log_probs.device), NEVER)
        return log_probs

    def _record_ends(self, members: list[int], continuations: Continuations) -> None:
        ends = (continuations.tokens == EOS_ID) & (continuations.scores > NEVER)
        for member, rank in self._accepted(continuations, ends).nonzero().tolist():
            row = members[member]
            ids = self._beams.tokens[row, int(continuations.beams[member, rank])].tolist()
            self._ended[self._sources[row] // self.num_groups].add(tuple(ids))

    def hypotheses(self, source: int) -> list[Hypothesis]:
        """The best output of each group that no earlier group has, best score first; those cut off come last."""
        chosen: dict[tuple[int, ...], Hypothesis] = {}
        for group in range(source * self.num_groups, (source + 1) * self.num_groups):
            new = next((hypothesis for hypothesis in self._ranked(group) if hypothesis.ids not in chosen), None)
            if new is not None:
                chosen[new.ids] = new
        finished = [hypothesis for hypothesis in chosen.values() if hypothesis.finished]
        return by_score(finished) + by_score([hypothesis for hypothesis in chosen.values() if not hypothesis.finished])
