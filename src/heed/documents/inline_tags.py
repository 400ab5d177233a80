"""How do the marks in a text, tags and placeholders, find their places in its translation? By alignment.

The text is translated without its marks. A pair of tags then goes around the words that those inside it became, as
the links between words say (`heed.decoding.alignment`); a mark that stands alone goes before the word that its
right-hand neighbour became, or behind the one that its left-hand neighbour became. Where that would cross tags, or
there are no links, all marks of the sentence keep their order, at the same share of its words. None is ever lost.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from heed.documents.placeholders import spans

Links = Sequence[tuple[int, int]]
"""(source word, target word), counted from 0; words are separated by white space."""

Span = tuple[int, int]
"""The first character, and the one behind the last."""

_WORD = re.compile(r"\S+")
MOST_LINKED = 200
"""Marks of a sentence that are placed by links, which takes the square of their number."""


@dataclass(frozen=True)
class Mark:
    """Something in a text that is not translated. `place`: the character of the plain text that it stands before."""

    text: str
    place: int
    kind: Literal["open", "close", "alone"] = "alone"
    pair: int = -1
    """The number that both tags of a pair have; -1 for none."""
    glued_left: bool = True
    """Whether it stands right behind the character before it, without a space."""
    glued_right: bool = True


@dataclass(frozen=True)
class _Placed:
    """A mark and the character of the translation that it goes before."""

    mark: Mark
    place: int


def carry(marks: Sequence[Mark], source: str, target: str, links: Links, escape: Callable[[str], str] = str) -> str:
    """The translation of a sentence with its marks. `source` is without them; they come in their order.

    `escape`: how the text between them is written.
    """
    words = [match.span() for match in _WORD.finditer(target)]
    placed = _by_links(marks, source, target, words, links) if links and words and len(marks) <= MOST_LINKED else None
    if placed is None or not _is_nested(placed):
        placed = [_Placed(mark, _in_proportion(mark, source, target, words)) for mark in marks]
        placed = _in_order(placed)
    return _woven(placed, target, escape)


def _by_links(
    marks: Sequence[Mark], source: str, target: str, words: Sequence[Span], links: Links
) -> list[_Placed] | None:
    source_words = [match.span() for match in _WORD.finditer(source)]
    closes = {mark.pair: mark for mark in marks if mark.kind == "close"}
    opens = {mark.pair: mark for mark in marks if mark.kind == "open"}
    placed: dict[int, Span] = {}
    for pair, opening in opens.items():
        end = closes[pair].place if pair in closes else len(source)
        if (span := _span(opening.place, end, source, target, source_words, words, links)) is None:
            return None
        placed[pair] = span
    for pair, closing in closes.items():
        if pair not in opens:
            if (span := _span(0, closing.place, source, target, source_words, words, links)) is None:
                return None
            placed[pair] = span
    out: list[_Placed] = []
    for mark in marks:
        if mark.kind == "alone":
            out.append(_Placed(mark, _alone(mark, source, target, source_words, words, links)))
        else:
            out.append(_Placed(mark, placed[mark.pair][0 if mark.kind == "open" else 1]))
    rank = {"close": 0, "alone": 1, "open": 2}
    return sorted(out, key=lambda item: (item.place, rank[item.mark.kind]))


def _span(
    begin: int, end: int, source: str, target: str, source_words: Sequence[Span],
    words: Sequence[Span], links: Links,
) -> Span | None:  # fmt: skip
    """The characters of the target that those of the source became; None where they became nothing."""
    inside = {n for n, (first, last) in enumerate(source_words) if first < end and last > begin}
    if not inside:
        return None
    if len(inside) == len(source_words):
        return words[0][0], words[-1][1]
    linked = sorted({to for of, to in links if of in inside and to < len(words)})
    if not linked:
        return None
    others = {to for of, to in links if of not in inside}
    run = _longest_run(linked, others)
    first, last = words[run[0]][0], words[run[-1]][1]
    if begin < len(source) and source[begin].isalnum():  # the signs around a word were outside
        ends = dict(spans(target))
        while first < last - 1 and not target[first].isalnum():
            first = ends.get(first, first + 1)
    if end > 0 and source[end - 1].isalnum():
        begins = {behind: start for start, behind in spans(target)}
        while last > first + 1 and not target[last - 1].isalnum():
            last = begins.get(last, last - 1)
    return min(first, last), last


def _longest_run(places: Sequence[int], others: set[int]) -> list[int]:
    """The most of these words that stand together, with none of the others between them."""
    runs = [[places[0]]]
    for place in places[1:]:
        between = range(runs[-1][-1] + 1, place)
        if any(other in others for other in between):
            runs.append([place])
        else:
            runs[-1].append(place)
    return max(runs, key=len)


def _alone(
    mark: Mark, source: str, target: str, source_words: Sequence[Span], words: Sequence[Span], links: Links
) -> int:
    """Where a mark goes that stands alone: beside the word that it is glued to, or else before the next one."""
    place = mark.place
    if not source[:place].strip():
        return words[0][0]
    if not source[place:].strip():
        return words[-1][1]
    right = next(n for n, (_, last) in enumerate(source_words) if last > place)
    first, last = source_words[right]
    if first < place:
        linked = [to for of, to in links if of == right and to < len(words)]
        at = (source[first:place], source[place:last])
        return _inside(*at, target, words[max(linked)]) if linked else _in_proportion(mark, source, target, words)
    before = [to for of, to in links if of == right - 1 and to < len(words)]
    behind = [to for of, to in links if of == right and to < len(words)]
    if before and (not behind or (mark.glued_left and source[place].isspace())):
        return words[max(before)][1]
    return words[min(behind)][0] if behind else _in_proportion(mark, source, target, words)


def _inside(before: str, behind: str, target: str, word: Span) -> int:
    """Where a mark goes that stands inside of a word: beside the same letters or signs, or else behind the word."""
    first, last = word
    text = target[first:last]
    if text.startswith(before):
        return first + len(before)
    if text.endswith(behind):
        return last - len(behind)
    return last


def _in_proportion(mark: Mark, source: str, target: str, words: Sequence[Span]) -> int:
    """At the same share of the words of the target as of the characters of the source."""
    if not words:
        return len(target)
    number = round(mark.place / len(source) * len(words)) if source else 0
    if mark.kind == "close" or number >= len(words):
        return words[max(number, 1) - 1][1]
    return words[number][0]


def _in_order(placed: Iterable[_Placed]) -> list[_Placed]:
    """The marks in their own order, none before the one it follows."""
    out: list[_Placed] = []
    for item in placed:
        out.append(_Placed(item.mark, max(item.place, out[-1].place if out else 0)))
    return out


def _is_nested(placed: Sequence[_Placed]) -> bool:
    """Whether every tag is closed inside of the tag that it was opened in; partners may be in other sentences."""
    here = {item.mark.pair for item in placed if item.mark.kind == "open"}
    stack: list[int] = []
    for item in placed:
        if item.mark.kind == "open":
            stack.append(item.mark.pair)
        elif item.mark.kind == "close" and item.mark.pair in here:
            if not stack or stack.pop() != item.mark.pair:
                return False
        elif item.mark.kind == "close" and stack:
            return False  # what was opened in an earlier sentence closes outside of what was opened here
    closed = {item.mark.pair for item in placed if item.mark.kind == "close"}
    elsewhere = [item.mark.pair for item in placed if item.mark.kind == "close" and item.mark.pair not in here]
    as_before = stack == sorted(stack) and elsewhere == sorted(elsewhere, reverse=True)
    return as_before and not any(pair in closed for pair in stack)


def _woven(placed: Sequence[_Placed], target: str, escape: Callable[[str], str]) -> str:
    """The target with the marks in it, and the spaces beside those that had some."""
    out, done = "", 0
    for item in placed:
        out += escape(target[done : item.place])
        done = item.place
        if not item.mark.glued_left and out and not out[-1].isspace():
            out += " "
        out += item.mark.text
        if not item.mark.glued_right and done < len(target) and not target[done].isspace():
            out += " "
    return out + escape(target[done:])


def without_placeholders(text: str) -> tuple[str, list[Mark]]:
    """The text without its placeholders and the second of two spaces, and the marks that they leave."""
    plain, marks, done = "", list[Mark](), 0
    for begin, end in spans(text):
        plain += _joined(plain, text[done:begin])
        done = end
        left, right = text[:begin][-1:], text[end:][:1]
        marks.append(Mark(text[begin:end], len(plain), glued_left=bool(left.strip()), glued_right=bool(right.strip())))
    return plain + _joined(plain, text[done:]), marks


def _joined(before: str, text: str) -> str:
    """The text as it goes on behind what is before it, without a second space."""
    return text[1:] if before.endswith(" ") and text.startswith(" ") else text
