"""Inline tags and placeholders (`codes.py`), and their places in a translation, by word alignment.

A sentence is translated without its tags. A pair of tags then encloses the words that the enclosed words are aligned to
(`heed.inference.alignment`). A single tag goes before the translation of the word on its right, or after that of the
word on its left. Where tags would cross, or without an alignment, all tags of the sentence keep their order, in
proportion to their places in the source. No tag is ever lost. Text without spaces is aligned in proportion to its
characters (`unspaced_words.py`).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate, chain
from typing import Literal

from heed.documents.codes import is_ordered, placeholder_ranges
from heed.documents.unspaced_words import Range, links_of_units, units_of_words, without_signs
from heed.text.language.scripts import is_unspaced
from heed.text.words import is_in_word, may_be_cut

Links = Sequence[tuple[int, int]]
"""(source word, target word), counted from 0; words are separated by white space."""

MAX_ALIGNED = 200
"""Tags of a sentence that are placed by alignment, which takes quadratic time."""
_STOPS = tuple(".!?。！？।॥؟۔։።။")
"""Signs that a model adds at the end of a sentence."""
_NO_BREAK = frozenset("\xa0\u202f\u2007")
"""No-break spaces, which French writes before `:` and inside of its quotation marks."""
_SIGNS_AFTER_SPACE = frozenset(":;!?»")
"""Signs that such a space belongs to."""
_NO_SPACE_BEFORE = _NO_BREAK | frozenset(".,;:!?…)]}" + "".join(_STOPS) + "、，；：）」』】》،؛" + " \t\n\r\f\v")


@dataclass(frozen=True)
class InlineTag:
    """A tag or placeholder, and the character of the plain text that it precedes."""

    text: str
    place: int
    kind: Literal["open", "close", "single"] = "single"
    pair: int = -1
    """A number that the two tags of a pair share; -1 for none."""
    glued_left: bool = True
    """Whether no space separates it from the text on its left."""
    glued_right: bool = True
    is_text: bool = False
    """Whether it is read as a part of the text, as placeholders and computed fields are."""
    space: str = " "
    """The white space on its right, where that is not in the plain text."""


def insert_tags(
    tags: Sequence[InlineTag], source: str, target: str, links: Links, escape: Callable[[str], str] = str
) -> str:
    """A translated sentence with the tags of its source.

    `source` is without them; they come in order. `escape` writes the text between them.
    """
    pair = _SentencePair(source, target, links)
    places = pair.aligned(tags) if links and pair.target_words and len(tags) <= MAX_ALIGNED else None
    if places is None or not _are_nested([tag for tag, _ in places]):
        wanted = pair.spread(tags) if pair.is_cut else [pair.in_proportion(tag) for tag in tags]
        places = [*zip(tags, accumulate(wanted, max), strict=True)]
    places = _with_ordered_placeholders(places, tags)
    return _written(places, source, target, escape)


Places = list[tuple[InlineTag, int]]
"""Tags, and the character of the translation that each precedes."""


class _SentencePair:
    """A sentence and its translation, both without tags, and the links between their words.

    What white space separates is cut into smaller words where a script writes none (`is_cut`).
    """

    def __init__(self, source: str, target: str, links: Links) -> None:
        self.source, self.target = source, target
        of_source, of_target = units_of_words(source), units_of_words(target)
        self.source_words = [*chain(*of_source)]
        self.target_words = [*chain(*of_target)]
        self.is_cut = len(self.source_words) > len(of_source) or len(self.target_words) > len(of_target)
        self.links = [(of, to) for of, to in links if to < len(of_target)]
        if self.is_cut:
            self.links = links_of_units(of_source, of_target, self.links)

    def aligned(self, tags: Sequence[InlineTag]) -> Places | None:
        """The tags by alignment; None if the words in a pair are aligned to nothing."""
        opens = {tag.pair: tag.place for tag in tags if tag.kind == "open"}
        closes = {tag.pair: tag.place for tag in tags if tag.kind == "close"}
        ranges: dict[int, Range] = {}
        for pair in (*opens, *(pair for pair in closes if pair not in opens)):
            enclosed = self._range(opens.get(pair, 0), closes.get(pair, len(self.source)))
            if enclosed is None:
                return None
            ranges[pair] = enclosed
        places = [
            (tag, self._among_spaces(tag) if tag.kind == "single" else self._with_space(tag, ranges[tag.pair]))
            for tag in tags
        ]
        return _in_order(_side_by_side(places, self.target), self.target)

    def _range(self, begin: int, end: int) -> Range | None:
        """The characters of the target that a range of the source is aligned to, if any."""
        inside = {n for n, (first, last) in enumerate(self.source_words) if first < end and last > begin}
        if inside and len(inside) == len(self.source_words):
            return self._without_punctuation(self.target_words[0][0], self.target_words[-1][1], begin, end)
        linked = sorted({to for of, to in self.links if of in inside})
        if not linked:
            return None
        run = _longest_run(linked, others={to for of, to in self.links if of not in inside})
        first, last = self.target_words[run[0]][0], self.target_words[run[-1]][1]
        return self._without_punctuation(first, last, begin, end)

    def _with_space(self, tag: InlineTag, enclosed: Range) -> int:
        """The end of the range that a tag is at, with the space inside of its pair if the source has one there."""
        first, last = enclosed
        if tag.kind == "open":
            has_space = 0 < tag.place < len(self.source) and self.source[tag.place].isspace()
            return len(self.target[:first].rstrip()) if has_space else first
        rest = self.target[last:]
        has_space = 0 < tag.place < len(self.source) and self.source[tag.place - 1].isspace()
        return last + len(rest) - len(rest.lstrip()) if has_space and rest.strip() else last

    def _without_punctuation(self, first: int, last: int, begin: int, end: int) -> Range:
        """The range without the punctuation at its ends, where the source's range has none.

        Characters that the source has in the same word outside of the range stay outside.
        """
        for word_begin, word_end in self.source_words:
            before, after = self.source[word_begin:begin], self.source[end:word_end]
            if word_begin < begin < word_end and self.target.startswith(before, first):
                first = min(first + len(before), last - 1)
            if word_begin < end < word_end and self.target.endswith(after, first, last):
                last = max(last - len(after), first + 1)
        if begin < len(self.source) and is_in_word(self.source[begin]):
            ends = dict(placeholder_ranges(self.target))
            while first < last - 1 and not is_in_word(self.target[first]):
                first = ends.get(first, first + 1)
        if end > 0 and is_in_word(self.source[end - 1]):
            begins = {after: start for start, after in placeholder_ranges(self.target)}
            while last > first + 1 and not is_in_word(self.target[last - 1]):
                last = begins.get(last, last - 1)
        while first > 0 and not may_be_cut(self.target, first):
            first -= 1
        while last < len(self.target) and not may_be_cut(self.target, last):
            last += 1
        return min(first, last), last

    def _among_spaces(self, tag: InlineTag) -> int:
        """Position of a single tag, on the same side of a space before a sign and of a no-break space as in the source.

        Where only the target has a no-break space before a sign (`:` in French), the tag stays next to its word.
        """
        place, source = self._place_of_single(tag), self.source
        begin, end = _spaces_around(self.target, place)
        spaces = self.target[begin:end]
        is_before_sign = bool(spaces) and end < len(self.target) and not _may_follow_space(self.target, end)
        if is_before_sign and not tag.glued_right:
            return begin
        if _NO_BREAK.isdisjoint(spaces):
            return place
        source_begin, source_end = _spaces_around(source, tag.place)
        if spaces == source[source_begin:source_end]:
            return begin + tag.place - source_begin
        return begin if is_before_sign and _NO_BREAK.issuperset(spaces) else place

    def _place_of_single(self, tag: InlineTag) -> int:
        """Position of a single tag: next to the word that it is glued to, or else before the next word."""
        place, source = tag.place, self.source
        right = next((n for n, (_, last) in enumerate(self.source_words) if last > place), None)
        if not self.source_words or place <= self.source_words[0][0]:
            return self.target_words[0][0]
        rest, end = source[place:].strip(), self.target_words[-1][1]
        if not any(map(is_in_word, rest)):  # the tag stays before the sign at the end of the sentence
            sign = self.target[end - 1 : end]
            are_stops = {rest, sign}.issubset(_STOPS)  # also two different ones: `!` and `.`, or `.` and `।`
            if not are_stops and (rest or source.rstrip().endswith(_STOPS)):
                sign = rest
            return end - len(sign) if (sign == rest or sign in _STOPS) and self.target.endswith(sign, 0, end) else end
        assert right is not None
        first, last = self.source_words[right]
        at_right = [to for of, to in self.links if of == right]
        if first < place:
            if not at_right:
                return self.in_proportion(tag)
            return self._inside_word(source[first:place], source[place:last], self.target_words[max(at_right)])
        at_left = [to for of, to in self.links if of == right - 1]
        is_between_units = first == place == self.source_words[right - 1][1]
        if at_left and (not at_right or (tag.glued_left and (source[place].isspace() or is_between_units))):
            begin, end = self.target_words[max(at_left)]
            sign = source[first:last]  # maybe a sign of its own, which the target has at the end of the word before
            is_sign = not any(map(is_in_word, sign)) and not source.endswith(sign, 0, self.source_words[right - 1][1])
            return end - len(sign) if is_sign and self.target.endswith(sign, begin + 1, end) else end
        return self.target_words[min(at_right)][0] if at_right else self.in_proportion(tag)

    def _inside_word(self, before: str, after: str, word: Range) -> int:
        """Position of a tag inside a word: next to the same characters in the target's word, or after that word."""
        first, last = word
        text = self.target[first:last]
        if text.startswith(before) and may_be_cut(text, len(before)):
            return first + len(before)
        return last - len(after) if text.endswith(after) else last

    def in_proportion(self, tag: InlineTag) -> int:
        """Position at the same share of the target's words as of the source's characters."""
        words = self.target_words
        if not words:
            return len(self.target)
        number = round(tag.place / len(self.source) * len(words)) if self.source else 0
        if (tag.kind == "close" and tag.place > 0) or number >= len(words):
            return words[max(number, 1) - 1][1]
        return words[number][0]

    def spread(self, tags: Sequence[InlineTag]) -> list[int]:
        """Positions at the same share of the target's characters as of the source's, between words.

        Pairs with text keep a word if there are enough of them.
        """
        words, source = self.target_words, self.source
        if not words:
            return [len(self.target)] * len(tags)
        bare = without_signs(self.target, words)
        end_of_words = max((place + 1 for place, char in enumerate(source) if is_in_word(char)), default=0)
        positions: list[int] = []
        for tag, number in zip(tags, _boundaries(tags, source, words), strict=True):
            before, after = source[max(tag.place - 1, 0) : tag.place], source[tag.place : tag.place + 1]
            follows = tag.kind == "close" or (tag.kind == "single" and tag.glued_left and before.strip() != "")
            if number == len(words) or (number > 0 and follows):
                is_before_sign = tag.kind == "single" and end_of_words <= tag.place and after != ""
                is_after_word = tag.kind == "close" and is_in_word(before)
                positions.append((bare if is_before_sign or is_after_word else words)[number - 1][1])
            else:
                positions.append((bare if tag.kind == "open" and is_in_word(after) else words)[number][0])
        return positions


