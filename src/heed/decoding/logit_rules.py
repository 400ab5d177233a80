"""Logit rules: which tokens may come next, and which become more or less likely.

Each rule maps the log-probabilities of the rows of one step to new ones. Minus infinity forbids a token. After a rule
that shifts values (`LogitBias`, `FrequencyPenalty`), probabilities no longer sum to one: tokens are chosen by the
shifted values, and the scores of such a search are sums of these values.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from heed.decoding.constraints import RequiredTerms
from heed.decoding.phrases import OPEN_KINDS, Phrases, State, first_character, is_boundary, kind, lowered
from heed.text.vocabulary import EOS_ID

_NEVER = float("-inf")


class Rows(Protocol):
    """The rows of one step, as rules see them; all have the same number of tokens."""

    @property
    def num_tokens(self) -> int:
        """Tokens of each row so far, including a forced prefix."""
        ...

    def row_sources(self) -> list[int]:
        """The source number of each row."""
        ...

    def row_tokens(self) -> Int[Tensor, "R T"]:
        """The tokens of each row so far, without begin of sentence."""
        ...


class LogitRule(Protocol):
    """Changes log-probabilities before a token is chosen."""

    def __call__(self, log_probs: Float[Tensor, "R V"], rows: Rows) -> Float[Tensor, "R V"]:
        """The log-probabilities after the rule. May work in place."""
        ...


class Forbidden:
    """Tokens that are never generated: padding, begin of sentence, unknown, tags."""

    def __init__(self, ids: Sequence[int]) -> None:
        self.ids = torch.tensor(sorted(ids), dtype=torch.long)

    def __call__(self, log_probs: Float[Tensor, "R V"], rows: Rows) -> Float[Tensor, "R V"]:
        return log_probs.index_fill_(1, self.ids.to(log_probs.device), _NEVER)


class MinLength:
    """No end of sentence before a minimum number of tokens, given for each source."""

    def __init__(self, minima: Sequence[int]) -> None:
        self.minima = minima
        self._largest = max(minima, default=0)

    def __call__(self, log_probs: Float[Tensor, "R V"], rows: Rows) -> Float[Tensor, "R V"]:
        if rows.num_tokens < self._largest:
            is_short = [rows.num_tokens < self.minima[source] for source in rows.row_sources()]
            log_probs[torch.tensor(is_short, device=log_probs.device), EOS_ID] = _NEVER
        return log_probs


class NoRepeatNgram:
    """No n-gram twice in one output (Paulus et al. 2018, section 2.5, with n = 3), except for required terms."""

    def __init__(self, size: int, terms: Sequence[RequiredTerms] = ()) -> None:
        """`terms`: of each source, or empty. A token that leads to a missing term may repeat an n-gram."""
        self.size = size
        self.terms = terms

    def __call__(self, log_probs: Float[Tensor, "R V"], rows: Rows) -> Float[Tensor, "R V"]:
        tokens = rows.row_tokens()
        if tokens.shape[1] < self.size:
            return log_probs
        ngrams = tokens.unfold(1, self.size, 1)  # [R, N, n]
        last = tokens[:, tokens.shape[1] - self.size + 1 :]  # [R, n - 1]
        row, index = (ngrams[..., :-1] == last[:, None]).all(dim=-1).nonzero(as_tuple=True)
        token = ngrams[row, index, -1]
        if self.terms and len(row):
            needed = self._needed(rows, set(row.tolist()))
            allowed = [id in needed[of] for of, id in zip(row.tolist(), token.tolist(), strict=True)]
            forbidden = ~torch.tensor(allowed, device=row.device)
            row, token = row[forbidden], token[forbidden]
        log_probs[row, token] = _NEVER
        return log_probs

    def _needed(self, rows: Rows, numbers: set[int]) -> dict[int, list[int]]:
        """The tokens that lead each of these rows to its terms."""
        sources, tokens = rows.row_sources(), rows.row_tokens().tolist()
        terms = {row: self.terms[sources[row]] for row in numbers}
        return {row: row_terms.next_tokens(*row_terms.read(tokens[row])) for row, row_terms in terms.items()}


class BannedPhrases:
    """Words and phrases that must not occur in an output, however they are tokenized; shared by many searches.

    A token is forbidden if it would make a banned phrase certain: banning "cat" allows "cats" as long as the word may
    continue, and the last allowed token ends every word. A phrase in lower case is banned in any case, one with
    capitals only as written.
    """

    def __init__(self, phrases: Sequence[str], token_bytes: Sequence[bytes]) -> None:
        """`token_bytes`: what each token adds to a text."""
        self._num_tokens = len(token_bytes)
        self._phrases = Phrases(phrases, token_bytes, any_case=True)
        self._forbidden: dict[tuple[int, bool], Tensor] = {}
        self._without_phrase: dict[tuple[str, bool], Tensor] = {}
        self._by_first: dict[str, list[int]] = {}  # tokens by the first whole character they add, if any
        for token, added in enumerate(token_bytes):
            self._by_first.setdefault(lowered(first_character(added)), []).append(token)
        self._ends_word = {last: self._tokens_after(last) for last in OPEN_KINDS}

    def forbidden(self, tokens: Sequence[int], is_last: bool) -> Bool[Tensor, " V"]:
        """Mask of the tokens that may not follow these. `is_last`: nothing follows the next one, not even an end.

        A phrase that starts within the next token is the same after all texts with the same last character. One that
        has started before can only become certain by a token that continues it or ends its word, so only these tokens
        are tried; all of them where the bytes of a character are incomplete.
        """
        number, _ = self._phrases.read(tokens)
        if (number, is_last) not in self._forbidden:
            state = self._phrases.states[number]
            ends_here = bool(self._phrases.pending(state))
            if state.rest:
                forbidden = self._completing(state, range(self._num_tokens), is_last)
            else:
                forbidden = self._completing_anew(kind(state.last) if state.last else "", is_last).clone()
                if ends_here:
                    forbidden[self._ends_word[kind(state.last)]] = True
                first_characters = {*self._phrases.next_characters(state), ""} if state.text else set[str]()
                some = [token for char in first_characters for token in self._by_first.get(char, ())]
                forbidden[some] = self._completing(state, some, is_last)
            forbidden[EOS_ID] = ends_here
            self._forbidden[number, is_last] = forbidden
        return self._forbidden[number, is_last]

    def _tokens_after(self, last: str) -> Tensor:
        """The tokens that show that a word with this last character has ended."""
        firsts = [char for char in self._by_first if char and is_boundary(last, char)]
        return torch.tensor([token for char in firsts for token in self._by_first[char]], dtype=torch.long)

    def _completing_anew(self, last: str, is_last: bool) -> Tensor:
        """As `_completing` for all tokens, where no phrase has started; `last` is the kind of the last character."""
        if (last, is_last) not in self._without_phrase:
            tokens = range(self._num_tokens)
            self._without_phrase[last, is_last] = self._completing(State("", last), tokens, is_last)
        return self._without_phrase[last, is_last]

    def _completing(self, state: State, tokens: Sequence[int], is_last: bool) -> Tensor:
        """Whether each token would make a phrase certain."""
        tried = [self._phrases.peek(state, token) for token in tokens]
        completes = [bool(certain or (is_last and self._phrases.pending(after))) for after, certain in tried]
        return torch.tensor(completes, dtype=torch.bool)


class BadWords:
    """No banned phrase in the outputs of one batch."""

    def __init__(self, banned: BannedPhrases, limits: Sequence[int]) -> None:
        """`limits`: maximum number of tokens of each source's output, end of sentence included."""
        self.banned = banned
        self.limits = limits

    def __call__(self, log_probs: Float[Tensor, "R V"], rows: Rows) -> Float[Tensor, "R V"]:
        is_last = [rows.num_tokens + 2 >= self.limits[source] for source in rows.row_sources()]
        forbidden = map(self.banned.forbidden, rows.row_tokens().tolist(), is_last)
        return log_probs.masked_fill_(torch.stack([*forbidden]).to(log_probs.device), _NEVER)


