"""How is a word or phrase kept out of every output, however it may be cut into pieces?

A token is forbidden when it would make certain that a banned phrase stands in the text: so "cat" keeps "cats" alive
until it is known that the word ends, as it does with the last token that is allowed. A phrase in lower case is banned
in every case, one with capitals as it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from heed.decoding.glossary import Glossary
from heed.decoding.phrases import Phrases
from heed.decoding.rows import Rows


class Ban:
    """Phrases that never stand in an output."""

    def __init__(self, phrases: Sequence[str], spelled: Sequence[bytes], eos_id: int) -> None:
        """`spelled`: the bytes that each token adds to a text."""
        self._phrases = Phrases(phrases, spelled, any_case=True)
        self._written = Glossary({phrase: phrase for phrase in phrases})
        self._num_tokens = len(spelled)
        self._eos_id = eos_id
        self._forbidden: dict[tuple[int, bool], Tensor] = {}

    def forbidden(self, tokens: Sequence[int], is_last: bool) -> Bool[Tensor, " V"]:
        """Which tokens may not follow these. `is_last`: nothing follows the next one, not even an end of sentence."""
        return self._after(self._phrases.read(tokens)[0], is_last)

    def found_in(self, text: str) -> tuple[str, ...]:
        """The phrases that stand in a text."""
        return self._written.terms_for(text)

    def _after(self, number: int, is_last: bool) -> Bool[Tensor, " V"]:
        """Which tokens may not follow a state; found once, by trying them all."""
        if (number, is_last) not in self._forbidden:
            state = self._phrases.states[number]
            tried = [self._phrases.peek(state, token) for token in range(self._num_tokens)]
            found = [bool(certain or (is_last and self._phrases.pending(after))) for after, certain in tried]
            found[self._eos_id] = bool(self._phrases.pending(state))
            self._forbidden[number, is_last] = torch.tensor(found)
        return self._forbidden[number, is_last]


@dataclass(frozen=True)
class WithoutBanned:
    """No banned phrase in the outputs of one batch."""

    ban: Ban
    limits: Sequence[int]
    """Tokens of the longest output of each source, its end of sentence among them."""

    def __call__(self, log_probs: Float[Tensor, "R V"], rows: Rows) -> Float[Tensor, "R V"]:
        """Minus infinity for each token that would complete a phrase."""
        last = [rows.num_tokens + 2 >= self.limits[source] for source in rows.row_sources()]
        found = map(self.ban.forbidden, rows.row_tokens().tolist(), last)
        return log_probs.masked_fill_(torch.stack([*found]).to(log_probs.device), float("-inf"))