def _boundaries(tags: Sequence[InlineTag], source: str, words: Sequence[Range]) -> list[int]:
    """The number of words of the target before each tag, in proportion to their characters.

    The numbers do not fall, and that of a closing tag is higher than that of its opening tag if there is text between.
    """
    ends = [0, *accumulate(last - first for first, last in words)]
    num_before = [0, *accumulate(not char.isspace() for char in source)]  # characters of the source
    scale = ends[-1] / max(num_before[-1], 1)
    opened: dict[int, int] = {}
    partners: dict[int, int] = {}  # the closing tag of an opening one, with text between them
    numbers: list[int] = []
    for n, tag in enumerate(tags):
        aim = min(num_before[tag.place] * scale, ends[-1])
        number = bisect_left(ends, aim)
        number = max([number - (number > 0 and 2 * aim < ends[number - 1] + ends[number]), *numbers[-1:]])
        if tag.kind == "open":
            opened[tag.pair] = n
        elif tag.kind == "close" and tag.pair in opened:
            first = opened[tag.pair]
            if num_before[tag.place] > num_before[tags[first].place]:
                partners[first] = n
                number = max(number, numbers[first] + 1)
        numbers.append(number)
    most = len(words)
    for n in range(len(tags) - 1, -1, -1):
        most = min(most, numbers[partners[n]] - 1 if n in partners else most)
        most = numbers[n] = max(0, min(most, numbers[n]))
    return numbers