class LogitBias:
    """A value added to the log-probability of each given token."""

    def __init__(self, bias: Sequence[tuple[int, float]]) -> None:
        self.bias = bias

    def __call__(self, log_probs: Float[Tensor, "R V"], rows: Rows) -> Float[Tensor, "R V"]:
        ids = torch.tensor([token for token, _ in self.bias], dtype=torch.long, device=log_probs.device)
        values = torch.tensor([value for _, value in self.bias], dtype=log_probs.dtype, device=log_probs.device)
        log_probs[:, ids] += values
        return log_probs


class FrequencyPenalty:
    """log p(w) - c(w) · frequency - [c(w) > 0] · presence, where the output contains w c(w) times so far.

    As in OpenAI's API.
    """

    def __init__(self, presence: float, frequency: float) -> None:
        self.presence = presence
        self.frequency = frequency

    def __call__(self, log_probs: Float[Tensor, "R V"], rows: Rows) -> Float[Tensor, "R V"]:
        tokens = rows.row_tokens().to(log_probs.device)
        counts = torch.zeros_like(log_probs).scatter_add_(1, tokens, torch.ones_like(tokens, dtype=log_probs.dtype))
        return log_probs - counts * self.frequency - (counts > 0) * self.presence


LOGIT_RULES: dict[str, Callable[..., LogitRule]] = {
    "forbidden": Forbidden,
    "min_length": MinLength,
    "no_repeat_ngram": NoRepeatNgram,
    "bad_words": BadWords,
    "logit_bias": LogitBias,
    "frequency_penalty": FrequencyPenalty,
}
