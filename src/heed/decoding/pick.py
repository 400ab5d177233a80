"""How is one token chosen for each row alone: the most likely one, or a draw?

Sampling with temperature, top-k (Fan et al. 2018) and top-p (Holtzman et al. 2020). The random number of
a draw is a hash of (seed, stream, step), so the same sentence draws the same output in any batch: but for sums in
another order, whose last bits may carry a draw over the edge between two tokens.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor

from heed.decoding.beam import Watch
from heed.decoding.coverage import Coverage
from heed.decoding.hypothesis import Hypothesis, LengthPenalty
from heed.decoding.stops import Stops
from heed.decoding.topk import top_k
from heed.nn.dropout_keys import mix_int

_NEVER = float("-inf")
SORTED_QUICKLY = 1024
"""Tokens that are as soon sorted as looked through."""
LIKELIEST = 256
"""Tokens that are put in order before it is known how many must be."""

Pick = Callable[[Float[Tensor, "R V"], Sequence[int], int], Int[Tensor, " R"]]
"""(log-probabilities, the stream of each row, the step) -> a token for each row."""


def greedy(log_probs: Float[Tensor, "R V"], streams: Sequence[int], step: int) -> Int[Tensor, " R"]:
    """The most likely token of each row."""
    return log_probs.argmax(dim=-1)


class Sample:
    """Draws from the distribution after temperature, top-k and top-p."""

    def __init__(self, seed: int, temperature: float = 1.0, top_k: int = 0, top_p: float = 1.0) -> None:
        self.seed = seed
        self.temperature = temperature
        self.top_k = top_k
        self.top_p = top_p

    def uniform(self, stream: int, step: int) -> float:
        """The number in [0, 1) of one draw."""
        bits = mix_int(mix_int(mix_int(self.seed) + stream) + step)
        return (bits & ((1 << 53) - 1)) / (1 << 53)

    def __call__(self, log_probs: Float[Tensor, "R V"], streams: Sequence[int], step: int) -> Int[Tensor, " R"]:
        """A token for each row, by inverting the cumulative distribution of what top-k and top-p leave.

        In the order of the tokens' numbers: in that of their likelihood two that are nearly equal would change places
        with the last bit of either, which depends on the batch, and a draw beyond them would be another token. Only as
        many are put in order as it takes to know what is left.
        """
        scaled = log_probs / self.temperature
        draws = torch.tensor([self.uniform(stream, step) for stream in streams], dtype=torch.float64)[:, None]
        draws = draws.to(scaled.device)
        if not self.top_k and self.top_p >= 1.0:
            return _inverted((scaled - scaled.amax(dim=-1, keepdim=True)).double().exp(), draws).squeeze(1)
        most = min(self.top_k or scaled.shape[1], scaled.shape[1])
        size = most if self.top_k else min(LIKELIEST, most)
        while (left := self._left(scaled, size, most)) is None:
            size = min(16 * size, most)
        masses, tokens = left
        tokens, order = tokens.sort(dim=-1)
        return tokens.gather(1, _inverted(masses.gather(1, order), draws)).squeeze(1)

    def _left(
        self, scaled: Float[Tensor, "R V"], size: int, most: int
    ) -> tuple[Float[Tensor, "R k"], Int[Tensor, "R k"]] | None:
        """Masses of the tokens that may be drawn, and these; None where the first `size` do not come to top-p."""
        values, tokens = likeliest(scaled, size)
        masses = (values - values[:, :1]).double().exp()
        if self.top_p < 1.0:
            cumulative = masses.cumsum(dim=-1)
            whole = (scaled - values[:, :1]).double().exp().sum(-1, keepdim=True) if size < most else cumulative[:, -1:]
            reach = self.top_p * whole
            if size < most and not bool((cumulative[:, -1:] > reach).all()):
                return None
            masses = masses * ((cumulative - masses) < reach)  # what first passes top_p counts
        return masses, tokens


def _inverted(masses: Float[Tensor, "R N"], draws: Float[Tensor, "R 1"]) -> Int[Tensor, "R 1"]:
    """Where the cumulative sum passes each draw in [0, 1); never at a mass of 0."""
    cumulative = masses.cumsum(dim=-1)
    total = cumulative[:, -1:]
    reach = torch.minimum(draws * total, torch.nextafter(total, torch.zeros_like(total)))  # a product may be rounded up
    return torch.searchsorted(cumulative, reach, right=True).clamp(max=masses.shape[1] - 1)


def likeliest(scores: Float[Tensor, "R V"], k: int) -> tuple[Float[Tensor, "R k"], Int[Tensor, "R k"]]:
    """The k largest of each row, largest first, and where they stand; of equal ones the first comes first."""
    if 2 * k < scores.shape[1] and scores.shape[1] > SORTED_QUICKLY:
        values, tokens = top_k(scores, k)
        if int((scores >= values[:, -1:]).sum()) == values.numel():  # no other is as large as the last of them
            tokens, order = tokens.sort(dim=-1)
            values, order = values.gather(1, order).sort(dim=-1, descending=True, stable=True)
            return values, tokens.gather(1, order)
    values, tokens = scores.sort(dim=-1, descending=True, stable=True)
    return values[:, :k], tokens[:, :k]


class PickChooser:
    """Rows that go their own way, one token at a time, and leave when they end."""

    watch: Watch | None = None

    def __init__(
        self, num_sources: int, rows_per_source: int, eos_id: int, pick: Pick, penalty: LengthPenalty,
        limits: Sequence[int], streams: Sequence[int], coverage: Coverage | None = None, stops: Stops | None = None,
        read_for_end: int | None = None,
    ) -> None:  # fmt: skip
        """`stops`: what ends a row beside its end of sentence. `read_for_end`: what is read in the place of an end of
        sentence, behind which the text then goes on."""
        self.rows_per_source = rows_per_source
        self.eos_id = eos_id
        self.pick = pick
        self.penalty = penalty
        self.coverage = coverage
        self.stops = stops
        self.read_for_end = read_for_end
        num_rows = num_sources * rows_per_source
        self._limits = [limits[row // rows_per_source] for row in range(num_rows)]
        self._streams = [mix_int(streams[row // rows_per_source]) + row % rows_per_source for row in range(num_rows)]
        self._tokens: list[list[int]] = [[] for _ in range(num_rows)]
        self._log_probs: list[list[float]] = [[] for _ in range(num_rows)]
        self._finished = [False] * num_rows
        self._uncovered = [0.0] * num_rows  # the coverage penalty of those that have left
        self._alive = list(range(num_rows))
        self._num_tokens = 0

    def begin_with(self, tokens: Int[Tensor, "S P"], log_probs: Float[Tensor, "S P"]) -> None:
        """Every row of a source begins with these tokens, and its score with theirs: a forced prefix."""
        width = self.rows_per_source
        self._tokens = [list(ids) for ids in tokens.tolist() for _ in range(width)]
        self._log_probs = [list(steps) for steps in log_probs.tolist() for _ in range(width)]
        self._num_tokens = tokens.shape[1]

    @property
    def num_tokens(self) -> int:
        """Tokens of each row so far."""
        return self._num_tokens

    def row_sources(self) -> list[int]:
        """For each row the number of its source in the batch."""
        return [row // self.rows_per_source for row in self._alive]

    def row_tokens(self) -> Int[Tensor, "R T"]:
        """The tokens of each row so far."""
        rows = [self._tokens[row] for row in self._alive]
        return torch.tensor(rows, dtype=torch.long).reshape(len(rows), self._num_tokens)

    def choose(self, log_probs: Float[Tensor, "R V"]) -> tuple[Int[Tensor, " N"], Int[Tensor, " N"]]:
        """One more token for every row that is still alive; the last one allowed can only be the end."""
        if self.coverage is not None:
            self.coverage.observe()
        tokens = self.pick(log_probs, [self._streams[row] for row in self._alive], self._num_tokens)
        steps = log_probs.gather(1, tokens[:, None]).squeeze(1).tolist()
        self._num_tokens += 1
        going: list[int] = []
        for place, (row, token) in enumerate(zip(self._alive, tokens.tolist(), strict=True)):
            if token == self.eos_id and self.read_for_end is None and steps[place] > _NEVER:
                self._log_probs[row].append(steps[place])
                self._finished[row] = True
            elif self._num_tokens < self._limits[row] and steps[place] > _NEVER:
                self._log_probs[row].append(steps[place])
                self._tokens[row].append(token)
                self._finished[row] = self.stops is not None and self.stops.reached(self._tokens[row])
                if not self._finished[row]:
                    going.append(place)
                    continue
            if self.coverage is not None:
                self._uncovered[row] = self.coverage.penalty(place, self._finished[row])
        self._alive = [self._alive[place] for place in going]
        kept = torch.tensor(going, dtype=torch.long, device=log_probs.device)
        if self.coverage is not None:
            self.coverage.select(kept)
        chosen = tokens[kept]
        if self.read_for_end is not None:
            chosen = chosen.masked_fill(chosen == self.eos_id, self.read_for_end)
        return kept, chosen

    def give_up(self, source: int) -> None:
        """Nobody waits for a source any longer: its rows leave at the next step."""
        begin = source * self.rows_per_source
        self._limits[begin : begin + self.rows_per_source] = [0] * self.rows_per_source

    def hypotheses(self) -> list[list[Hypothesis]]:
        """For each source its rows, best score first."""
        rows = [self._hypothesis(row) for row in range(len(self._tokens))]
        width = self.rows_per_source
        return [sorted(rows[begin : begin + width], key=lambda h: -h.score) for begin in range(0, len(rows), width)]

    def _hypothesis(self, row: int) -> Hypothesis:
        log_probs = self._log_probs[row]
        total = math.fsum(log_probs)
        score = total / self.penalty.divisor(len(log_probs)) + self._uncovered[row]
        return Hypothesis(tuple(self._tokens[row]), total, score, tuple(log_probs), self._finished[row])