def _side_by_side(places: Places, target: str) -> Places:
    """The places, with neighbouring single tags in the same white space as far on the left as the last of them."""
    places = list(places)
    for n in range(len(places) - 1, 0, -1):
        (left, before), (right, place) = places[n - 1], places[n]
        if left.kind == right.kind == "single" and target[place:before].isspace():
            places[n - 1] = left, place
    return places


def _in_order(places: Places, target: str) -> Places:
    """Tags in the order of their places; at one place, closing, single, opening ones.

    A single tag that is the first or the last in a pair, before or after its text, stays inside.
    """
    ranked = [(place, {"close": 0, "single": 1, "open": 2}[tag.kind]) for tag, place in places]
    for n in range(1, len(places)):
        if (ranked[n][1], ranked[n - 1][1]) == (1, 2) and places[n][0].place == places[n - 1][0].place:
            ranked[n] = ranked[n - 1]
    for n in range(len(places) - 2, -1, -1):
        if (ranked[n][1], ranked[n + 1][1]) == (1, 0) and places[n][0].place == places[n + 1][0].place:
            end = ranked[n + 1]
            last = n + 1
            if target[end[0] : ranked[n][0]].isspace():  # the pair ends after the space before the single tag
                while last < len(places) and ranked[last] == end:
                    ranked[last] = ranked[n][0], 0
                    last += 1
            ranked[n] = ranked[n + 1]
    order = sorted(range(len(places)), key=ranked.__getitem__)
    return [(places[n][0], ranked[n][0]) for n in order]


