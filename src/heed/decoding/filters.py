"""Which tokens may come next? Small rules over log-probabilities, each a few lines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import torch
from jaxtyping import Float
from torch import Tensor

from heed.decoding.ban import WithoutBanned
from heed.decoding.rows import Rows
from heed.decoding.terms import Terms

_NEVER = float("-inf")


class Filter(Protocol):
    """Changes log-probabilities before a token is chosen; minus infinity forbids a token."""

    def __call__(self, log_probs: Float[Tensor, "R V"], rows: Rows) -> Float[Tensor, "R V"]:
        """The log-probabilities after the rule. May work in place."""
        ...


class Forbid:
    """Some tokens are never generated: padding, begin of sentence, unknown, tags."""

    def __init__(self, ids: Sequence[int]) -> None:
        self.ids = torch.tensor(sorted(ids), dtype=torch.long)

    def __call__(self, log_probs: Float[Tensor, "R V"], rows: Rows) -> Float[Tensor, "R V"]:
        """Minus infinity for each of them."""
        return log_probs.index_fill_(1, self.ids.to(log_probs.device), _NEVER)


class MinTokens:
    """No end of sentence before so many tokens, which each source says for itself."""

    def __init__(self, minima: Sequence[int], eos_id: int) -> None:
        self.minima = minima
        self.eos_id = eos_id
        self._largest = max(minima, default=0)

    def __call__(self, log_probs: Float[Tensor, "R V"], rows: Rows) -> Float[Tensor, "R V"]:
        """Minus infinity for the end of sentence of the rows that are too short."""
        if rows.num_tokens < self._largest:
            short = [rows.num_tokens < self.minima[source] for source in rows.row_sources()]
            log_probs[torch.tensor(short, device=log_probs.device), self.eos_id] = _NEVER
        return log_probs


class NoRepeat:
    """No run of n tokens twice in one output (Paulus et al. 2018, section 2.5, with n = 3), but in demanded terms."""

    def __init__(self, size: int, terms: Sequence[Terms] = ()) -> None:
        """`terms`: those of each source, for all or none. What leads to one that is missing may repeat a run."""
        self.size = size
        self.terms = terms

    def __call__(self, log_probs: Float[Tensor, "R V"], rows: Rows) -> Float[Tensor, "R V"]:
        """Minus infinity for every token that would end a run that is there already."""
        tokens = rows.row_tokens()
        if tokens.shape[1] < self.size:
            return log_probs
        runs = tokens.unfold(1, self.size, 1)  # [R, N, n]
        last = tokens[:, tokens.shape[1] - self.size + 1 :]  # [R, n - 1]
        row, place = (runs[..., :-1] == last[:, None]).all(dim=-1).nonzero(as_tuple=True)
        token = runs[row, place, -1]
        if self.terms and len(row):
            wanted = self._wanted(rows, set(row.tolist()))
            may = [number in wanted.get(of, ()) for of, number in zip(row.tolist(), token.tolist(), strict=True)]
            kept = ~torch.tensor(may, device=row.device)
            row, token = row[kept], token[kept]
        log_probs[row, token] = _NEVER
        return log_probs

    def _wanted(self, rows: Rows, of: set[int]) -> dict[int, list[int]]:
        """The tokens that lead each of these rows to its terms."""
        sources, tokens = rows.row_sources(), rows.row_tokens().tolist()
        terms = {row: self.terms[sources[row]] for row in of}
        return {row: of_row.next_tokens(*of_row.read(tokens[row])) for row, of_row in terms.items()}


FILTERS = {"forbid": Forbid, "min_tokens": MinTokens, "no_repeat": NoRepeat, "ban": WithoutBanned}
