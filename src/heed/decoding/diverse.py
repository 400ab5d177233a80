"""How does an n-best list become a list of different outputs? Diverse beam search (Vijayakumar et al. 2018).

The beam is divided into as many groups as outputs are wanted. In each step the groups choose one after the other, and
a token costs λ for each time an earlier group of the same source has chosen it in this step (section 3, Hamming
diversity), be it the end of the sentence. The cost decides what a group goes on with; it is no part of any score. The
list has the best output of each group, and no group gives what another has given. Of the two known ways, this one and
sampling without replacement (Kool et al. 2019), it is the one that gives the same list every time.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor

from heed.decoding.beam import NEVER, BeamChooser, Continuations, best_continuations, by_score
from heed.decoding.coverage import Coverage
from heed.decoding.hypothesis import Hypothesis, LengthPenalty


class DiverseBeamChooser(BeamChooser):
    """For each source `nbest` beams of its own, which shun one another's tokens. A group is a source to the beam."""

    def __init__(
        self, num_sources: int, beam_size: int, eos_id: int, penalty: LengthPenalty, limits: Sequence[int],
        nbest: int, strength: float, device: torch.device | None = None, coverage: Coverage | None = None,
    ) -> None:  # fmt: skip
        self.num_groups = nbest
        self.strength = strength
        self._ended: list[set[tuple[int, ...]]] = [set() for _ in range(num_sources)]
        of_groups = [limit for limit in limits for _ in range(nbest)]
        width = beam_size // nbest
        super().__init__(num_sources * nbest, width, eos_id, penalty, of_groups, 1, device, coverage)
        self.rows_per_source = nbest * width

    def begin_with(self, tokens: Int[Tensor, "N P"], log_probs: Float[Tensor, "N P"]) -> None:
        """All groups of a source begin alike."""
        super().begin_with(*(x.repeat_interleave(self.num_groups, dim=0) for x in (tokens, log_probs)))

    def row_sources(self) -> list[int]:
        """For each row the number of its source in the batch, which is not that of its group."""
        return [group // self.num_groups for group in super().row_sources()]

    def give_up(self, source: int) -> None:
        """All groups of the source leave."""
        for group in range(source * self.num_groups, (source + 1) * self.num_groups):
            super().give_up(group)

    def _continuations(self, log_probs: Float[Tensor, "R V"]) -> Continuations:
        """The best 2 W of each group, where the first W tokens of each earlier group of its source cost more."""
        by_group = log_probs.view(len(self._sources), self.width, -1)
        said = log_probs.new_zeros(len(self._ended), log_probs.shape[1])
        places: list[int] = []
        parts: list[Continuations] = []
        for group in range(self.num_groups):
            here = [place for place, number in enumerate(self._sources) if number % self.num_groups == group]
            if not here:
                continue
            sources = torch.tensor([self._sources[place] // self.num_groups for place in here], device=said.device)
            found = self._best_of(here, self._without_known_ends(here, by_group[here]), said[sources])
            self._note_ends(here, found)
            first = found.tokens[:, : self.width]
            counts = found.scores[:, : self.width] > NEVER
            said.index_put_((sources[:, None].expand_as(first), first), counts.to(said.dtype), accumulate=True)
            places += here
            parts.append(found)
        order = torch.tensor(places, device=said.device).argsort()
        names = ("beams", "tokens", "steps", "scores")
        return Continuations(*(torch.cat([getattr(part, name) for part in parts])[order] for name in names))

    def _best_of(self, here: list[int], log_probs: Float[Tensor, "G W V"], said: Float[Tensor, "G V"]) -> Continuations:
        penalised = log_probs - self.strength * said[:, None]
        return best_continuations(self._beams.scores[here], log_probs.flatten(0, 1), penalised.flatten(0, 1))

    def _without_known_ends(self, here: list[int], log_probs: Float[Tensor, "G W V"]) -> Float[Tensor, "G W V"]:
        """An output that another group of the source has given may not end: the group must find one of its own."""
        known = [
            [tuple(ids) in self._ended[self._sources[place] // self.num_groups] for ids in beams]
            for place, beams in zip(here, self._beams.tokens[here].tolist(), strict=True)
        ]
        log_probs[..., self.eos_id].masked_fill_(torch.tensor(known, device=log_probs.device), NEVER)
        return log_probs

    def _note_ends(self, here: list[int], found: Continuations) -> None:
        ends = (found.tokens == self.eos_id) & (found.scores > NEVER)
        for row, rank in self._accepted(found, ends).nonzero().tolist():
            place = here[row]
            ids = self._beams.tokens[place, int(found.beams[row, rank])].tolist()
            self._ended[self._sources[place] // self.num_groups].add(tuple(ids))

    def hypotheses(self) -> list[list[Hypothesis]]:
        """For each source the best of each group that no other has, best score first."""
        out: list[list[Hypothesis]] = []
        for begin in range(0, len(self._finished), self.num_groups):
            chosen: dict[tuple[int, ...], Hypothesis] = {}
            for group in range(begin, begin + self.num_groups):
                new = next((h for h in self._ranked(group) if h.ids not in chosen), None)
                if new is not None:
                    chosen[new.ids] = new
            ended = [h for h in chosen.values() if h.finished]
            out.append(by_score(ended) + by_score([h for h in chosen.values() if not h.finished]))
        return out