def _with_ordered_placeholders(places: Places, tags: Sequence[InlineTag]) -> Places:
    """The places, with those placeholders that get their values in order (`%s`) in the order of the source."""
    ordered = iter([tag for tag in tags if is_ordered(tag.text)])
    return [(next(ordered) if is_ordered(tag.text) else tag, place) for tag, place in places]


def _spaces_around(text: str, place: int) -> Range:
    """The white space that a place is in, at the beginning of, or at the end of."""
    after = text[place:]
    return len(text[:place].rstrip()), len(text) - len(after.lstrip())


def _longest_run(words: Sequence[int], others: set[int]) -> list[int]:
    """The longest run of these words with none of the others in between."""
    runs = [[words[0]]]
    for word in words[1:]:
        if others.isdisjoint(range(runs[-1][-1] + 1, word)):
            runs[-1].append(word)
        else:
            runs.append([word])
    return max(runs, key=len)


def _are_nested(tags: Sequence[InlineTag]) -> bool:
    """Whether every tag closes inside the pair that it was opened in. Partners may be in other sentences."""
    opened = {tag.pair for tag in tags if tag.kind == "open"}
    closed = [tag.pair for tag in tags if tag.kind == "close"]
    stack: list[int] = []
    for tag in tags:
        if tag.kind == "open":
            stack.append(tag.pair)
        elif tag.kind == "close" and tag.pair in opened:
            if not stack or stack.pop() != tag.pair:
                return False
        elif tag.kind == "close" and stack:
            return False  # a tag of an earlier sentence would close outside of one opened here
    elsewhere = [pair for pair in closed if pair not in opened]
    in_order = stack == sorted(stack) and elsewhere == sorted(elsewhere, reverse=True)
    return in_order and not set(stack) & set(closed)


