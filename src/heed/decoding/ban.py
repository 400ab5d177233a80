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
from heed.decoding.phrases import Phrases, State, is_word_character, kind, lowered
from heed.decoding.rows import Rows


class Ban:
    """Phrases that never stand in an output."""

    def __init__(self, phrases: Sequence[str], spelled: Sequence[bytes], eos_id: int) -> None:
        """`spelled`: the bytes that each token adds to a text."""
        self._num_tokens = len(spelled)
        self._phrases = Phrases(phrases, spelled, any_case=True)
        self._written = Glossary({phrase: phrase for phrase in phrases})
        self._eos_id = eos_id
        self._forbidden: dict[tuple[int, bool], Tensor] = {}
        self._anywhere: dict[tuple[str, bool], Tensor] = {}
        self._by_first: dict[str, list[int]] = {}
        """Tokens by the first character that they add, in lower case; by none: those that add no whole one."""
        for token, text in enumerate(spelled):
            self._by_first.setdefault(lowered(_first_character(text)), []).append(token)
        signs = [char for char in self._by_first if char and not is_word_character(char)]
        self._ends_word = torch.tensor([token for char in signs for token in self._by_first[char]], dtype=torch.long)
        """Tokens that begin with a space or a sign, behind which a word has ended."""

    def forbidden(self, tokens: Sequence[int], is_last: bool) -> Bool[Tensor, " V"]:
        """Which tokens may not follow these. `is_last`: nothing follows the next one, not even an end of sentence."""
        return self._after(self._phrases.read(tokens)[0], is_last)

    def found_in(self, text: str) -> tuple[str, ...]:
        """The phrases that stand in a text."""
        return self._written.terms_for(text)

    def _after(self, number: int, is_last: bool) -> Bool[Tensor, " V"]:
        """Which tokens may not follow a state; found once.

        A phrase that begins in the token is the same behind all texts that end alike. One that has begun before can
        only be made certain by a token that goes on with it, or that ends the word that it ends with: so only these
        are tried, and all where a character has begun whose bytes are not all there.
        """
        if (number, is_last) not in self._forbidden:
            state = self._phrases.states[number]
            ends_here = bool(self._phrases.pending(state))
            if state.rest:
                found = self._tried(state, range(self._num_tokens), is_last)
            else:
                found = self._behind(kind(state.last) if state.last else "", is_last).clone()
                if ends_here:
                    found[self._ends_word] = True
                going_on = {*self._phrases.goes_on(state), ""} if state.text else set[str]()
                some = [token for char in going_on for token in self._by_first.get(char, ())]
                found[some] = self._tried(state, some, is_last)
            found[self._eos_id] = ends_here
            self._forbidden[number, is_last] = found
        return self._forbidden[number, is_last]

    def _behind(self, last: str, is_last: bool) -> Tensor:
        """Which tokens may not follow a text in which no phrase has begun and whose last character is of a kind."""
        if (last, is_last) not in self._anywhere:
            self._anywhere[last, is_last] = self._tried(State("", last), range(self._num_tokens), is_last)
        return self._anywhere[last, is_last]

    def _tried(self, state: State, tokens: Sequence[int], is_last: bool) -> Tensor:
        """Whether each token may not follow."""
        tried = [self._phrases.peek(state, token) for token in tokens]
        found = [bool(certain or (is_last and self._phrases.pending(after))) for after, certain in tried]
        return torch.tensor(found, dtype=torch.bool)


def _first_character(text: bytes) -> str:
    """The first one that these bytes add; empty where its bytes are not all there, or are of none."""
    whole = text.decode("utf-8", errors="ignore")
    return whole[:1] if text.startswith(whole[:1].encode()) else ""


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
