"""Words of plain text, for taggers: a simple tokenizer that keeps the place of each word in its line.

Numbers, abbreviations, addresses, hashtags, and words with hyphens stay whole; English clitics ('s, 're, n't) and other
punctuation are words of their own, as in the treebanks that most tagged corpora come from.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

_WORD = re.compile(
    r"""
      (?:https?://|www\.)\S+[^\s.,;:!?)\]}'"”»]   # an address on the web
    | [\w.+-]+@[\w-]+(?:\.[\w-]+)+                # a mail address
    | [@\#]\w+                                    # a name or a topic
    | (?:[^\W\d_]\.){2,}                          # U.S.
    | (?:Mr|Mrs|Ms|Dr|St|vs|Inc|Corp|Co|Ltd|No)\. # usual abbreviations
    | \d+(?:[.,:/-]\d+)*                          # a number, a time, a date
    | \w+?(?=n['’]t\b)                            # did, before n't
    | n['’]t\b
    | ['’](?:s|re|ve|ll|d|m)\b
    | \w+(?:[-‐]\w+)*                             # a word, with hyphens
    | \.{2,} | -{2,}
    | [^\s]
    """,
    re.VERBOSE | re.IGNORECASE,
)


class Word(NamedTuple):
    """A word of a line, and its first character and the one after its last."""

    text: str
    start: int
    end: int


def split_words(line: str) -> list[Word]:
    """The words of a line in order; white space is between them."""
    return [Word(match[0], match.start(), match.end()) for match in _WORD.finditer(line)]


def joined_words(tokens: Sequence[str]) -> list[Word]:
    """Tokens with their places in the text that joins them by blanks."""
    words: list[Word] = []
    start = 0
    for token in tokens:
        words.append(Word(token, start, start + len(token)))
        start += len(token) + 1
    return words
