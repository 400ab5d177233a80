"""Diverse beam search (Vijayakumar et al. 2018), for n-best lists of different outputs.

The beam is divided into as many groups as there are outputs to return. In each step the groups choose one after the
other, and a token, end of sentence included, costs λ for each time an earlier group of the same source has chosen it in
this step (section 3, Hamming diversity). The cost affects what a group keeps and is not part of any score. The list
holds the best output of each group, and no two groups return the same output. Unlike sampling without replacement (Kool
et al. 2019) it gives the same list every time.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor

from heed.decoding.beam import NEVER, BeamSearch, Continuations, best_continuations
from heed.decoding.hypothesis import Hypothesis
from heed.decoding.ranking import Coverage, LengthPenalty, by_score
from heed.text.vocabulary import EOS_ID


class DiverseBeamSearch(BeamSearch):
    """`nbest` beams for each source, which avoid one another's tokens. The base class sees each group as a source."""

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
        """Start all groups of each source with these tokens."""
        super().force_prefix(*(x.repeat_interleave(self.num_groups, dim=0) for x in (tokens, log_probs)))

    def row_sources(self) -> list[int]:
        """The source number of each row, rather than the number of its group."""
        return [group // self.num_groups for group in super().row_sources()]

    def cancel(self, source: int) -> None:
        """Drop all groups of a source."""
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
            allowed = self._without_known_outputs(members, by_group[members])
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

    def _without_known_outputs(self, members: list[int], log_probs: Float[Tensor, "G W V"]) -> Float[Tensor, "G W V"]:
        """Forbid the end of an output that another group of the source has already given."""
        known = [
            [tuple(ids) in self._ended[self._sources[row] // self.num_groups] for ids in beams]
            for row, beams in zip(members, self._beams.tokens[members].tolist(), strict=True)
        ]
        log_probs[..., EOS_ID].masked_fill_(torch.tensor(known, device=log_probs.device), NEVER)
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
