"""Phrase matching in texts: glossaries for complete ones, an automaton for those generated token by token.

A phrase occurs in a text where it starts and ends at a word boundary: "cat" occurs in "a cat." but not in "cats". In
scripts without word separators (Chinese, Japanese, Thai, ...) and after a phrase that ends in a punctuation mark, every
position is a boundary, but none is between a letter and its marks. Text is compared rather than tokens, so a phrase
matches however it is tokenized.
"""

from __future__ import annotations

import codecs
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from threading import Lock

from heed.core.errors import DataError, UsageError
from heed.text.language.scripts import JOINERS, is_east_asian, is_unseparated, is_unspaced
from heed.text.readers import Errors, read_lines

OPEN_KINDS = "aก"
"""Kinds of characters that what follows may belong to."""
_NUMBERING = Lock()
"""Held while a state gets its number: several threads may search with the same phrases."""


@cache
def is_word_character(char: str) -> bool:
    """Letters, combining marks, digits, joiners and the underscore, in scripts with word separators."""
    return (char in f"_{JOINERS}" or unicodedata.category(char)[0] in "LMN") and not is_unseparated(char)


@cache
def _is_mark(char: str) -> bool:
    return unicodedata.category(char)[0] == "M"


def is_boundary(before: str, after: str) -> bool:
    """Whether a word may start or end between two characters; an empty string is an end of the text."""
    if not before or not after:
        return True
    if _is_mark(after):
        return kind(before) not in OPEN_KINDS
    return not (is_word_character(before) and is_word_character(after))


def lowered(text: str) -> str:
    """The text in lower case, character by character, so that indices do not change."""
    return "".join(lower if len(lower := char.lower()) == 1 else char for char in text)


def first_character(piece: bytes) -> str:
    """The first whole character of a token's bytes; empty if they start inside one."""
    char = piece.decode("utf-8", errors="ignore")[:1]
    return char if piece.startswith(char.encode()) else ""


