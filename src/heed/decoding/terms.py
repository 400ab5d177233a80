"""Required terms: which target terms an output must contain, and how far each hypothesis has come with them.

A glossary maps source terms to target terms. Terms are tracked in the text rather than in its tokens (`phrases.py`): a
term that the model writes by itself counts, however it is tokenized. To lead the model to a term, the tokens into which
the tokenizer splits it are proposed, with a space before the term or without, depending on the text so far.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from heed.core.errors import DataError
from heed.decoding.phrases import Phrases, State, is_boundary, is_word_character, lowered
from heed.text.language.scripts import is_unseparated
from heed.text.readers import Errors, read_lines
from heed.text.tokenizers import Tokenizer

Progress = tuple[int, frozenset[int]]
"""A state of `Phrases`, and the numbers of the terms that the text certainly contains."""


def read_terms(path: str | Path, normalise: Callable[[str], str], errors: Errors = "strict") -> dict[str, str]:
    """The normalised terms of a glossary file: on each line source, tab, target. Empty lines are skipped.

    Raises DataError for a malformed line or a source term with two targets.
    """
    terms: dict[str, str] = {}
    for number, line in enumerate(read_lines(path, errors), start=1):
        if not line.strip():
            continue
        columns = [normalise(column).strip() for column in line.split("\t")]
        if len(columns) != 2 or not all(columns):
            raise DataError(
                f"{path}, line {number}: expected a source term, one tab and a target term on each line of a "
                f"glossary, got {line!r}."
            )
        source, target = columns
        if terms.setdefault(source, target) != target:
            raise DataError(
                f"{path}, line {number}: {source!r} is translated as {target!r} here and as {terms[source]!r} above. "
                "Remove one of the two lines."
            )
    return terms


class Glossary:
    """Source terms and the target terms they require.

    A source term in lower case matches any case, one with capitals only itself ("us" and "US" are two terms). Where two
    terms start at the same place in the source, the longer one counts; of equally long ones, the one with capitals.
    """

    def __init__(self, terms: Mapping[str, str]) -> None:
        """Neither side of a term may be empty."""
        self.targets = tuple(dict.fromkeys(terms.values()))
        """All target terms."""
        self._by_first: dict[str, list[tuple[str, str, bool]]] = {}
        for source in sorted(terms, key=lambda term: (-len(term), term == lowered(term))):
            entry = (source, terms[source], source == lowered(source))
            self._by_first.setdefault(lowered(source[0]), []).append(entry)

    @staticmethod
    def read(path: str | Path, normalise: Callable[[str], str], errors: Errors = "strict") -> Glossary:
        """From a file in the format of `read_terms`."""
        return Glossary(read_terms(path, normalise, errors))

    def terms_for(self, source: str) -> tuple[str, ...]:
        """The target terms that a source line requires, in the order of its terms, each once."""
        return tuple(dict.fromkeys(target for _, target in self._matches(source)))

    def matches_in(self, source: str) -> tuple[str, ...]:
        """The source terms as the line writes them, in their order, each once."""
        return tuple(dict.fromkeys(match for match, _ in self._matches(source)))

    def _matches(self, source: str) -> Iterator[tuple[str, str]]:
        """Each term of a line as it is written there, and its target."""
        folded, start = lowered(source), 0
        while start < len(source):
            match = self._match_at(source, folded, start)
            if match is None:
                start += 1
            else:
                term, target = match
                yield source[start : start + len(term)], target
                start += len(term)

    def _match_at(self, source: str, folded: str, start: int) -> tuple[str, str] | None:
        """The longest term that starts at an index of the source."""
        for term, target, any_case in self._by_first.get(folded[start], ()):
            end = start + len(term)
            if (
                (folded if any_case else source).startswith(term, start)
                and is_boundary(source[start - 1 : start], source[start])
                and is_boundary(source[end - 1], source[end : end + 1])
            ):
                return term, target
        return None


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
        """How many steps are complete after this many bytes."""
        return sum(end <= offset for end in self._ends)

    def offset_in(self, state: State) -> int:
        """How many bytes of the term the text ends with; -1 where a space must come before the term."""
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
        """How many steps towards the terms are complete after one more token."""
        key = (state, certain, token)
        if key not in self._steps_after:
            number, more = self._phrases.step(state, token)
            self._steps_after[key] = self._steps(self._phrases.states[number], certain | more)
        return self._steps_after[key]

    def steps(self, tokens: Sequence[int]) -> int:
        """How many steps are complete in a text."""
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
    """Which tokens, after a word, show that it has ended: those that start with a space or a punctuation mark."""
    return [bool(first) and not is_word_character(first) for first in map(_first_character, token_bytes)]


def _first_character(piece: bytes) -> str:
    """Empty for a piece that starts inside a character or is less than one."""
    return "" if piece[:1] and 0x80 <= piece[0] < 0xC0 else piece.decode("utf-8", "ignore")[:1]
