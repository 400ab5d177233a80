"""Sampling and greedy search: one token at a time, for each row by itself.

Temperature, top-k (Fan et al. 2018) and top-p (Holtzman et al. 2020). The random number of a draw is a hash of (seed,
stream, step), so a sentence gets the same sample in any batch, unless the summation order changes the last bits of a
probability and a draw falls exactly between two tokens.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor

from heed.decoding.cross_attention import Coverage
from heed.decoding.detokenizer import StopTexts
from heed.decoding.hypothesis import Hypothesis
from heed.decoding.ranking import LengthPenalty, by_score
from heed.nn.dropout_keys import mix_int
from heed.text.vocabulary import EOS_ID

_NEVER = float("-inf")
LEAST_TEMPERATURE = 1e-30
"""Below it, log-probabilities would be divided into -inf; the likeliest token has all of the mass long before."""
FIRST_SORTED = 256
"""Number of tokens sorted at first; more are sorted if they do not reach top-p."""
GROUP_SIZE = 64
SMALL_ROW = 1024
"""Rows up to this size are sorted whole."""

Pick = Callable[[Float[Tensor, "R V"], Sequence[int], int], Int[Tensor, " R"]]
"""(log-probabilities, random stream of each row, step) -> a token for each row."""


def greedy(log_probs: Float[Tensor, "R V"], streams: Sequence[int], step: int) -> Int[Tensor, " R"]:
    """The most likely token of each row."""
    return log_probs.argmax(dim=-1)


class RandomDraw:
    """A draw from the distribution after temperature, top-k and top-p."""

    def __init__(self, seed: int, temperature: float = 1.0, top_k: int = 0, top_p: float = 1.0) -> None:
        self.seed = seed
        self.temperature = temperature
        self.top_k = top_k
        self.top_p = top_p

    def uniform(self, stream: int, step: int) -> float:
        """The random number in [0, 1) of one draw."""
        bits = mix_int(mix_int(mix_int(self.seed) + stream) + step)
        return (bits & ((1 << 53) - 1)) / (1 << 53)

    def __call__(self, log_probs: Float[Tensor, "R V"], streams: Sequence[int], step: int) -> Int[Tensor, " R"]:
        """A token for each row, by inverting the cumulative distribution of the tokens that top-k and top-p leave.

        The distribution is cumulated in the order of token ids. In the order of probabilities, two nearly equal tokens
        would swap with the last bit of either, which depends on the batch, and change draws after them. Only as many
        tokens are sorted as are needed to determine which ones are left.
        """
        scaled = log_probs / max(self.temperature, LEAST_TEMPERATURE)
        draws = torch.tensor([self.uniform(stream, step) for stream in streams], dtype=torch.float64)[:, None]
        draws = draws.to(scaled.device)
        if not self.top_k and self.top_p >= 1.0:
            return inverted((scaled - scaled.amax(dim=-1, keepdim=True)).double().exp(), draws).squeeze(1)
        most = min(self.top_k or scaled.shape[1], scaled.shape[1])
        size = most if self.top_k else min(FIRST_SORTED, most)
        while (left := self._candidates(scaled, size, most)) is None:
            size = min(16 * size, most)
        masses, tokens = left
        tokens, order = tokens.sort(dim=-1)
        return tokens.gather(1, inverted(masses.gather(1, order), draws)).squeeze(1)

    def _candidates(
        self, scaled: Float[Tensor, "R V"], size: int, most: int
    ) -> tuple[Float[Tensor, "R k"], Int[Tensor, "R k"]] | None:
        """(masses, tokens) that may be drawn; None if the `size` likeliest do not reach top-p."""
        values, tokens = stable_top_k(scaled, size)
        masses = (values - values[:, :1]).double().exp()
        if self.top_p < 1.0:
            cumulative = masses.cumsum(dim=-1)
            whole = (scaled - values[:, :1]).double().exp().sum(-1, keepdim=True) if size < most else cumulative[:, -1:]
            reach = self.top_p * whole
            if size < most and not bool((cumulative[:, -1:] > reach).all()):
                return None
            masses = masses * ((cumulative - masses) < reach)  # the token that crosses top_p is included
        return masses, tokens


def inverted(masses: Float[Tensor, "R N"], draws: Float[Tensor, "R 1"]) -> Int[Tensor, "R 1"]:
    """Index at which the cumulative sum exceeds each draw in [0, 1); never that of a mass of 0."""
    cumulative = masses.cumsum(dim=-1)
    total = cumulative[:, -1:]
    reach = torch.minimum(draws * total, torch.nextafter(total, torch.zeros_like(total)))  # the product may round up
    return torch.searchsorted(cumulative, reach, right=True).clamp(max=masses.shape[1] - 1)


def top_k(scores: Float[Tensor, "R V"], k: int) -> tuple[Float[Tensor, "R k"], Int[Tensor, "R k"]]:
    """Values and indices of the k largest of each row, largest first. Equal to `torch.topk` up to ties."""
    return top_k_of_sums(scores[:, None], scores.new_zeros(len(scores), 1), k)


def top_k_of_sums(
    values: Float[Tensor, "S W V"], added: Float[Tensor, "S W"], k: int
) -> tuple[Float[Tensor, "S k"], Int[Tensor, "S k"]]:
    """The k largest of `values + added[..., None]` for each source, largest first, and their indices in 0 … W V - 1.

    Equal to `torch.topk` up to ties, which over a vocabulary costs as much on CPU as the output projection of a small
    model. Two stages do less work: the k largest sums lie in the k groups with the largest maxima, so only those groups
    are sorted.
    """
    num_sources, width, size = values.shape
    num_groups = size // GROUP_SIZE
    if values.device.type != "cpu" or width * num_groups < 4 * k:
        return (values + added[..., None]).flatten(1).topk(k, dim=-1)
    whole = num_groups * GROUP_SIZE
    maxima = values[..., :whole].view(num_sources, width, num_groups, GROUP_SIZE).amax(dim=-1) + added[..., None]
    groups = maxima.flatten(1).topk(k, dim=-1).indices[..., None]  # [S, k, 1]
    beams = groups // num_groups
    index = (groups * GROUP_SIZE + beams * (size - whole) + torch.arange(GROUP_SIZE)).flatten(1)
    beams = beams.expand(-1, -1, GROUP_SIZE).flatten(1)
    if whole < size:
        rest = torch.arange(width)[:, None] * size + torch.arange(whole, size)
        index = torch.cat((index, rest.flatten().expand(num_sources, -1)), dim=1)
        beams = torch.cat((beams, (rest // size).flatten().expand(num_sources, -1)), dim=1)
    sums = values.flatten(1).gather(1, index) + added.gather(1, beams)
    largest, chosen = sums.topk(k, dim=-1)
    return largest, index.gather(1, chosen)


def stable_top_k(scores: Float[Tensor, "R V"], k: int) -> tuple[Float[Tensor, "R k"], Int[Tensor, "R k"]]:
    """As `top_k`; of equal values the one with the smaller index comes first."""
    if 2 * k < scores.shape[1] and scores.shape[1] > SMALL_ROW:
        values, tokens = top_k(scores, k)
        if int((scores >= values[:, -1:]).sum()) == values.numel():  # the last of them has no equal outside
            tokens, order = tokens.sort(dim=-1)
            values, order = values.gather(1, order).sort(dim=-1, descending=True, stable=True)
            return values, tokens.gather(1, order)
    values, tokens = scores.sort(dim=-1, descending=True, stable=True)
    return values[:, :k], tokens[:, :k]


class Sampler:
    """Independent rows that are continued one token at a time and leave when they end."""

    watch: Callable[..., None] | None = None

    def __init__(
        self, rows_per_source: int, limits: Sequence[int], penalty: LengthPenalty, pick: Pick, streams: Sequence[int],
        coverage: Coverage | None = None, stops: StopTexts | None = None, token_after_eos: int | None = None,
    ) -> None:  # fmt: skip
        """`limits`: maximum number of tokens of each source's output, end of sentence included.

        `stops`: texts that end a row. `token_after_eos`: replaces an end of sentence as the next input, so that the
        text continues after it.
        """
        self.num_sources = len(limits)
        self.rows_per_source = rows_per_source
        self.pick = pick
        self.penalty = penalty
        self.coverage = coverage
        self.stops = stops
        self.token_after_eos = token_after_eos
        num_rows = self.num_sources * rows_per_source
        self._limits = [limits[row // rows_per_source] for row in range(num_rows)]
        self._streams = [mix_int(streams[row // rows_per_source]) + row % rows_per_source for row in range(num_rows)]
        self._tokens: list[list[int]] = [[] for _ in range(num_rows)]
        self._log_probs: list[list[float]] = [[] for _ in range(num_rows)]
        self._finished = [False] * num_rows
        self._coverage_penalties = [0.0] * num_rows  # of the rows that have left
        self._active = list(range(num_rows))
        self._num_tokens = 0

    def force_prefix(self, tokens: Int[Tensor, "S P"], log_probs: Float[Tensor, "S P"]) -> None:
        width = self.rows_per_source
        self._tokens = [list(ids) for ids in tokens.tolist() for _ in range(width)]
        self._log_probs = [list(steps) for steps in log_probs.tolist() for _ in range(width)]
        self._num_tokens = tokens.shape[1]

    @property
    def num_tokens(self) -> int:
        return self._num_tokens

    def row_sources(self) -> list[int]:
        return [row // self.rows_per_source for row in self._active]

    def row_tokens(self) -> Int[Tensor, "R T"]:
        rows = [self._tokens[row] for row in self._active]
        return torch.tensor(rows, dtype=torch.long).reshape(len(rows), self._num_tokens)

    def choose(self, log_probs: Float[Tensor, "R V"]) -> tuple[Int[Tensor, " N"], Int[Tensor, " N"]]:
        """Add a token to every active row; the last one allowed can only be the end of sentence."""
        if self.coverage is not None:
            self.coverage.observe()
        tokens = self.pick(log_probs, [self._streams[row] for row in self._active], self._num_tokens)
        steps = log_probs.gather(1, tokens[:, None]).squeeze(1).tolist()
        self._num_tokens += 1
        kept: list[int] = []
        for index, (row, token) in enumerate(zip(self._active, tokens.tolist(), strict=True)):
            if token == EOS_ID and self.token_after_eos is None and steps[index] > _NEVER:
                self._log_probs[row].append(steps[index])
                self._finished[row] = True
            elif self._num_tokens < self._limits[row] and steps[index] > _NEVER:
                self._log_probs[row].append(steps[index])
                self._tokens[row].append(token)
                self._finished[row] = self.stops is not None and self.stops.reached(self._tokens[row])
                if not self._finished[row]:
                    kept.append(index)
                    continue
            if self.coverage is not None:
                self._coverage_penalties[row] = self.coverage.penalty(index, self._finished[row])
        self._active = [self._active[index] for index in kept]
        kept_rows = torch.tensor(kept, dtype=torch.long, device=log_probs.device)
        if self.coverage is not None:
            self.coverage.select(kept_rows)
        chosen = tokens[kept_rows]
        if self.token_after_eos is not None:
            chosen = chosen.masked_fill(chosen == EOS_ID, self.token_after_eos)
        return kept_rows, chosen

    def cancel(self, source: int) -> None:
        begin = source * self.rows_per_source
        self._limits[begin : begin + self.rows_per_source] = [0] * self.rows_per_source

    def hypotheses(self, source: int) -> list[Hypothesis]:
        begin = source * self.rows_per_source
        return by_score([self._hypothesis(row) for row in range(begin, begin + self.rows_per_source)])

    def _hypothesis(self, row: int) -> Hypothesis:
        log_probs = self._log_probs[row]
        total = math.fsum(log_probs)
        score = total / self.penalty.divisor(len(log_probs)) + self._coverage_penalties[row]
        return Hypothesis(tuple(self._tokens[row]), total, score, tuple(log_probs), self._finished[row])