@cache
def kind(char: str) -> str:
    """One character for all that have the same effect on what follows.

    `a` is a word character, `ก` a letter of a script without word separators but with combining marks, `.` any other.
    """
    if is_word_character(char):
        return "a"
    has_marks = is_unspaced(char) and not is_east_asian(char) and unicodedata.category(char)[0] in "LMN"
    return "ก" if has_marks else " " if char.isspace() else "."


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
    terms start at the same place in the source, the longer one counts; of equally long ones, the one with capitals. The
    cost of a lookup depends on how many lengths the terms have, not on their number.
    """

    def __init__(self, terms: Mapping[str, str]) -> None:
        """Neither side of a term may be empty."""
        self.targets = tuple(dict.fromkeys(terms.values()))
        """All target terms."""
        self._any_case = {source: target for source, target in terms.items() if source == lowered(source)}
        self._exact = {source: target for source, target in terms.items() if source not in self._any_case}
        lengths: dict[str, set[int]] = {}
        for source in terms:
            lengths.setdefault(lowered(source[0]), set()).add(len(source))
        self._lengths = {first: sorted(of_first, reverse=True) for first, of_first in lengths.items()}

    @staticmethod
    def read(path: str | Path, normalise: Callable[[str], str], errors: Errors = "strict") -> Glossary:
        """From a file in the format of `read_terms`."""
        return Glossary(read_terms(path, normalise, errors))

    def terms_for(self, source: str) -> tuple[str, ...]:
        """The target terms that a source line requires, in the order of its terms, each once."""
        return tuple(dict.fromkeys(target for _, target in self.pairs_for(source)))

    def pairs_for(self, source: str) -> tuple[tuple[str, str], ...]:
        """The source terms as the line writes them, in their order, each spelling once and with its target."""
        return tuple(dict.fromkeys((source[begin:end], target) for begin, end, target in self.matches(source)))

    def matches(self, source: str) -> Iterator[tuple[int, int, str]]:
        """Begin and end of each term in a line, and its target. They do not overlap."""
        folded, start = lowered(source), 0
        while start < len(source):
            match = self._match_at(source, folded, start)
            if match is None:
                start += 1
            else:
                term, target = match
                yield start, start + len(term), target
                start += len(term)

    def _match_at(self, source: str, folded: str, start: int) -> tuple[str, str] | None:
        """The longest term that starts at an index of the source."""
        if not is_boundary(source[start - 1 : start], source[start]):
            return None
        for length in self._lengths.get(folded[start], ()):
            end = start + length
            for text, targets in ((source, self._exact), (folded, self._any_case)):
                term = text[start:end]
                if len(term) == length and term in targets and is_boundary(source[end - 1], source[end : end + 1]):
                    return term, targets[term]
        return None


@dataclass(frozen=True)
class State:
    """The part of the text so far that can still matter."""

    text: str = ""
    """Its longest suffix that is a prefix of a phrase, or a whole phrase."""
    before: str = ""
    """If `text` is empty, the kind of the last character; empty at the start."""
    rest: bytes = b""
    """The first bytes of an incomplete character."""

    @property
    def last(self) -> str:
        """The last complete character, or its kind."""
        return self.text[-1] if self.text else self.before


class _Index:
    """Phrases by their text; the cost of a lookup does not depend on their number."""

    def __init__(self, phrases: Iterable[tuple[int, str]]) -> None:
        self.numbers: dict[str, list[int]] = {}
        self.prefixes: set[str] = set()
        self._next: dict[str, set[str]] = {}
        for number, phrase in phrases:
            self.numbers.setdefault(phrase, []).append(number)
            self.prefixes.update(phrase[:length] for length in range(1, len(phrase) + 1))
            for length, char in enumerate(phrase):
                self._next.setdefault(phrase[:length], set()).add(char)

    def next_after(self, prefix: str) -> set[str]:
        """The characters that follow this prefix of phrases."""
        return self._next.get(prefix, set())

    def matches_at(self, text: str, start: int) -> Iterator[tuple[int, list[int]]]:
        """The ends and numbers of the phrases at an index."""
        for end in range(start + 1, len(text) + 1):
            part = text[start:end]
            if part not in self.prefixes:
                return
            if part in self.numbers:
                yield end, self.numbers[part]


class Phrases:
    """Matches phrases in a text that is generated token by token.

    The matcher is a finite automaton, built lazily: its state is the part of the text so far that can still matter.
    States are numbered; 0 is the empty text. A phrase is *certain* when the text after it shows that its word has
    ended, and *pending* while nothing follows it yet.
    """

    def __init__(self, phrases: Sequence[str], token_bytes: Sequence[bytes], any_case: bool = False) -> None:
        """`token_bytes`: what each token adds to a text. `any_case`: a phrase in lower case matches any case.

        Phrases must not be empty.
        """
        self._token_bytes = token_bytes
        numbered = [(number, phrase, any_case and phrase == lowered(phrase)) for number, phrase in enumerate(phrases)]
        self._exact = _Index((number, phrase) for number, phrase, is_folded in numbered if not is_folded)
        self._folded = _Index((number, phrase) for number, phrase, is_folded in numbered if is_folded)
        self._longest = max(map(len, phrases), default=0)
        self.states = [State()]
        self._numbers = {self.states[0]: 0}
        self._steps: dict[tuple[int, int], tuple[int, frozenset[int]]] = {}

    def read(self, tokens: Iterable[int]) -> tuple[int, frozenset[int]]:
        """The state after these tokens, and the numbers of the phrases that their text certainly contains."""
        state, certain = 0, frozenset[int]()
        for token in tokens:
            state, new = self.step(state, token)
            if new:
                certain |= new
        return state, certain

    def step(self, state: int, token: int) -> tuple[int, frozenset[int]]:
        """The state after one more token, and the phrases that it makes certain."""
        if (state, token) not in self._steps:
            after, certain = self.peek(self.states[state], token)
            with _NUMBERING:
                number = self._numbers.setdefault(after, len(self.states))
                if number == len(self.states):
                    self.states.append(after)
            self._steps[state, token] = number, certain
        return self._steps[state, token]

    def peek(self, state: State, token: int) -> tuple[State, frozenset[int]]:
        """As `step` for a state itself, without caching."""
        new, rest = _decoded(state.rest + self._token_bytes[token])
        text, begin = state.text + new, len(state.text)
        first = "" if state.text else state.before  # the character before `text`
        opens = [is_boundary(text[i - 1] if i else first, char) for i, char in enumerate(text)]
        folded = lowered(text) if self._folded.numbers else text
        certain = frozenset(
            number
            for index, read in ((self._exact, text), (self._folded, folded))
            for start in range(len(text))
            if opens[start]
            for end, numbers in index.matches_at(read, start)
            if _is_certain(read, end, begin)
            for number in numbers
        )
        for start in range(max(0, len(text) - self._longest), len(text)):
            if opens[start] and (text[start:] in self._exact.prefixes or folded[start:] in self._folded.prefixes):
                return State(text[start:], "", rest), certain
        return State("", kind(text[-1]) if text else state.last, rest), certain

    def next_characters(self, state: State) -> frozenset[str]:
        """The characters, in lower case, that would continue a phrase that has started in the text of a state.

        After any other character no phrase becomes certain that started before it, except one that is pending.
        """
        text, folded = state.text, lowered(state.text)
        starts = [start for start in range(len(text)) if is_boundary(text[:start][-1:], text[start])]
        return frozenset(
            lowered(char)
            for index, read in ((self._exact, text), (self._folded, folded))
            for start in starts
            for char in index.next_after(read[start:])
        )

    def pending(self, state: State) -> frozenset[int]:
        """Phrases at the very end of the text, which contains them if it ends here or a boundary follows."""
        text, folded = state.text, lowered(state.text)
        return frozenset(
            number
            for index, read in ((self._exact, text), (self._folded, folded))
            for start in range(len(text))
            for number in index.numbers.get(read[start:], ())
            if kind(read[-1]) in OPEN_KINDS and is_boundary(text[:start][-1:], read[start])
        )


def _is_certain(text: str, end: int, begin: int) -> bool:
    """Whether the characters from `begin` on make a phrase certain that ends at `end`."""
    if kind(text[end - 1]) not in OPEN_KINDS:
        return end > begin
    return begin <= end < len(text) and is_boundary(text[end - 1], text[end])


def _decoded(data: bytes) -> tuple[str, bytes]:
    """The complete characters, and the first bytes of an incomplete one; invalid bytes become U+FFFD."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    text = decoder.decode(data)
    return text, decoder.getstate()[0]


def require_allowed(banned: tuple[str, ...], required: Iterable[str], normalise: Callable[[str], str]) -> None:
    """Raises UsageError for a required text, normalised as outputs are, that contains a banned phrase."""
    for text in dict.fromkeys(required) if banned else ():
        for phrase in _occurrences(tuple(dict.fromkeys(map(normalise, banned)))).terms_for(text):
            raise UsageError(f"{text!r} is required in the output, but {phrase!r} is banned: remove one of them.")


@lru_cache(maxsize=8)
def _occurrences(phrases: tuple[str, ...]) -> Glossary:
    """Detects the phrases in a text."""
    return Glossary({phrase.strip(): phrase.strip() for phrase in phrases if phrase.strip()})