def _written(places: Places, source: str, target: str, escape: Callable[[str], str]) -> str:
    """The target with its tags, and with the spaces around those that had some.

    A placeholder has a space before or after a word, too, unless the source has a word there without one.
    """
    out, done = "", 0
    for number, (tag, place) in enumerate(places):
        out += escape(target[done:place])
        done = place
        is_new_word = tag.is_text and _needs_space(target[done - 1 : done], source[: tag.place][-1:])
        if (is_new_word or not tag.glued_left) and out and not out[-1].isspace():
            before = "" if places[number - 1][1] == place and number else source[: tag.place][-1:]
            out += before if before in _NO_BREAK else " "
        out += tag.text
        is_new_word = tag.is_text and _needs_space(target[done : done + 1], source[tag.place :][:1])
        precedes_tag = not tag.glued_right and _single_follows(places, number)
        if precedes_tag or ((is_new_word or not tag.glued_right) and _may_follow_space(target, done)):
            sign = source[tag.place + 1 : tag.place + 2]
            is_of_sign = tag.space in _NO_BREAK and sign in _SIGNS_AFTER_SPACE and not target.startswith(sign, done)
            out += " " if is_of_sign else tag.space
    return out + escape(target[done:])


def _needs_space(target: str, source: str) -> bool:
    """Whether a character next to a placeholder begins or ends a word, unlike the one in the source.

    Nor does the source show it in a script without spaces, if the target is in another one.
    """
    return is_in_word(target) and (not is_in_word(source) or (is_unspaced(source) and not is_unspaced(target)))


def _single_follows(places: Places, number: int) -> bool:
    """Whether another single tag comes before the next character of the text."""
    for tag, place in places[number + 1 : number + 1 + MAX_ALIGNED]:
        if place > places[number][1] or tag.kind == "close":
            return False
        if tag.kind == "single":
            return True
    return False


def _may_follow_space(text: str, place: int) -> bool:
    """Whether what begins here is a word (`.NET` is one), and not a space or a sign that belongs to the word before."""
    sign = text[place : place + 1]
    begins_word = not sign.isspace() and is_in_word(text[place + 1 : place + 2])
    return bool(sign) and (sign not in _NO_SPACE_BEFORE or begins_word)


def without_placeholders(text: str) -> tuple[str, list[InlineTag]]:
    """The text without its placeholders, and the placeholders as tags. Of two spaces around one, one is kept."""
    plain, tags, done = "", list[InlineTag](), 0
    for begin, end in placeholder_ranges(text):
        plain += _continued(plain, text[done:begin])
        done = end
        before, after = text[max(0, begin - 1) : begin], text[end : end + 1]
        if plain.endswith(" ") and after in _NO_BREAK:  # which belongs to the sign after it
            plain = plain[:-1]
        space = after if after.isspace() else " "
        glued = bool(before.strip()), bool(after.strip())
        tags.append(InlineTag(text[begin:end], len(plain), "single", -1, *glued, is_text=True, space=space))
    return plain + _continued(plain, text[done:]), tags


def _continued(before: str, text: str) -> str:
    """The text without its first space, if the text before it ends with one."""
    return text[1:] if before[-1:].isspace() and text[:1].isspace() else text
