"""How is a word or phrase kept out of every output, however it may be cut into pieces?

A token is forbidden when it would make certain that a banned phrase stands in the text: so "cat" keeps "cats" alive
until it is known that the word ends. A phrase in lower case is banned in every case, one with capitals as it is.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from heed.decoding.phrases import Phrases
from heed.decoding.rows import Rows


class Ban:
    """Phrases that never stand in an output."""

    def __init__(self, phrases: Sequence[str], spelled: Sequence[bytes], eos_id: int) -> None:
        """`spelled`: the bytes that each token adds to a text."""
        self._phrases = Phrases(phrases, spelled, any_case=True)
        self._num_tokens = len(spelled)
        self._eos_id = eos_id
        self._forbidden: dict[int, Tensor] = {}

    def __call__(self, log_probs: Float[Tensor, "R V"], rows: Rows) -> Float[Tensor, "R V"]:
        """Minus infinity for each token that would complete a phrase."""
        states = [self._phrases.read(tokens)[0] for tokens in rows.row_tokens().tolist()]
        forbidden = torch.stack([self._after(state) for state in states])
        return log_probs.masked_fill_(forbidden.to(log_probs.device), float("-inf"))

    def _after(self, number: int) -> Bool[Tensor, " V"]:
        """Which tokens may not follow a state; found once, by trying them all."""
        if number not in self._forbidden:
            state = self._phrases.states[number]
            found = [bool(self._phrases.peek(state, token)[1]) for token in range(self._num_tokens)]
            found[self._eos_id] = bool(self._phrases.pending(state))
            self._forbidden[number] = torch.tensor(found)
        return self._forbidden[number]
