"""How is a beam led to outputs that hold given terms? Grid beam search with dynamic beam allocation.

Hokamp & Liu (2017) search a grid, with a beam for each number of constraint tokens that are done; its cost grows with
that number. Post & Vilar (2018) divide one beam of fixed size among those numbers ("banks") anew in each step, which
is what is done here: among the continuations are, beside the best, those that begin a missing term or go on with it;
the places of the beam go round the banks, from the most advanced down, so that a bank without candidates leaves its
place to the others. An output may end only when all its terms stand in it. It is chosen over masking the output
(which places a term wherever it is cheapest at once) and over adding to scores (which promises nothing).

Differs from the paper: what is done is read from the text (`terms.py`), so an inflected word that begins like a term
falls back to its bank by itself; and a beam is widened by one place for each step, so that every bank has one.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from heed.decoding.beam import NEVER, BeamChooser, Continuations
from heed.decoding.coverage import Coverage
from heed.decoding.hypothesis import LengthPenalty
from heed.decoding.terms import Terms
from heed.decoding.topk import top_k


class ConstrainedBeamChooser(BeamChooser):
    """Beams that are divided among the banks of their source: how many steps towards its terms are done."""

    def __init__(
        self, num_sources: int, beam_size: int, eos_id: int, penalty: LengthPenalty, limits: Sequence[int],
        terms: Sequence[Terms], ends_word: Bool[Tensor, " V"], nbest: int = 1, device: torch.device | None = None,
        coverage: Coverage | None = None,
    ) -> None:  # fmt: skip
        """`terms`: those of each source. `ends_word`: the tokens that show, behind a word, that it has ended."""
        super().__init__(num_sources, beam_size, eos_id, penalty, limits, nbest, device, coverage)
        self._terms = terms
        self._within_word = ~ends_word
        self._num_banks = 1 + max(of_source.num_steps for of_source in terms)
        self._banks = torch.zeros(0, 0, dtype=torch.long)  # of the continuations found last

    def _continuations(self, log_probs: Float[Tensor, "R V"]) -> Continuations:
        """The best W + 1 of each beam, and those that begin a term, go on with one, or end its word."""
        terms = [self._terms[source] for source in self.row_sources()]
        read = [of_row.read(tokens) for of_row, tokens in zip(terms, self.row_tokens().tolist(), strict=True)]
        may_end = [of_row.may_end(*where) for of_row, where in zip(terms, read, strict=True)]
        log_probs[~torch.tensor(may_end, device=log_probs.device), self.eos_id] = NEVER
        _, best = top_k(log_probs, min(self.width + 1, log_probs.shape[1]))
        tokens, is_new = self._with_proposals(best, terms, read, may_end, log_probs)
        steps = log_probs.gather(1, tokens).masked_fill(~is_new, NEVER)
        banks = [
            [of_row.num_steps if token == self.eos_id else of_row.steps_after(*where, token) for token in row]
            for of_row, where, row in zip(terms, read, tokens.tolist(), strict=True)
        ]
        return self._sorted(tokens, steps, torch.tensor(banks, device=tokens.device))

    def _with_proposals(
        self, best: Int[Tensor, "R K"], terms: Sequence[Terms], read: Sequence[tuple[int, frozenset[int]]],
        may_end: Sequence[bool], log_probs: Float[Tensor, "R V"],
    ) -> tuple[Int[Tensor, "R N"], Bool[Tensor, "R N"]]:  # fmt: skip
        """The best tokens and the proposed ones, and which of them are there for the first time."""
        proposed = []
        for row, (of_row, where, end) in enumerate(zip(terms, read, may_end, strict=True)):
            wanted = of_row.next_tokens(*where) + [self.eos_id] * end
            if of_row.is_pending(*where):
                wanted.append(int(log_probs[row].masked_fill(self._within_word, NEVER).argmax()))
            proposed.append(wanted)
        longest = max(map(len, proposed))
        # Filled up with a token that is there already.
        firsts = best[:, 0].tolist()
        filled = [row + [first] * (longest - len(row)) for row, first in zip(proposed, firsts, strict=True)]
        tokens = torch.cat((best, best.new_tensor(filled).view(len(best), longest)), dim=1)
        same = tokens[:, :, None] == tokens[:, None]
        return tokens, ~same.tril(diagonal=-1).any(dim=-1)

    def _sorted(
        self, tokens: Int[Tensor, "R N"], steps: Float[Tensor, "R N"], banks: Int[Tensor, "R N"]
    ) -> Continuations:
        """All continuations of each source, best first."""
        num_sources, per_row = len(self._sources), tokens.shape[1]
        totals = (self._beams.scores.reshape(-1, 1) + steps).reshape(num_sources, -1)
        scores, order = totals.sort(dim=-1, descending=True, stable=True)
        tokens, steps, self._banks = (x.reshape(num_sources, -1).gather(1, order) for x in (tokens, steps, banks))
        return Continuations(order // per_row, tokens, steps, scores)

    def _accepted(self, found: Continuations, ends: Bool[Tensor, "S N"]) -> Bool[Tensor, "S M"]:
        """The ends among the first W of those that have everything."""
        return ends & (self._places(found.scores > NEVER) < self.width)

    def _going_on(self, found: Continuations, ends: Bool[Tensor, "S N"]) -> Int[Tensor, "S W"]:
        """The best of each bank, then the second of each, and so on; of those at one place the most advanced first."""
        is_open = (found.scores > NEVER) & ~ends
        turn = self._places(is_open) * self._num_banks + (self._num_banks - 1 - self._banks)
        last = self._num_banks * (turn.shape[1] + 1)
        turn = turn.masked_fill(~is_open, last).masked_fill(ends, last + 1)
        chosen = turn.sort(dim=-1, stable=True).indices[:, : self.width]
        return chosen.sort(dim=-1).values

    def _worth_keeping(self, row: int) -> list[int]:
        """Of the alive beams of a source those that have come furthest with its terms."""
        terms, alive = self._terms[self._sources[row]], super()._worth_keeping(row)
        steps = {beam: terms.steps(self._beams.tokens[row, beam].tolist()) for beam in alive}
        return [beam for beam in alive if steps[beam] == max(steps.values())]

    def _places(self, counted: Bool[Tensor, "S N"]) -> Int[Tensor, "S N"]:
        """At which place each continuation stands among those of its bank that are counted."""
        of_bank = torch.nn.functional.one_hot(self._banks, self._num_banks) * counted[..., None]
        return (of_bank.cumsum(dim=1) - of_bank).gather(2, self._banks[..., None]).squeeze(2)
