"""Constrained beam search: outputs that contain required terms.

Hokamp & Liu (2017) search a grid with a beam for each number of completed constraint tokens; its cost grows with that
number. Post & Vilar (2018) instead divide one beam of fixed size among those numbers ("banks") anew in each step, as is
done here: the candidates are the best continuations and those that start or continue a missing term; slots of the beam
are dealt to the banks in turn, from the most advanced down, so a bank without candidates leaves its slot to the others.
An output may end only when it contains all its terms. Masking the output would place a term wherever it is cheapest at
the moment; adding to scores would guarantee nothing.

Differs from the paper: progress is read from the text rather than its tokens (`RequiredTerms`), so a term that the
model writes by itself counts, however it is tokenized, and an inflected word that starts like a term returns to its
bank by itself; and the beam is widened by one slot per step, so that every bank has one.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from heed.core.errors import DataError
from heed.decoding.beam import NEVER, BeamSearch, Continuations
from heed.decoding.cross_attention import Coverage
from heed.decoding.phrases import OPEN_KINDS, Phrases, State, first_character, is_boundary
from heed.decoding.ranking import LengthPenalty
from heed.decoding.sampling import top_k
from heed.text.language.scripts import is_unseparated
from heed.text.tokenizers import Tokenizer
from heed.text.vocabulary import EOS_ID

Progress = tuple[int, frozenset[int]]
"""A state of `Phrases`, and the numbers of the terms that the text certainly contains."""


class _TokenizedTerm:
    """The tokens of one term: which one follows after how many of its bytes; -1 is before the space in front of it."""

    def __init__(self, term: str, tokenizer: Tokenizer) -> None:
        self.text = term
        self.bytes = term.encode()
        self.next_at: dict[int, int] = {}
        self._ends = self._add(term, tokenizer)
        if not self._ends:
            raise DataError(
                f"this run's vocabulary cannot write the glossary term {term!r}. Remove it from the glossary, or train "
                "with a tokenizer that can write any text (bpe)."
            )
        without_space = len(self._ends)
        self._ends = self._add(" " + term, tokenizer) or self._ends
        self.num_pieces = max(without_space, len(self._ends))
        self.num_steps = len(self._ends) + 1  # the last step is the end of its word

    def _add(self, text: str, tokenizer: Tokenizer) -> list[int]:
        """Record the tokens of a text, the term or a space and the term; returns where each ends, [] if impossible."""
        [ids] = tokenizer.encode([text])
        if not ids or tokenizer.vocabulary.unk_id in ids:
            return []
        pieces = tokenizer.bytes_of(ids)
        offset = -1 if b"".join(pieces).startswith(b" ") else 0
        ends = []
        for id, piece in zip(ids, pieces, strict=True):
            self.next_at[offset] = id
            offset += len(piece)
            ends.append(offset)
        return ends

    def steps_at(self, offset: int) -> int:
        """Number of complete steps after `offset` bytes."""
        return sum(end <= offset for end in self._ends)

    def offset_in(self, state: State) -> int:
        """Number of bytes of the term at the end of the text; -1 where a space must come before the term."""
        text = state.text
        for start in range(len(text)):
            written = text[start:].encode() + state.rest
            if self.bytes.startswith(written) and is_boundary(text[start - 1 : start] if start else "", text[start]):
                return len(written)
        if state.rest:
            return len(state.rest) if self.bytes.startswith(state.rest) else -1
        if state.last in ("", " ") or state.last.isspace() or is_unseparated(self.text[0]):
            return 0
        return -1


class RequiredTerms:
    """Tracks the terms of one source through the tokens of a hypothesis."""

    def __init__(self, terms: Sequence[str], tokenizer: Tokenizer, token_bytes: Sequence[bytes]) -> None:
        """`token_bytes`: what each token adds to a text. Raises DataError for a term that cannot be written."""
        self.texts = tuple(terms)
        self._phrases = Phrases(terms, token_bytes)
        self._tokenizer = tokenizer
        self._token_bytes = token_bytes
        self._terms = [_TokenizedTerm(term, tokenizer) for term in terms]
        self.num_steps = sum(term.num_steps for term in self._terms)
        self.num_pieces = sum(term.num_pieces for term in self._terms)
        self._steps_after: dict[tuple[int, frozenset[int], int], int] = {}

    def read(self, tokens: Sequence[int]) -> Progress:
        """The progress of a hypothesis."""
        return self._phrases.read(tokens)

    def may_end(self, state: int, certain: frozenset[int]) -> bool:
        """Whether a text that ends here contains all terms."""
        return len(certain | self._phrases.pending(self._phrases.states[state])) == len(self._terms)

    def steps_after(self, state: int, certain: frozenset[int], token: int) -> int:
        """Number of complete steps towards the terms after one more token."""
        key = (state, certain, token)
        if key not in self._steps_after:
            number, more = self._phrases.step(state, token)
            self._steps_after[key] = self._steps(self._phrases.states[number], certain | more)
        return self._steps_after[key]

    def steps(self, tokens: Sequence[int]) -> int:
        """Number of complete steps in a text."""
        state, certain = self.read(tokens)
        return self._steps(self._phrases.states[state], certain)

    def _steps(self, state: State, certain: frozenset[int]) -> int:
        """The steps of the terms that are certain, and of the most advanced of the others."""
        complete = sum(self._terms[number].num_steps for number in certain)
        return complete + max((term.steps_at(term.offset_in(state)) for term in self._missing(certain)), default=0)

    def next_tokens(self, state: int, certain: frozenset[int]) -> list[int]:
        """For each missing term the token that starts or continues it."""
        tokens = [self._next_token(self._phrases.states[state], term) for term in self._missing(certain)]
        return [token for token in dict.fromkeys(tokens) if token is not None]

    def is_pending(self, state: int, certain: frozenset[int]) -> bool:
        """Whether a term is written in full and lacks only the end of its word."""
        return bool(self._phrases.pending(self._phrases.states[state]) - certain)

    def _missing(self, certain: frozenset[int]) -> list[_TokenizedTerm]:
        return [term for number, term in enumerate(self._terms) if number not in certain]

    def _next_token(self, state: State, term: _TokenizedTerm) -> int | None:
        offset = max(term.offset_in(state), min(term.next_at))
        if offset == len(term.bytes):
            return None
        if offset not in term.next_at:  # the model has started the term with other tokens
            term.next_at[offset] = self._first_token(term.bytes[offset:])
        return term.next_at[offset]

    def _first_token(self, rest: bytes) -> int:
        try:
            return self._tokenizer.encode([rest.decode()])[0][0]
        except UnicodeDecodeError:  # inside a character: then there is a token for each byte
            return list(self._token_bytes).index(rest[:1])


def ends_word(token_bytes: Sequence[bytes]) -> list[bool]:
    """Mask of the tokens that end any word before them: they start with a space or a punctuation mark."""
    firsts = map(first_character, token_bytes)
    return [bool(first) and all(is_boundary(last, first) for last in OPEN_KINDS) for first in firsts]


class ConstrainedBeamSearch(BeamSearch):
    """Beam search divided among banks: how many steps towards the required terms are complete."""

    def __init__(
        self, beam_size: int, limits: Sequence[int], penalty: LengthPenalty, terms: Sequence[RequiredTerms],
        ends_word: Bool[Tensor, " V"], nbest: int = 1, device: torch.device | None = None,
        coverage: Coverage | None = None,
    ) -> None:  # fmt: skip
        """`terms`: those of each source. `ends_word`: tokens that, after a word, show that it has ended."""
        super().__init__(beam_size, limits, penalty, nbest, device, coverage)
        self._terms = terms
        self._within_word = ~ends_word
        self._num_banks = 1 + max(source_terms.num_steps for source_terms in terms)
        self._banks = torch.zeros(0, 0, dtype=torch.long)  # of the latest continuations

    def _continuations(self, log_probs: Float[Tensor, "R V"]) -> Continuations:
        """The best W + 1 of each beam, and those that start a term, continue one, or end its word."""
        terms = [self._terms[source] for source in self.row_sources()]
        progress = [row_terms.read(tokens) for row_terms, tokens in zip(terms, self.row_tokens().tolist(), strict=True)]
        may_end = [row_terms.may_end(*where) for row_terms, where in zip(terms, progress, strict=True)]
        log_probs[~torch.tensor(may_end, device=log_probs.device), EOS_ID] = NEVER
        _, best = top_k(log_probs, min(self.width + 1, log_probs.shape[1]))
        tokens, is_new = self._with_proposals(best, terms, progress, may_end, log_probs)
        steps = log_probs.gather(1, tokens).masked_fill(~is_new, NEVER)
        banks = [
            [row_terms.num_steps if token == EOS_ID else row_terms.steps_after(*where, token) for token in row]
            for row_terms, where, row in zip(terms, progress, tokens.tolist(), strict=True)
        ]
        return self._sorted(tokens, steps, torch.tensor(banks, device=tokens.device))

    def _with_proposals(
        self, best: Int[Tensor, "R K"], terms: Sequence[RequiredTerms], progress: Sequence[Progress],
        may_end: Sequence[bool], log_probs: Float[Tensor, "R V"],
    ) -> tuple[Int[Tensor, "R N"], Bool[Tensor, "R N"]]:  # fmt: skip
        """The best tokens and the proposed ones, and whether each is the first of its kind in the row."""
        proposed = []
        for row, (row_terms, where, end) in enumerate(zip(terms, progress, may_end, strict=True)):
            candidates = row_terms.next_tokens(*where) + [EOS_ID] * end
            if row_terms.is_pending(*where):
                candidates.append(int(log_probs[row].masked_fill(self._within_word, NEVER).argmax()))
            proposed.append(candidates)
        longest = max(map(len, proposed))
        # Padded with a token that is already present.
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

    def _accepted(self, continuations: Continuations, ends: Bool[Tensor, "S N"]) -> Bool[Tensor, "S M"]:
        """The ends among the first W of their bank."""
        return ends & (self._rank_in_bank(continuations.scores > NEVER) < self.width)

    def _kept(self, continuations: Continuations, ends: Bool[Tensor, "S N"]) -> Int[Tensor, "S W"]:
        """The best of each bank, then the second of each, and so on, starting with the most advanced bank each time."""
        is_open = (continuations.scores > NEVER) & ~ends
        order = self._rank_in_bank(is_open) * self._num_banks + (self._num_banks - 1 - self._banks)
        last = self._num_banks * (order.shape[1] + 1)
        order = order.masked_fill(~is_open, last).masked_fill(ends, last + 1)
        chosen = order.sort(dim=-1, stable=True).indices[:, : self.width]
        return chosen.sort(dim=-1).values

    def _best_unfinished(self, row: int) -> list[int]:
        """The active beams of a source that have completed most of its terms."""
        terms, active = self._terms[self._sources[row]], super()._best_unfinished(row)
        steps = {beam: terms.steps(self._beams.tokens[row, beam].tolist()) for beam in active}
        return [beam for beam in active if steps[beam] == max(steps.values())]

    def _rank_in_bank(self, counted: Bool[Tensor, "S N"]) -> Int[Tensor, "S N"]:
        """Number of counted continuations of the same bank before each one."""
        members = torch.nn.functional.one_hot(self._banks, self._num_banks) * counted[..., None]
        return (members.cumsum(dim=1) - members).gather(2, self._banks[..., None]).squeeze(2)
