"""Words made of tokens: segmentation, and the values shown of each word.

White space separates words. Punctuation at either end of a word is a word of its own, and so is each token in a script
without spaces. A word has at least one token, and the texts of all words, concatenated, are the whole text.
"""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from heed.text.language.scripts import is_unspaced

WordKind = Literal["word", "tag", "begin", "end", "next"]
"""Text; a tag before a source, or a mask; begin and end of a sentence; the position after a text that has no end."""
_CONTINUATION_BYTES = range(0x80, 0xC0)
"""Bytes of UTF-8 that are not the first of their character."""


@dataclass(frozen=True)
class Choice:
    """One of the likeliest tokens or words at a position."""

    text: str
    goes_on: bool
    """Whether it continues the previous word."""
    prob: float
    end: bool
    """Whether it is the end of the sentence or text."""


@dataclass(frozen=True)
class Token:
    """A token of a word. Only those of an output have a probability, a rank (1 is the likeliest) and choices."""

    text: str
    goes_on: bool
    """Whether it continues the previous word."""
    prob: float | None = None
    rank: int | None = None
    choices: tuple[Choice, ...] = ()


@dataclass(frozen=True)
class Word:
    """A word, a tag, or an end. The texts of those of kind "word", concatenated, are the whole text."""

    text: str
    kind: WordKind
    prob: float | None
    """The product of the probabilities of its tokens."""
    tokens: tuple[Token, ...]
    choices: tuple[Choice, ...] = ()
    """The likeliest words at its position; in a long output only after the last word."""


def probability(log_prob: float) -> float:
    """The probability of a log-probability in nats, rounded to four significant digits."""
    return float(f"{math.exp(log_prob):.4g}")


def word_slices(parts: Sequence[bytes]) -> list[slice]:
    """The tokens of each word, as slices. `parts`: the bytes that each token adds to the text; none for a tag."""
    starts = [index for index in range(len(parts)) if index == 0 or _starts_word(parts, index)]
    return [
        slice(*bounds)
        for begin, end in pairwise([*starts, len(parts)])
        for bounds in pairwise(_split_punctuation(parts, begin, end))
    ]


def continues_word(previous: bytes, token: bytes) -> bool:
    """Whether a token belongs to the same word as the token before it."""
    return bool(previous and token) and not (
        _starts_word([previous, token], 1) or _is_punctuation(token) or _is_punctuation(previous)
    )


def _starts_word(parts: Sequence[bytes], index: int) -> bool:
    """Whether a word starts at a token, regardless of punctuation."""
    token, previous = parts[index], parts[index - 1]
    if not token or not previous:
        return True
    if token[0] in _CONTINUATION_BYTES:
        return False
    left, right = previous.decode("utf-8", "replace"), token.decode("utf-8", "replace")
    if not left.strip():  # white space belongs to the word after it, and a line break is a word of its own
        return "\n" in left or (not right.strip() and "\n" in right)
    first = b"".join(parts[index : index + 4]).decode("utf-8", "ignore")[:1]  # a token may hold a part of it only
    return left[-1].isspace() or right[0].isspace() or (first != "" and is_unspaced(first))


def _split_punctuation(parts: Sequence[bytes], begin: int, end: int) -> list[int]:
    """Bounds of the words in a span without inner white space, with punctuation at its ends cut off."""
    first, last = begin, end
    while last - first > 1 and _is_punctuation(parts[last - 1]):
        last -= 1
    while last - first > 1 and _is_punctuation(parts[first]):
        first += 1
    return [*range(begin, first), first, *range(last, end + 1)]


def _is_punctuation(part: bytes) -> bool:
    text = part.decode("utf-8", "replace").strip()
    return bool(text) and "\ufffd" not in text and all(unicodedata.category(c)[0] in "PS" for c in text)
