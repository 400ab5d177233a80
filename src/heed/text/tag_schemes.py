"""Tag schemes: spans of tokens, such as entities and chunks, written as one tag for each token.

| scheme | tags                                                                              |
|--------|-----------------------------------------------------------------------------------|
| iob1   | I-X inside; B-X only where a span touches an earlier one of its type              |
| iob2   | B-X at the beginning of each span, then I-X                                       |
| iobes  | B-X, I-X, E-X at the end, S-X for a single token                                  |
| bilou  | the same with L-X and U-X                                                         |
| bmes   | the same with M-X for I-X                                                         |
| plain  | no spans: each token has a tag of its own, such as a part of speech               |

(Ramshaw & Marcus 1995; Tjong Kim Sang & Veenstra 1999; Ratinov & Roth 2009.) Outside of spans, the tag is O.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Literal, NamedTuple

Scheme = Literal["iob1", "iob2", "iobes", "bilou", "bmes", "plain"]
OUTSIDE = "O"
LETTERS: dict[str, str] = {"iob1": "BIII", "iob2": "BIIB", "iobes": "BIES", "bilou": "BILU", "bmes": "BMES"}
"""The letters of the first, a middle, the last and the only token of a span; IOB1 has B only between neighbours."""
_STANDARD = {"L": "E", "U": "S", "M": "I"}
_BEGIN, _CLOSED = frozenset("BS"), frozenset("OES")
_PREFIXED = re.compile(r"([BIESLUM])-(.+)", re.DOTALL)


class Span(NamedTuple):
    """Tokens `start` to `end` (exclusive) and their type."""

    start: int
    end: int
    type: str


def split_tag(tag: str) -> tuple[str, str]:
    """The letter of a tag (one of B, I, E, S, O) and its type: `U-PER` gives S and PER."""
    letter, _, type = tag.partition("-")
    return _STANDARD.get(letter, letter), type


def spans(tags: Sequence[str]) -> list[Span]:
    """The spans that tags of any scheme denote, as the script of the CoNLL shared tasks (conlleval) counts them.

    It reads any sequence: a span begins at B and S, after E and S, after O, and where the type changes; it ends before
    a beginning, before O, and after E and S.
    """
    found: list[Span] = []
    begin, before, open_type = 0, OUTSIDE, ""
    for index, tag in enumerate((*tags, OUTSIDE)):
        letter, type = split_tag(tag)
        begins = letter in _BEGIN or before in _CLOSED or type != open_type
        if before != OUTSIDE and (letter == OUTSIDE or begins):
            found.append(Span(begin, index, open_type))
        if letter != OUTSIDE and begins:
            begin = index
        before, open_type = letter, type
    return found


def written(spans: Iterable[Span], length: int, scheme: Scheme) -> list[str]:
    """The tags of `length` tokens with these spans, which do not overlap, in their order."""
    tags = [OUTSIDE] * length
    first, middle, last, only = [*LETTERS[scheme]]
    end, before = 0, ""
    for span in spans:
        touches = span.start == end and span.type == before
        inner = [first, *[middle] * (span.end - span.start - 2), last] if span.end - span.start > 1 else [only]
        if scheme == "iob1":
            inner[0] = first if touches and end else middle
        tags[span.start : span.end] = [f"{letter}-{span.type}" if span.type else letter for letter in inner]
        end, before = span.end, span.type
    return tags


def converted(tags: Sequence[str], scheme: Scheme) -> list[str]:
    """The same spans in another scheme. Plain tags, and those that become plain, stay as they are."""
    return list(tags) if scheme == "plain" else written(spans(tags), len(tags), scheme)


def follows(before: str | None, tag: str | None, scheme: Scheme) -> bool:
    """Whether a tag may follow another one in this scheme; None is the beginning or the end of a sentence."""
    if scheme == "plain":
        return True
    (letter, type), (next_letter, next_type) = split_tag(before or OUTSIDE), split_tag(tag or OUTSIDE)
    same = type == next_type and letter != OUTSIDE
    if scheme == "iob1":
        return next_letter != "B" or same
    if scheme == "iob2":
        return next_letter != "I" or same
    continues = next_letter in ("I", "E")
    return continues == (letter in ("B", "I")) and (same or not continues)


def broken(tags: Sequence[str], scheme: Scheme) -> list[int]:
    """The positions of tags that do not fit what precedes them; the length, if the end is missing."""
    ends = [None, *tags, None]
    return [index for index, pair in enumerate(pairwise(ends)) if not follows(*pair, scheme)]


class SchemeCounts:
    """Counts of tags and of beginnings of spans, from which the scheme of a corpus is recognised."""

    def __init__(self) -> None:
        self.letters: set[str] = set()
        self._others: set[str] = set()
        self._num_inside_first = 0
        self._num_needless_begin = 0

    def add(self, tags: Sequence[str]) -> None:
        """Add a sentence."""
        before, type_before = OUTSIDE, ""
        for tag in tags:
            letter, type = self._counted(tag)
            is_new = before == OUTSIDE or type != type_before
            self._num_inside_first += letter == "I" and is_new
            self._num_needless_begin += letter == "B" and is_new
            before, type_before = letter, type

    def _counted(self, tag: str) -> tuple[str, str]:
        match = _PREFIXED.fullmatch(tag)
        if match is not None:
            self.letters.add(match[1])
            return match[1], match[2]
        self._others.add(tag)
        return tag, ""

    @property
    def scheme(self) -> Scheme:
        """The scheme. Tags without types (B, I, O) count as spans of one type."""
        others = self._others - {OUTSIDE}
        letters = self.letters
        if others:
            if letters or not {"B", OUTSIDE} <= self._others or others - set("BIESLUM"):
                return "plain"
            letters = others
        if not letters:
            return "plain"
        if "M" in letters:
            return "bmes"
        if letters & set("LU"):
            return "bilou"
        if letters & set("ES"):
            return "iobes"
        return "iob1" if self._num_inside_first > self._num_needless_begin else "iob2"
