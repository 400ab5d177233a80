"""Subtitles (SubRip and WebVTT): translates their texts.

The text of each subtitle is translated as a whole and wrapped to as many lines as before, at spaces or, in scripts that
write none, between characters; lines of such scripts are joined without a space. A line that ends a sentence
still does, so no sentence moves to another line. Lines that all begin with a dash belong to several speakers and are
translated one by one. Numbers, times, settings, notes, styles, and codes such as `{\\an8}` stay; tags, those of voices
and of times inside a text too, move with their words (`messages.py`).
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

from heed.core.errors import DataError
from heed.documents.file_format import FileContext, TextFormat
from heed.documents.messages import translate_messages
from heed.documents.text_translator import TextTranslator
from heed.documents.unspaced_words import may_separate
from heed.text.language.scripts import is_east_asian, is_unspaced
from heed.text.sentences import END_MARKS

_CODE = r"\{\\[^{}\n]*\}"
_CODES = re.compile(rf"(?:[^\S\r]*{_CODE})*")
_DASH = re.compile(rf"(?:[^\S\r]*(?:{_CODE}|<[^>\n]*>))*[^\S\r]*[-\u2010-\u2015][^\S\r]*")
_TAG = re.compile(r"<[^<>\n]*>")
_AFTER_END = " \t\r\"'»”’)]"
_INVISIBLE = re.compile(rf"{_CODE}|<[^>\n]*>")
_CLOSING = frozenset("、。，！？；：）」』】》〉…")
"""Signs of Chinese and Japanese behind which a line may end as well as at a space."""


@dataclass(frozen=True)
class _Piece:
    """Lines that are translated together: a subtitle, or the line of one speaker."""

    lines: slice
    before: str
    """Codes and a dash before the text, which stay."""
    text: str


def translate_srt(text: str, translator: TextTranslator, context: FileContext) -> str:
    """Translate subtitles."""
    return _translated(text, translator, may_have_gaps=True)


def _translated(text: str, translator: TextTranslator, may_have_gaps: bool) -> str:
    line_end = "\n" if "\n" in text else "\r"
    lines = text.split(line_end)
    cues = _cues(lines, may_have_gaps)
    pieces = [piece for cue in translator.checked(cues) for piece in _pieces(lines, cue)]
    translations = translate_messages([piece.text for piece in pieces], translator)
    outputs = {piece.lines.start: output for piece, output in zip(pieces, translations, strict=True)}
    for piece in reversed([each for each in pieces if outputs[each.lines.start] != each.text]):
        ends = ["\r" if line.endswith("\r") else "" for line in lines[piece.lines]]
        broken = _wrapped(piece.before + outputs[piece.lines.start], len(ends))
        lines[piece.lines] = [line + end for line, end in zip(broken, ends, strict=False)]
    return line_end.join(lines)


def translate_vtt(text: str, translator: TextTranslator, context: FileContext) -> str:
    """Translate subtitles that begin with WEBVTT. Raises DataError for others."""
    if not text.startswith("WEBVTT"):
        raise DataError(f"{context.name}: a .vtt file starts with WEBVTT. Name a SubRip file .srt.")
    return _translated(text, translator, may_have_gaps=False)


SUBTITLES = TextFormat(write=translate_srt)
WEB_SUBTITLES = TextFormat(write=translate_vtt)


def _pieces(lines: Sequence[str], cue: slice) -> Iterator[_Piece]:
    """The parts of a subtitle that are translated separately."""
    dashes = [_DASH.match(line) for line in lines[cue]]
    if len(dashes) > 1 and all(dashes):
        for number, dash in enumerate(dashes, start=cue.start):
            assert dash is not None
            yield _Piece(slice(number, number + 1), dash[0], lines[number][dash.end() :].strip())
    else:
        begin = cue.start
        for end in range(cue.start + 1, cue.stop + 1):
            if end == cue.stop or _ends_sentence(lines[end - 1]):
                codes = _CODES.match(lines[begin])
                assert codes is not None
                texts = [lines[begin][codes.end() :], *lines[begin + 1 : end]]
                yield _Piece(slice(begin, end), codes[0], _one_line(texts))
                begin = end


def _one_line(lines: Sequence[str]) -> str:
    """Lines with a space between them, or none between characters of a script that writes none."""
    out, before = "", ""
    for line in lines:
        shown = _INVISIBLE.sub("", line).strip()
        is_unspaced_there = before and shown and _has_no_space(before[-1]) and _has_no_space(shown[0])
        out += ("" if is_unspaced_there or not out else " ") + line.strip()
        before = shown or before
    return out


def _has_no_space(char: str) -> bool:
    return is_unspaced(char) or is_east_asian(char)


def _ends_sentence(line: str) -> bool:
    return _TAG.sub("", line).rstrip(_AFTER_END).endswith(END_MARKS)


def _cues(lines: Sequence[str], may_have_gaps: bool) -> list[slice]:
    """The text lines of each subtitle: those after its times, up to an empty line or the next times.

    `may_have_gaps`: what follows an empty line is another part of its text. In WebVTT it is a note or a style.
    """
    cues, begin = [], -1
    for number, line in enumerate([*lines, ""]):
        is_next = "-->" in line
        if begin >= 0 and (is_next or not line.strip()):
            end = number - (is_next and lines[number - 1].strip().isdecimal())
            cues += [slice(begin, end)] if end > begin else []
            begin = number + 1 if may_have_gaps else -1
        if is_next:
            begin = number + 1
    return cues


def _wrapped(text: str, num_lines: int) -> list[str]:
    """A text in at most this many lines of similar length. Tags and codes have no length and are not broken."""
    visible = _INVISIBLE.sub(lambda match: "\0" * len(match[0]), text)
    length = [0, *accumulate(char != "\0" for char in visible)]
    after_signs: list[int] = []
    in_words: list[int] = []
    for place, (before, after) in enumerate(pairwise(visible), start=1):
        if after == " " or (before in _CLOSING and after not in _CLOSING and _has_no_space(after)):
            after_signs.append(place)
        elif is_unspaced(before) and is_unspaced(after) and may_separate(before, after):
            in_words.append(place)
    lines: list[str] = []
    begin = 0
    for left in range(num_lines, 1, -1):
        share = (length[-1] - length[begin]) / left
        costs: dict[int, float] = {}
        for places, further in ((after_signs, 0.0), (in_words, share / 4)):
            first = bisect_right(places, begin)
            after_aim = bisect_left(places, length[begin] + share, first, key=lambda place: length[place])
            for place in places[max(first, after_aim - 1) : after_aim + 1]:
                costs[place] = abs(length[place] - length[begin] - share) + further
        if not costs:
            break
        cut = min(costs, key=costs.__getitem__)
        lines.append(text[begin:cut])
        begin = cut + (text[cut] == " ")
    return [*lines, text[begin:]]
