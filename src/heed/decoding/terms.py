"""Which words must stand in an output, and how far has a text come with them?

The terms of one source, followed in the text and not in its pieces (`phrases.py`): a term that the model writes by
itself, in whatever pieces, counts. To lead the model to a term, the pieces in which the tokenizer cuts it are
proposed, with a space before it or without, as the text so far wants it.
"""

from __future__ import annotations

from collections.abc import Sequence

from heed.core.errors import DataError
from heed.decoding.phrases import Phrases, State, is_boundary, is_word_character
from heed.text.language.scripts import is_unseparated
from heed.text.tokenizers import Tokenizer


class _Cut:
    """The pieces of one term: which comes after so many of its bytes; -1 is before the space in front of it."""

    def __init__(self, term: str, tokenizer: Tokenizer) -> None:
        self.text = term
        self.bytes = term.encode()
        self.next_at: dict[int, int] = {}
        self._ends = self._add(term, tokenizer)
        if not self._ends:
            raise DataError(
                f"the glossary demands {term!r}, which this run's vocabulary cannot write. Take it out of the "
                "glossary, or train with a tokenizer that can write any text (bpe)."
            )
        alone = len(self._ends)
        self._ends = self._add(" " + term, tokenizer) or self._ends
        self.num_pieces = max(alone, len(self._ends))
        self.num_steps = len(self._ends) + 1  # the last step is the end of its word

    def _add(self, text: str, tokenizer: Tokenizer) -> list[int]:
        """Remember the pieces of a text, the term or a space and it; where each ends. Empty: it cannot be written."""
        [ids] = tokenizer.encode([text])
        if not ids or tokenizer.vocabulary.unk_id in ids:
            return []
        pieces = tokenizer.bytes_of(ids)
        place = -1 if b"".join(pieces).startswith(b" ") else 0
        ends = []
        for id, piece in zip(ids, pieces, strict=True):
            self.next_at[place] = id
            place += len(piece)
            ends.append(place)
        return ends

    def steps_at(self, place: int) -> int:
        """How many steps are done when so many bytes are there."""
        return sum(end <= place for end in self._ends)


class Terms:
    """The terms of one source. States and numbers are those of `Phrases`."""

    def __init__(self, terms: Sequence[str], tokenizer: Tokenizer, spelled: Sequence[bytes]) -> None:
        """`spelled`: the bytes that each token adds to a text. Raises DataError for a term that cannot be written."""
        self.texts = tuple(terms)
        self._phrases = Phrases(terms, spelled)
        self._tokenizer = tokenizer
        self._spelled = spelled
        self._cuts = [_Cut(term, tokenizer) for term in terms]
        self.num_steps = sum(cut.num_steps for cut in self._cuts)
        self.num_pieces = sum(cut.num_pieces for cut in self._cuts)
        self._after: dict[tuple[int, frozenset[int], int], int] = {}

    def read(self, tokens: Sequence[int]) -> tuple[int, frozenset[int]]:
        """(the state, the terms that certainly stand in the text)."""
        return self._phrases.read(tokens)

    def may_end(self, state: int, certain: frozenset[int]) -> bool:
        """Whether all terms stand in a text that ends here."""
        return len(certain | self._phrases.pending(self._phrases.states[state])) == len(self._cuts)

    def steps_after(self, state: int, certain: frozenset[int], token: int) -> int:
        """How many steps towards the terms are done after one more token."""
        key = (state, certain, token)
        if key not in self._after:
            number, more = self._phrases.step(state, token)
            self._after[key] = self._steps(self._phrases.states[number], certain | more)
        return self._after[key]

    def steps(self, tokens: Sequence[int]) -> int:
        """How many steps are done in a text."""
        state, certain = self.read(tokens)
        return self._steps(self._phrases.states[state], certain)

    def _steps(self, state: State, certain: frozenset[int]) -> int:
        """The steps of the terms that are certain, and of the one of the others that is furthest."""
        done = sum(self._cuts[number].num_steps for number in certain)
        open_cuts = [cut for number, cut in enumerate(self._cuts) if number not in certain]
        return done + max((cut.steps_at(_place(state, cut)) for cut in open_cuts), default=0)

    def next_tokens(self, state: int, certain: frozenset[int]) -> list[int]:
        """For each term that is missing the token that begins it or goes on with it."""
        here = self._phrases.states[state]
        found = [self._next(here, cut) for number, cut in enumerate(self._cuts) if number not in certain]
        return [token for token in dict.fromkeys(found) if token is not None]

    def is_pending(self, state: int, certain: frozenset[int]) -> bool:
        """Whether a term is written in full and only the end of its word is missing."""
        return bool(self._phrases.pending(self._phrases.states[state]) - certain)

    def _next(self, state: State, cut: _Cut) -> int | None:
        place = max(_place(state, cut), min(cut.next_at))
        if place == len(cut.bytes):
            return None
        if place not in cut.next_at:  # the model has begun the term in other pieces
            cut.next_at[place] = self._first_piece(cut.bytes[place:])
        return cut.next_at[place]

    def _first_piece(self, rest: bytes) -> int:
        try:
            return self._tokenizer.encode([rest.decode()])[0][0]
        except UnicodeDecodeError:  # inside a character: then there is a piece for each byte
            return list(self._spelled).index(rest[:1])


def _place(state: State, cut: _Cut) -> int:
    """How many bytes of a term the text ends with; -1 where a space must come before the term."""
    text = state.text
    for start in range(len(text)):
        done = text[start:].encode() + state.rest
        if cut.bytes.startswith(done) and is_boundary(text[start - 1 : start] if start else "", text[start]):
            return len(done)
    if state.rest:
        return len(state.rest) if cut.bytes.startswith(state.rest) else -1
    if state.last in ("", " ") or state.last.isspace() or is_unseparated(cut.text[0]):
        return 0
    return -1


def ends_word(spelled: Sequence[bytes]) -> list[bool]:
    """Which tokens, behind a word, show that it has ended: those that begin with a space or a sign."""
    return [bool(first) and not is_word_character(first) for first in map(_first_character, spelled)]


def _first_character(piece: bytes) -> str:
    """Empty where a piece begins inside a character, or is less than one."""
    return "" if piece[:1] and 0x80 <= piece[0] < 0xC0 else piece.decode("utf-8", "ignore")[:1]
