"""Words of plain text, for taggers: a simple tokenizer that keeps the place of each word in its line.

Numbers, abbreviations, addresses, hashtags, and words with hyphens stay whole; English clitics ('s, 're, n't) and other
punctuation are words of their own, as in the treebanks that most tagged corpora come from.

Marks after a letter, such as vowel signs and accents, belong to its word, and so do joiners and soft hyphens inside a
word. Only in scripts that write no space between words, marks are words of their own: a run of letters and marks would
be a whole clause there.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from functools import cache
from itertools import chain
from typing import NamedTuple

from heed.text.language import scripts
from heed.text.language.scripts import is_unspaced

JOINERS = f"{scripts.JOINERS}\xad"
"""The joiners of scripts, and the soft hyphen."""
_WITH_MARKS = (range(0x300, 0x3100), range(0xA600, 0xAC00), range(0xFB00, 0x20000), range(0xE0100, 0xE01F0))
"""Code points outside which Unicode has no marks."""


class Word(NamedTuple):
    """A word of a line, and its first character and the one after its last."""

    text: str
    start: int
    end: int


class _Patterns(NamedTuple):
    """How a line is cut."""

    word: re.Pattern[str]
    """Words besides mail addresses."""
    mail: re.Pattern[str]
    """What may come before an @, and the rest of the address if it is one.

    Among the words, it would be looked for at each word, each time to the end of a long run of such characters.
    """

    @classmethod
    def of(cls, inside: str, marks: str, word: str) -> _Patterns:
        """The patterns for the characters inside a word, the marks after a letter, and words of letters."""
        pattern = rf"""
              (?P<web>(?i:https?://|www\.)\S+[^\s.,;:!?)\]}}'"”»])
            | [@\#]{word}                                     # a name or a topic
            | (?:[^\W\d_]{marks}\.){{2,}}                     # U.S.
            | (?i:Mr|Mrs|Ms|Dr|St|vs|Inc|Corp|Co|Ltd|No)\.    # usual abbreviations
            | \d+(?:[.,:/-]\d+)*{marks}                       # a number, a time, a date
            | \w[{inside}]*?(?=(?i:n['’]t)(?![{inside}]))     # did, before n't
            | (?i:n['’]t)(?![{inside}])
            | ['’](?i:s|re|ve|ll|d|m)(?![{inside}])
            | {word}(?:[-‐]{word})*                           # a word, with hyphens
            | \.{{2,}} | -{{2,}}
            | [^\s]
            """
        mail = rf"[{inside}.+-]++(?=(@[{inside}-]++(?:\.[{inside}-]++)++)?)"
        return cls(re.compile(pattern, re.VERBOSE), re.compile(mail))


_WITHOUT_MARKS = _Patterns.of(r"\w", "", r"\w+")


@cache
def _marks() -> frozenset[str]:
    """The marks that belong to the word of the letter before them: those of scripts with spaces between words."""
    chars = map(chr, chain(*_WITH_MARKS))
    return frozenset(char for char in chars if unicodedata.category(char)[0] == "M" and not is_unspaced(char))


@cache
def _marks_and_joiners() -> frozenset[str]:
    return _marks() | {*JOINERS}


@cache
def _with_marks() -> _Patterns:
    """The patterns for lines with marks or joiners."""
    known = _marks()
    firsts = sorted(mark for mark in known if chr(ord(mark) - 1) not in known)
    lasts = sorted(mark for mark in known if chr(ord(mark) + 1) not in known)
    marks = "".join(f"{first}-{last}" for first, last in zip(firsts, lasts, strict=True))  # faster than single ones
    inside = rf"\w{marks}"
    joined = rf"(?:[{JOINERS}]++[{inside}]+)*(?:(?<=[{marks}])\u200d)?"  # a joiner ends some words of Malayalam
    return _Patterns.of(inside, f"[{marks}]*", rf"\w[{inside}]*{joined}")


def is_mark(char: str) -> bool:
    """Whether a character is a mark that belongs to the word of the letter before it."""
    return char in _marks()


def is_single_word(text: str) -> bool:
    """Whether a text is a word of letters and digits in any script, with their marks and joiners."""
    return text.isalnum() or (text[:1].isalnum() and all(map(is_in_word, text)))


def is_in_word(char: str) -> bool:
    """Whether a character is a part of a word: a letter, a digit, a mark or a joiner. No character ("") is none."""
    return char.isalnum() or (char != "" and (char in JOINERS or unicodedata.category(char)[0] == "M"))


def may_be_cut(text: str, place: int) -> bool:
    """Whether no character that a reader sees goes on here: with a mark or joiner, or behind a zero-width joiner."""
    before, after = text[max(place - 1, 0) : place], text[place : place + 1]
    is_joined = before == "\u200d" and after != "" and unicodedata.category(after)[0] in "LS"
    return not is_joined and (after.isalnum() or not is_in_word(after))


def split_words(line: str, cut_at_marks: bool = False) -> list[Word]:
    """The words of a line in order; white space is between them.

    `cut_at_marks`: marks and joiners are words of their own, as in the vocabularies of runs of earlier versions.
    """
    patterns = _WITHOUT_MARKS
    if not (cut_at_marks or line.isascii()):
        patterns = patterns if _marks_and_joiners().isdisjoint(line) else _with_marks()
    words: list[Word] = []
    done = 0
    for mail in patterns.mail.finditer(line) if "@" in line else ():
        while mail[1] and done < mail.end():
            word = patterns.word.search(line, done)
            assert word is not None  # what comes before an @ is no white space
            begin = word.start()
            done = mail.end(1) if begin >= mail.start() and not word["web"] else word.end()
            words.append(Word(line[begin:done], begin, done))
    return words + [Word(match[0], match.start(), match.end()) for match in patterns.word.finditer(line, done)]


def joined_words(tokens: Sequence[str]) -> list[Word]:
    """Tokens with their places in the text that joins them by blanks."""
    words: list[Word] = []
    start = 0
    for token in tokens:
        words.append(Word(token, start, start + len(token)))
        start += len(token) + 1
    return words
