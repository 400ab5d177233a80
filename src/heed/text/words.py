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
      (?P<web>(?:https?://|www\.)\S+[^\s.,;:!?)\]}'"”»])
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
"""Words besides mail addresses."""
_MAIL = re.compile(r"[\w.+-]++(?=(@[\w-]++(?:\.[\w-]++)++)?)")
"""What may come before an @, and the rest of the address if it is one.

Among the words, it would be looked for at each word, each time to the end of a long run of such characters.
"""


class Word(NamedTuple):
    """A word of a line, and its first character and the one after its last."""

    text: str
    start: int
    end: int


def split_words(line: str) -> list[Word]:
    """The words of a line in order; white space is between them."""
    words: list[Word] = []
    done = 0
    for mail in _MAIL.finditer(line) if "@" in line else ():
        while mail[1] and done < mail.end():
            word = _WORD.search(line, done)
            assert word is not None  # what comes before an @ is no white space
            begin = word.start()
            done = mail.end(1) if begin >= mail.start() and not word["web"] else word.end()
            words.append(Word(line[begin:done], begin, done))
    return words + [Word(match[0], match.start(), match.end()) for match in _WORD.finditer(line, done)]


def joined_words(tokens: Sequence[str]) -> list[Word]:
    """Tokens with their places in the text that joins them by blanks."""
    words: list[Word] = []
    start = 0
    for token in tokens:
        words.append(Word(token, start, start + len(token)))
        start += len(token) + 1
    return words
