"""Text without spaces between words, for the places of inline tags and the ends of lines.

Word alignment links what white space separates, which may be a whole sentence in Japanese or Thai. Such a word is cut
into units: its characters, each with the marks, small kana and signs that belong to it. Links of words become links of
units, in proportion to their characters.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate

from heed.documents.codes import placeholder_ranges
from heed.text.language.scripts import is_east_asian, is_unspaced
from heed.text.words import is_in_word, may_be_cut

Range = tuple[int, int]
"""The first character, and the one after the last."""

_NOT_FIRST = frozenset("ぁぃぅぇぉっゃゅょゎァィゥェォッャュョヮヵヶーゝゞヽヾ々・ﾞﾟｰｧｨｩｪｫｬｭｮｯะาำๅๆฯະາຳ")
"""Small and lengthening kana, signs of repetition, and vowels behind their consonant, with which no line begins."""
_NOT_LAST = frozenset("เแโใไເແໂໃໄ")
"""Vowels before their consonant, with which no line ends."""
_JOINS = 9
"""The combining class of signs that join two consonants."""
_WORD = re.compile(r"\S+")


def may_separate(before: str, after: str) -> bool:
    """Whether a line may end, or a tag stand, between two characters of unspaced words."""
    return (
        before not in _NOT_LAST
        and after not in _NOT_FIRST
        and unicodedata.combining(before) != _JOINS
        and not unicodedata.category(after).startswith("M")
    )


def units_of_words(text: str) -> list[list[Range]]:
    """The units of each word that white space separates. A word without characters of unspaced scripts is one unit."""
    words = [match.span() for match in _WORD.finditer(text)]
    if text.isascii() or not any(map(is_unspaced, text)):
        return [[word] for word in words]
    inside = {place for begin, end in placeholder_ranges(text) for place in range(begin + 1, end)}
    units: list[list[Range]] = []
    for begin, end in words:
        cuts = [place for place in range(begin + 1, end) if place not in inside and _begins_unit(text, place)]
        units.append([*zip([begin, *cuts], [*cuts, end], strict=True)])
    return units


def _begins_unit(text: str, place: int) -> bool:
    """Whether a unit begins at a place inside a word: with a letter, a digit or an opening bracket."""
    before, after = text[place - 1], text[place]
    is_at_unspaced = is_unspaced(before) or is_unspaced(after) or (is_east_asian(before) and not before.isalnum())
    return (
        is_at_unspaced
        and (after.isalnum() or _opens(after))
        and not _opens(before)
        and may_separate(before, after)
        and may_be_cut(text, place)
    )


def _opens(char: str) -> bool:
    return unicodedata.category(char) in ("Ps", "Pi")


def without_signs(text: str, units: Sequence[Range]) -> list[Range]:
    """Each unit without the signs at its ends, unless it has nothing else or is a part of a placeholder."""
    kept = {place for begin, end in placeholder_ranges(text) for place in range(begin, end)}
    found: list[Range] = []
    for first, last in units:
        words = [place for place in range(first, last) if place in kept or is_in_word(text[place])]
        bare = (words[0], words[-1] + 1) if words else (first, last)
        found.append(bare if all(may_be_cut(text, place) for place in bare) else (first, last))
    return found


def links_of_units(
    source: Sequence[Sequence[Range]], target: Sequence[Sequence[Range]], links: Sequence[tuple[int, int]]
) -> list[tuple[int, int]]:
    """Links between the units of two texts from the links between their words.

    Words that are linked to each other, directly or through others, form a group. Where one of them has several units,
    the units of the group are linked in proportion to their characters.
    """
    first_sources = [0, *accumulate(map(len, source))]
    first_targets = [0, *accumulate(map(len, target))]
    found: list[tuple[int, int]] = []
    for group in _groups([*links, *_further_links(source, target, links)]):
        of_words, to_words = sorted({of for of, _ in group}), sorted({to for _, to in group})
        if all(len(source[of]) == 1 for of in of_words) and all(len(target[to]) == 1 for to in to_words):
            found += [(first_sources[of], first_targets[to]) for of, to in group]
            continue
        of_units = [first_sources[of] + n for of in of_words for n in range(len(source[of]))]
        to_units = [first_targets[to] + n for to in to_words for n in range(len(target[to]))]
        lengths = (
            [last - first for of in of_words for first, last in source[of]],
            [last - first for to in to_words for first, last in target[to]],
        )
        found += [(of_units[of], to_units[to]) for of, to in _in_proportion(*lengths)]
    return sorted(found)


def _further_links(
    source: Sequence[Sequence[Range]], target: Sequence[Sequence[Range]], links: Sequence[tuple[int, int]]
) -> list[tuple[int, int]]:
    """Links of the words without any, to the unspaced word that the word before them is linked to.

    Alignment by attention links each word of the target to one of the source, also if it is the translation of many.
    """
    targets = {of: to for of, to in links if len(source[of]) == 1 < len(target[to])}
    linked = {of for of, _ in links}
    found: list[tuple[int, int]] = []
    last = min(linked, default=0)
    for word in range(len(source)):
        if word in linked:
            last = word
        elif last in targets:
            found.append((word, targets[last]))
    return found


def _groups(links: Sequence[tuple[int, int]]) -> list[list[tuple[int, int]]]:
    """The links, in groups that share no word."""
    parents: dict[tuple[str, int], tuple[str, int]] = {}

    def root(word: tuple[str, int]) -> tuple[str, int]:
        while (parent := parents.setdefault(word, word)) != word:
            parents[word] = parents[parent]
            word = parent
        return word

    for of, to in links:
        parents[root(("source", of))] = root(("target", to))
    groups: dict[tuple[str, int], list[tuple[int, int]]] = {}
    for of, to in links:
        groups.setdefault(root(("source", of)), []).append((of, to))
    return [*groups.values()]


def _in_proportion(source: Sequence[int], target: Sequence[int]) -> set[tuple[int, int]]:
    """Links of units with these lengths: of each unit with the one that the middle of it falls into."""
    source_ends, target_ends = [*accumulate(source)], [*accumulate(target)]
    scale = target_ends[-1] / source_ends[-1]
    forward = {
        (n, min(bisect_right(target_ends, (end - length / 2) * scale), len(target) - 1))
        for n, (end, length) in enumerate(zip(source_ends, source, strict=True))
    }
    backward = {
        (min(bisect_right(source_ends, (end - length / 2) / scale), len(source) - 1), n)
        for n, (end, length) in enumerate(zip(target_ends, target, strict=True))
    }
    return forward | backward
