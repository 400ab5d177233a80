"""Sentence splitting that keeps all white space, so that translations can be put back in place.

A line break always ends a sentence, because it could not be restored inside a translation. Within a line, a full stop
or another end mark ends a sentence unless it follows an abbreviation, an initial or an ordinal number, or precedes a
word in lower case. In Thai, and where sentences end with a danda (।), a full stop only abbreviates. In doubt the text
stays in one piece: a model translates two sentences better than half of one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from heed.core.errors import UsageError
from heed.text.abbreviations import ABBREVIATIONS, ALL_ABBREVIATIONS, Abbreviations
from heed.text.language.scripts import is_joined


@dataclass(frozen=True)
class Piece:
    """A span of text: a sentence to translate, or the white space between two sentences."""

    text: str
    is_sentence: bool


LINE_BREAKS = "\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029"
_CLOSERS = "\"'”’“‘»›«)\\]}＂＇〉》」』】〕）］｝"
_STOPS = ".!?…‼⁇⁈⁉؟۔։‽"  # end a sentence before white space
_WIDE_STOPS = "。！？｡।॥។៕။።፧"  # always end one: these scripts write no space, or have no other use for the mark
_LINE = re.compile(f"[{LINE_BREAKS}]+")
# Possessive (++) and anchored at the first of several stops, so that "...................." takes linear time.
_STOP = re.compile(
    rf"(?<![{_STOPS}])(?P<stop>[{_STOPS}]++)(?P<closers>[{_CLOSERS}]*+(?:[ \u00a0\u202f][»›](?!\S))?)(?=\s)"
    rf"|(?<![{_WIDE_STOPS}])[{_WIDE_STOPS}]++[{_CLOSERS}]*+(?!\s?[とっ、，,])"
)
ENDS_WITHOUT_SPACE = re.compile(f"[{_WIDE_STOPS}][{_CLOSERS}]*+\\Z")
"""A sentence that the next one may follow without a space."""
END_MARKS = tuple(_STOPS + _WIDE_STOPS)
"""The marks that end sentences."""
_QUOTED = re.compile("「[^「」]*」|『[^『』]*』|（[^（）]*）|《[^《》]*》")
_LETTERS_WITH_STOPS = re.compile(r"(?:[^\W\d_]\.)*[^\W\d_]\Z")
_LETTER_AND_STOP = re.compile(r"[^\W\d_]\.\Z")
_OPENERS = "\"'“„‚‘«‹([{¿¡»›"
_NEXT_WORD = re.compile(r"[\W_]{0,40}(?P<word>\w+(?:['’]\w+)*)")
_THAI = "\u0e00-\u0e7f"
_INDIC = "\u0900-\u0963\u0966-\u0a7f\u0b00-\u0b7f"  # Devanagari, Bengali, Gurmukhi, Odia: scripts with a danda
_MARATHI_AND_KONKANI = ("mr", "kok", "gom")  # in Devanagari, with full stops
_FULL_STOP_AT_END = re.compile(rf"\.[{_CLOSERS}\s]*\Z")
_REACH = 100
"""Characters examined before a stop; no abbreviation is longer."""


def split_paragraph(text: str, language: str | None = None) -> list[Piece]:
    """The pieces of a text: `"".join(piece.text for piece in pieces) == text` for every text.

    `language` is a code such as "de" or "de-AT"; without it, or for one not in ABBREVIATIONS, the words of all
    languages apply. A sentence has no white space at its ends and no line break inside.
    """
    code = re.split("[-_]", language or "")[0].lower()
    words = ABBREVIATIONS.get(code, ALL_ABBREVIATIONS)
    pieces: list[Piece] = []
    end = 0
    for start, stop in _sentence_spans(text, words, code):
        if start > end:
            pieces.append(Piece(text[end:start], is_sentence=False))
        pieces.append(Piece(text[start:stop], is_sentence=True))
        end = stop
    if end < len(text):
        pieces.append(Piece(text[end:], is_sentence=False))
    return pieces


def split_long(text: str, max_characters: int, language: str | None = None) -> list[Piece]:
    """As `split_paragraph`, with longer sentences cut to `max_characters`, at a space if there is one.

    Without one they are cut before a letter, not between it and its marks.
    """
    return [short for piece in split_paragraph(text, language) for short in _shortened(piece, max_characters)]


def _shortened(piece: Piece, max_characters: int) -> Iterator[Piece]:
    text, start = piece.text, 0
    while piece.is_sentence and len(text) - start > max_characters:
        first, last = start + max(1, max_characters // 2), start + max_characters
        end = text.rfind(" ", first, last)
        if end < 0:
            places = range(last, first - 1, -1)
            end = next((place for place in places if not is_joined(text[place - 1], text[place])), last)
        stop = end
        while text[end - 1].isspace():
            end -= 1
        while text[stop].isspace():
            stop += 1
        yield Piece(text[start:end], is_sentence=True)
        if end < stop:
            yield Piece(text[end:stop], is_sentence=False)
        start = stop
    yield Piece(text[start:], piece.is_sentence)


def restore(pieces: Sequence[Piece], translations: Sequence[str]) -> str:
    """The text with its sentences replaced by their translations and all white space unchanged."""
    expected = sum(piece.is_sentence for piece in pieces)
    if len(translations) != expected:
        raise UsageError(f"{len(translations)} translations for {expected} sentences; give one for each.")
    remaining = iter(translations)
    return "".join(next(remaining) if piece.is_sentence else piece.text for piece in pieces)


def _sentence_spans(text: str, words: Abbreviations, code: str) -> Iterator[tuple[int, int]]:
    """The start and end of each sentence, without the white space around it."""
    line_start = 0
    for line_end, next_start in [*(match.span() for match in _LINE.finditer(text)), (len(text), len(text))]:
        line = text[line_start:line_end]
        cuts = [0, *_cuts(line, words, _where_stops_abbreviate(line, code)), len(line)]
        for start, stop in pairwise(cuts):
            sentence = line[start:stop]
            if stripped := sentence.strip():
                first = line_start + start + len(sentence) - len(sentence.lstrip())
                yield first, first + len(stripped)
        line_start = next_start


def _where_stops_abbreviate(line: str, code: str) -> re.Pattern[str]:
    """The letters between which a full stop ends no sentence in this line.

    Those who write Hindi with full stops instead of dandas end the line with one, too.
    """
    has_full_stops = "।" not in line and _FULL_STOP_AT_END.search(line)
    return re.compile(f"[{_THAI}]" if has_full_stops or code in _MARATHI_AND_KONKANI else f"[{_THAI}{_INDIC}]")


def _cuts(line: str, words: Abbreviations, abbreviated: re.Pattern[str]) -> Iterator[int]:
    """The positions in a line where a new sentence may start."""
    sentence_start = 0
    for match in _STOP.finditer(_QUOTED.sub(_hide_stops, line)):
        if match["stop"] is None or _ends_sentence(line, sentence_start, match, words, abbreviated):
            sentence_start = match.end()
            yield sentence_start


def _hide_stops(quoted: re.Match[str]) -> str:
    """The quotation without stops except at its end, since its content belongs to the surrounding sentence."""
    inside = quoted[0][:-2]
    return re.sub(f"[{_WIDE_STOPS}]", "_", inside) + quoted[0][-2:]


def _ends_sentence(
    line: str, sentence_start: int, match: re.Match[str], words: Abbreviations, abbreviated: re.Pattern[str]
) -> bool:
    following = _NEXT_WORD.match(line, match.end())
    if following is None or _is_lower(following["word"][0]):  # None: only punctuation is left, part of this one
        return False
    if match["closers"]:
        return True
    if match["stop"] != ".":
        stands_alone = match.start() > sentence_start and line[match.start() - 1].isspace()
        is_ellipsis = not match["stop"].strip(".…")
        return not (is_ellipsis and stands_alone)  # "so ... Er kam": replaces a word
    if abbreviated.match(line, match.start() - 1) and abbreviated.match(following["word"]):
        return False
    before = line[max(sentence_start, match.start() - _REACH) : match.start()].split()
    is_initial = len(following["word"]) == 1 and line[following.end() : following.end() + 1] == "."
    starts = following["word"] in words.starters and not is_initial
    return not before or _stop_ends(before, following["word"][0].isdigit(), starts, words)


def _stop_ends(before: Sequence[str], number_follows: bool, starter_follows: bool, words: Abbreviations) -> bool:
    """Whether a full stop after the words `before` ends the sentence, if no word in lower case follows."""
    last = _last_word(before)
    if last in words.never or (last in words.numbered and number_follows):
        return False
    if last in words.seldom:
        return starter_follows
    if last.isdigit():
        return len(before) > 1 and (not words.ordinals or len(last) > 2 or starter_follows)
    if _LETTERS_WITH_STOPS.match(last):
        return starter_follows and not _is_lower(last[0])
    other_case = last.capitalize() if last.isupper() else last[:1].lower() + last[1:]  # "DR. SMITH", "Vgl. Abb. 3"
    return other_case not in words.never


def _is_lower(char: str) -> bool:
    """Whether a letter is in lower case and has a capital, which Georgian letters do not have in sentences."""
    return char.islower() and char.title() != char


def _last_word(before: Sequence[str]) -> str:
    """The word before the stop without opening punctuation; "z. B" counts as one word, "z.B"."""
    first = len(before) - 1
    while first > 0 and _LETTER_AND_STOP.match(before[first - 1]):
        first -= 1
    return "".join(before[first:]).lstrip(_OPENERS)
