"""How does beam search keep the W most likely beginnings of each sentence?

Each step ranks every continuation of the W alive hypotheses and keeps the best 2 W, so that W can go on even
if W of them end. A continuation that ends among the first W is finished. A sentence is done when W hypotheses have
finished, when no alive one can still beat the n-best finished (log-probabilities only fall, and the length
penalty of the longest allowed output bounds what they may gain), or at the longest allowed length.
With W as wide as the space of outputs this is exhaustive search.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor

from heed.decoding.hypothesis import Hypothesis, LengthPenalty
from heed.decoding.topk import top_k

_NEVER = float("-inf")


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
        self._finished: list[list[Hypothesis]] = [[] for _ in range(num_sources)]
        self._cut: list[list[Hypothesis]] = [[] for _ in range(num_sources)]
        self._sources = list(range(num_sources))
        self._limits = torch.tensor(limits)
        self._bounds = penalty.divisors(self._limits.float())
        self._scores = torch.full((num_sources, beam_size), _NEVER, device=device)
        self._scores[:, 0] = 0.0
        self._tokens = torch.zeros((num_sources, beam_size, 0), dtype=torch.long, device=device)
        self._log_probs = torch.zeros((num_sources, beam_size, 0), device=device)
        self._length = 0

    def choose(self, log_probs: Float[Tensor, "R V"]) -> tuple[Int[Tensor, " N"], Int[Tensor, " N"]]:
        """Extend every beam by one token; finished hypotheses are put aside, finished sources leave."""
        num_sources, width = self._scores.shape
        self._length += 1
        per_row = min(2 * width, log_probs.shape[1])
        values, tokens = top_k(log_probs, per_row)
        totals = (self._scores.reshape(-1, 1) + values).reshape(num_sources, -1)
        scores, chosen = totals.topk(min(2 * width, totals.shape[1]), dim=-1)  # [S, 2W]
        beams = chosen // per_row
        tokens = tokens.reshape(num_sources, -1).gather(1, chosen)
        steps = values.reshape(num_sources, -1).gather(1, chosen)
        ends = (tokens == self.eos_id) & (scores > _NEVER)
        self._put_aside(ends, beams, scores, steps)
        self._keep_alive(ends, beams, tokens, scores, steps)
        return self._leave(beams_of=self._parents)

    def _put_aside(self, ends: Tensor, beams: Tensor, scores: Tensor, steps: Tensor) -> None:
        width = self.rows_per_source
        for row, rank in ends[:, :width].nonzero().tolist():
            beam = int(beams[row, rank])
            finished = self._hypothesis(row, beam, float(scores[row, rank]), float(steps[row, rank]), True)
            self._finished[self._sources[row]].append(finished)

    def _hypothesis(self, row: int, beam: int, total: float, last: float | None, finished: bool) -> Hypothesis:
        ids = tuple(self._tokens[row, beam].tolist())
        token_log_probs = tuple(self._log_probs[row, beam].tolist())
        if last is not None:
            token_log_probs = (*token_log_probs, last)
        score = total / self.penalty.divisor(self._length)
        return Hypothesis(ids, total, score, token_log_probs, finished)

    def _keep_alive(self, ends: Tensor, beams: Tensor, tokens: Tensor, scores: Tensor, steps: Tensor) -> None:
        """The first W continuations that do not end; where there are fewer, dead beams fill up."""
        width = self.rows_per_source
        if scores.shape[1] < 2 * width:
            missing = 2 * width - scores.shape[1]
            scores = torch.nn.functional.pad(scores, (0, missing), value=_NEVER)
            beams, tokens = (torch.nn.functional.pad(x, (0, missing)) for x in (beams, tokens))
            steps = torch.nn.functional.pad(steps, (0, missing))
            ends = torch.nn.functional.pad(ends, (0, missing), value=True)
        order = torch.sort(ends.to(torch.uint8), dim=-1, stable=True).indices[:, :width]
        self._scores = scores.masked_fill(ends, _NEVER).gather(1, order)
        self._parents = beams.gather(1, order)
        history = self._parents[..., None].expand(-1, -1, self._length - 1)
        last_tokens, last_steps = tokens.gather(1, order), steps.gather(1, order)
        self._tokens = torch.cat((self._tokens.gather(1, history), last_tokens[..., None]), dim=-1)
        self._log_probs = torch.cat((self._log_probs.gather(1, history), last_steps[..., None]), dim=-1)

    def _leave(self, beams_of: Tensor) -> tuple[Tensor, Tensor]:
        """Rows and tokens of the sources that are not done."""
        width = self.rows_per_source
        best = self._scores[:, 0].tolist()
        going: list[int] = []
        for row, source in enumerate(self._sources):
            if self._length >= int(self._limits[row]):
                self._cut[source] = self._alive(row)
            elif not self._is_done(source, best[row], float(self._bounds[row])):
                going.append(row)
        device = self._scores.device
        kept = torch.tensor(going, dtype=torch.long, device=device)
        rows = (kept[:, None] * width + beams_of[kept]).reshape(-1)
        if len(going) < len(self._sources):
            self._sources = [self._sources[row] for row in going]
            on_cpu = kept.cpu()
            self._limits, self._bounds = self._limits[on_cpu], self._bounds[on_cpu]
            self._scores, self._tokens, self._log_probs = (
                x[kept] for x in (self._scores, self._tokens, self._log_probs)
            )
        return rows, self._tokens[:, :, -1].reshape(-1)

    def _alive(self, row: int) -> list[Hypothesis]:
        totals = self._scores[row].tolist()
        alive = [(beam, total) for beam, total in enumerate(totals) if total > _NEVER]
        return [self._hypothesis(row, beam, total, None, False) for beam, total in alive]

    def _is_done(self, source: int, best_alive: float, bound: float) -> bool:
        finished = self._finished[source]
        if best_alive == _NEVER or len(finished) >= self.rows_per_source:
            return True
        if len(finished) < self.nbest:
            return False
        worst_kept = sorted((h.score for h in finished), reverse=True)[self.nbest - 1]
        return worst_kept >= best_alive / bound

    def hypotheses(self) -> list[list[Hypothesis]]:
        """For each source its best finished hypotheses; those cut off only where too few finished."""
        out: list[list[Hypothesis]] = []
        for finished, cut in zip(self._finished, self._cut, strict=True):
            ranked = sorted(finished, key=lambda h: -h.score)
            ranked += sorted(cut, key=lambda h: -h.score)[: max(0, self.nbest - len(ranked))]
            out.append(ranked[: self.nbest])
        return out
