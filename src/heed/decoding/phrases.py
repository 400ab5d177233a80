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
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache

# Scripts whose words are not set apart, or (Hangul) carry their particles: a boundary is everywhere in them.
_UNSEPARATED = (
    (0x0E00, 0x0FFF), (0x1000, 0x109F), (0x1780, 0x17FF), (0x3040, 0x30FF), (0x3400, 0x4DBF), (0x4E00, 0x9FFF),
    (0xAC00, 0xD7AF), (0xF900, 0xFAFF), (0xFF66, 0xFF9F), (0x20000, 0x3FFFF),
)  # fmt: skip


@cache
def is_unseparated(char: str) -> bool:
    """Whether a character belongs to a script in which a word may begin and end anywhere."""
    return any(first <= ord(char) <= last for first, last in _UNSEPARATED)


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


class Phrases:
    """Finds phrases in rows of tokens. States are numbers; 0 is the empty text."""

    def __init__(self, phrases: Iterable[str], spelled: Sequence[bytes], any_case: bool = False) -> None:
        """`spelled`: the bytes that each token adds to a text. `any_case`: lower case stands for every case.

        Phrases are not empty.
        """
        self.phrases = tuple(phrases)
        self._spelled = spelled
        self._any_case = [any_case and phrase == lowered(phrase) for phrase in self.phrases]
        self._longest = max((len(phrase) for phrase in self.phrases), default=0)
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
        folded = lowered(text) if any(self._any_case) else text
        certain = frozenset(
            number
            for number, phrase in enumerate(self.phrases)
            if _is_certain(folded if self._any_case[number] else text, text, phrase, opens, begin)
        )
        for place in range(max(0, len(text) - self._longest), len(text)):
            if opens[place] and self._may_become(text[place:], folded[place:]):
                return State(text[place:], "", rest), certain
        return State("", _kind(text[-1]) if text else state.last, rest), certain

    def _may_become(self, text: str, folded: str) -> bool:
        pairs = zip(self.phrases, self._any_case, strict=True)
        return any(phrase.startswith(folded if any_case else text) for phrase, any_case in pairs)

    def pending(self, state: State) -> frozenset[int]:
        """The phrases at the very end of the text: they stand in it if it ends here, or if a boundary follows."""
        folded = lowered(state.text)
        return frozenset(
            number
            for number, phrase in enumerate(self.phrases)
            if is_word_character(phrase[-1])
            and (folded if self._any_case[number] else state.text).endswith(phrase)
            and is_boundary(state.text[: -len(phrase)][-1:], phrase[0])
        )


def _is_certain(folded: str, text: str, phrase: str, opens: Sequence[bool], begin: int) -> bool:
    """Whether the characters from `begin` on have made a phrase certain."""
    start = folded.find(phrase)
    while start >= 0:
        end = start + len(phrase)
        if opens[start]:
            if not is_word_character(phrase[-1]):
                if end > begin:
                    return True
            elif begin <= end < len(text) and not is_word_character(text[end]):
                return True
        start = folded.find(phrase, start + 1)
    return False


def _decoded(data: bytes) -> tuple[str, bytes]:
    """The complete characters, and the first bytes of one that is not; wrong bytes become U+FFFD."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    text = decoder.decode(data)
    return text, decoder.getstate()[0]


def _kind(char: str) -> str:
    """A character that stands for all that are alike before a word."""
    return "a" if is_word_character(char) else " " if char.isspace() else "."
