"""Which words and phrases stand in a text that is written piece by piece?

A phrase stands in a text where it begins and ends at a word boundary: "cat" stands in "a cat." but not in "cats".
Where the script sets no words apart (Chinese, Japanese, Thai, ...) or the phrase ends in a sign, any place is a
boundary. The text is compared and not the pieces, so a phrase is found however it is cut into pieces.

A finite automaton, built as it is used: its state is what of the text so far may still matter. A phrase is *certain*
when the text behind it shows that its word has ended, and *pending* while nothing follows it yet.
"""

from __future__ import annotations

import codecs
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache

from heed.text.language.scripts import is_unseparated


@cache
def is_word_character(char: str) -> bool:
    """Letters, their marks, digits and the underscore, where words are set apart."""
    return (char == "_" or unicodedata.category(char)[0] in "LMN") and not is_unseparated(char)


def is_boundary(before: str, after: str) -> bool:
    """Whether a word may begin or end between two characters; an empty one is an end of the text."""
    return not (before and after and is_word_character(before) and is_word_character(after))


def lowered(text: str) -> str:
    """The text in lower case, character by character, so that places stay what they are."""
    return "".join(lower if len(lower := char.lower()) == 1 else char for char in text)


@dataclass(frozen=True)
class State:
    """What of the text so far may still matter."""

    text: str = ""
    """Its longest end that is the beginning of a phrase, or the whole of one."""
    before: str = ""
    """Where `text` is empty, what kind of character is the last: a letter `a`, a space, a sign `.`; empty at first."""
    rest: bytes = b""
    """The first bytes of a character that is not complete."""

    @property
    def last(self) -> str:
        """The last complete character, or its kind."""
        return self.text[-1] if self.text else self.before


class _Index:
    """Phrases by how they are written: what is looked up costs the same however many there are."""

    def __init__(self, phrases: Iterable[tuple[int, str]]) -> None:
        self.numbers: dict[str, list[int]] = {}
        self.beginnings: set[str] = set()
        self._next: dict[str, set[str]] = {}
        for number, phrase in phrases:
            self.numbers.setdefault(phrase, []).append(number)
            self.beginnings.update(phrase[:length] for length in range(1, len(phrase) + 1))
            for length, char in enumerate(phrase):
                self._next.setdefault(phrase[:length], set()).add(char)

    def next_after(self, beginning: str) -> set[str]:
        """The characters that follow this beginning of phrases."""
        return self._next.get(beginning, set())

    def found_at(self, text: str, start: int) -> Iterator[tuple[int, list[int]]]:
        """Where the phrases end that stand at a place, and their numbers."""
        for end in range(start + 1, len(text) + 1):
            part = text[start:end]
            if part not in self.beginnings:
                return
            if part in self.numbers:
                yield end, self.numbers[part]


class Phrases:
    """Finds phrases in rows of tokens. States are numbers; 0 is the empty text."""

    def __init__(self, phrases: Sequence[str], spelled: Sequence[bytes], any_case: bool = False) -> None:
        """`spelled`: the bytes that each token adds to a text. `any_case`: lower case stands for every case.

        Phrases are not empty.
        """
        self._spelled = spelled
        numbered = [(number, phrase, any_case and phrase == lowered(phrase)) for number, phrase in enumerate(phrases)]
        self._exact = _Index((number, phrase) for number, phrase, is_folded in numbered if not is_folded)
        self._folded = _Index((number, phrase) for number, phrase, is_folded in numbered if is_folded)
        self._longest = max(map(len, phrases), default=0)
        self.states = [State()]
        self._numbers = {self.states[0]: 0}
        self._steps: dict[tuple[int, int], tuple[int, frozenset[int]]] = {}

    def read(self, tokens: Iterable[int]) -> tuple[int, frozenset[int]]:
        """The state after these tokens, and the numbers of the phrases that certainly stand in their text."""
        state, certain = 0, frozenset[int]()
        for token in tokens:
            state, found = self.step(state, token)
            if found:
                certain |= found
        return state, certain

    def step(self, state: int, token: int) -> tuple[int, frozenset[int]]:
        """The state after one more token, and the phrases that it has made certain."""
        known = self._steps.get((state, token))
        if known is None:
            after, certain = self.peek(self.states[state], token)
            number = self._numbers.setdefault(after, len(self.states))
            if number == len(self.states):
                self.states.append(after)
            known = self._steps[state, token] = number, certain
        return known

    def peek(self, state: State, token: int) -> tuple[State, frozenset[int]]:
        """The same for a state as it is, and not remembered."""
        new, rest = _decoded(state.rest + self._spelled[token])
        text, begin = state.text + new, len(state.text)
        first = "" if state.text else state.before  # what stands before `text`
        opens = [is_boundary(text[i - 1] if i else first, char) for i, char in enumerate(text)]
        folded = lowered(text) if self._folded.numbers else text
        certain = frozenset(
            number
            for index, read in ((self._exact, text), (self._folded, folded))
            for start in range(len(text))
            if opens[start]
            for end, numbers in index.found_at(read, start)
            if _is_certain(read, end, begin)
            for number in numbers
        )
        for place in range(max(0, len(text) - self._longest), len(text)):
            if opens[place] and (text[place:] in self._exact.beginnings or folded[place:] in self._folded.beginnings):
                return State(text[place:], "", rest), certain
        return State("", kind(text[-1]) if text else state.last, rest), certain

    def goes_on(self, state: State) -> frozenset[str]:
        """The characters with which a phrase would go on that has begun in the text of a state, in lower case.

        Others may follow; but then no such phrase stands in the text that does not stand in it already.
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
        """The phrases at the very end of the text: they stand in it if it ends here, or if a boundary follows."""
        text, folded = state.text, lowered(state.text)
        return frozenset(
            number
            for index, read in ((self._exact, text), (self._folded, folded))
            for start in range(len(text))
            for number in index.numbers.get(read[start:], ())
            if is_word_character(read[-1]) and is_boundary(text[:start][-1:], read[start])
        )


def _is_certain(text: str, end: int, begin: int) -> bool:
    """Whether the characters from `begin` on have made a phrase certain that ends at `end`."""
    if not is_word_character(text[end - 1]):
        return end > begin
    return begin <= end < len(text) and not is_word_character(text[end])


def _decoded(data: bytes) -> tuple[str, bytes]:
    """The complete characters, and the first bytes of one that is not; wrong bytes become U+FFFD."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    text = decoder.decode(data)
    return text, decoder.getstate()[0]


def kind(char: str) -> str:
    """A character that stands for all that are alike before a word."""
    return "a" if is_word_character(char) else " " if char.isspace() else "."
