"""Which tokens make a word, so that a person sees words and not pieces?

White space separates words; punctuation at a word's ends stands alone, as do the tokens of scripts that write no
spaces. A word is never less than a token, and the texts of all words, one after the other, are the text.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from itertools import pairwise

from heed.text.language.scripts import is_unspaced

_CONTINUES = range(0x80, 0xC0)
"""The bytes that go on with a character of UTF-8."""


def word_slices(parts: Sequence[bytes]) -> list[slice]:
    """The places of the tokens of each word; `parts` is what each token adds to the text (nothing: not text)."""
    starts = [place for place in range(len(parts)) if place == 0 or _starts_word(parts, place)]
    return [
        slice(*bounds)
        for begin, end in pairwise([*starts, len(parts)])
        for bounds in pairwise(_without_punctuation(parts, begin, end))
    ]


def goes_on(before: bytes, here: bytes) -> bool:
    """Whether a token goes on with the word of the one before it."""
    return bool(before and here) and not (
        _starts_word([before, here], 1) or _is_punctuation(here) or _is_punctuation(before)
    )


def _starts_word(parts: Sequence[bytes], place: int) -> bool:
    """Whether a token stands at the begin of a word, whatever punctuation is in it."""
    here, before = parts[place], parts[place - 1]
    if not here or not before:
        return True
    if here[0] in _CONTINUES:
        return False
    left, right = before.decode("utf-8", "replace"), here.decode("utf-8", "replace")
    if not left.strip():  # white space stands before its word, a line break alone
        return "\n" in left or (not right.strip() and "\n" in right)
    first = _first_character(parts, place)
    return left[-1].isspace() or right[0].isspace() or (first != "" and is_unspaced(first))


def _first_character(parts: Sequence[bytes], place: int) -> str:
    """Of a token, which may hold no more than a part of it."""
    return b"".join(parts[place : place + 4]).decode("utf-8", "ignore")[:1]


def _without_punctuation(parts: Sequence[bytes], begin: int, end: int) -> list[int]:
    """The bounds of the words between: punctuation before the first and behind the last letter is cut off."""
    first, last = begin, end
    while last - first > 1 and _is_punctuation(parts[last - 1]):
        last -= 1
    while last - first > 1 and _is_punctuation(parts[first]):
        first += 1
    return [*range(begin, first), first, *range(last, end + 1)]


def _is_punctuation(part: bytes) -> bool:
    text = part.decode("utf-8", "replace").strip()
    return bool(text) and "\ufffd" not in text and all(unicodedata.category(c)[0] in "PS" for c in text)
