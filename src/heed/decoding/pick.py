"""How is one token chosen for each row alone: the most likely one, or a draw?

Sampling with temperature, top-k (Fan et al. 2018) and top-p (Holtzman et al. 2020). The random number of
a draw is a hash of (seed, stream, step), so the same sentence draws the same output in any batch.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor

from heed.decoding.coverage import Coverage
from heed.decoding.hypothesis import Hypothesis, LengthPenalty
from heed.nn.noise import mix_int

_NEVER = float("-inf")

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
        """A token for each row, by inverting the cumulative distribution of the tokens that are allowed."""
        ordered, tokens = (log_probs / self.temperature).sort(dim=-1, descending=True, stable=True)
        if self.top_k:
            ordered = ordered[:, : self.top_k]
        probs = ordered.double().softmax(dim=-1)
        cumulative = probs.cumsum(dim=-1)
        if self.top_p < 1.0:
            probs = probs * ((cumulative - probs) < self.top_p)  # the first token that passes top_p still counts
            cumulative = probs.cumsum(dim=-1)
        draws = torch.tensor([self.uniform(stream, step) for stream in streams], dtype=torch.float64)
        target = draws.to(cumulative.device)[:, None] * cumulative[:, -1:]
        place = torch.searchsorted(cumulative, target, right=True).clamp(max=cumulative.shape[1] - 1)
        return tokens.gather(1, place).squeeze(1)


class PickChooser:
    """Rows that go their own way, one token at a time, and leave when they end."""

    def __init__(
        self, num_sources: int, rows_per_source: int, eos_id: int, pick: Pick, penalty: LengthPenalty,
        limits: Sequence[int], streams: Sequence[int], coverage: Coverage | None = None,
    ) -> None:  # fmt: skip
        self.rows_per_source = rows_per_source
        self.eos_id = eos_id
        self.pick = pick
        self.penalty = penalty
        self.coverage = coverage
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
            if token == self.eos_id and steps[place] > _NEVER:
                self._log_probs[row].append(steps[place])
                self._finished[row] = True
            elif self._num_tokens < self._limits[row] and steps[place] > _NEVER:
                self._log_probs[row].append(steps[place])
                self._tokens[row].append(token)
                going.append(place)
                continue
            if self.coverage is not None:
                self._uncovered[row] = self.coverage.penalty(place, self._finished[row])
        self._alive = [self._alive[place] for place in going]
        kept = torch.tensor(going, dtype=torch.long, device=log_probs.device)
        if self.coverage is not None:
            self.coverage.select(kept)
        return kept, tokens[kept]

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
