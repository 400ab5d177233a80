"""How are subtitles, SubRip, translated?

The text of each in one piece, in as many lines as before; lines that all begin with a dash are said by several people
and go one by one. Numbers, times, tags and codes such as `{\\an8}` stay.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from heed.documents.translating import TextTranslator

_DASH = re.compile(r"\s*[-\u2010-\u2015]\s*")


@dataclass(frozen=True)
class _Piece:
    """Lines that are translated together: a subtitle, or what one of its people says, behind a dash."""

    lines: slice
    dash: str
    text: str


def translate_srt(text: str, translator: TextTranslator) -> str:
    """The subtitles with other texts."""
    lines = text.split("\n")
    pieces = [piece for cue in _cues(lines) for piece in _pieces(lines, cue)]
    marked = [piece for piece in pieces if "<" in piece.text]
    plain = [piece for piece in pieces if "<" not in piece.text]
    found = zip(marked, translator.htmls([piece.text for piece in marked]), strict=True)
    outputs = {piece.lines.start: html.unescape(translation.text) for piece, translation in found}
    outputs |= {
        piece.lines.start: output
        for piece, output in zip(plain, translator.lines([piece.text for piece in plain]), strict=True)
    }
    for piece in reversed(pieces):
        ends = ["\r" if line.endswith("\r") else "" for line in lines[piece.lines]]
        broken = _wrapped(piece.dash + outputs[piece.lines.start], len(ends))
        lines[piece.lines] = [line + end for line, end in zip(broken, ends, strict=False)]
    return "\n".join(lines)


def _pieces(lines: Sequence[str], cue: slice) -> Iterator[_Piece]:
    """What of a subtitle is translated together."""
    dashes = [_DASH.match(line) for line in lines[cue]]
    if len(dashes) > 1 and all(dashes):
        for number, dash in enumerate(dashes, start=cue.start):
            assert dash is not None
            yield _Piece(slice(number, number + 1), dash[0], lines[number][dash.end() :].strip())
    else:
        yield _Piece(cue, "", " ".join(line.strip() for line in lines[cue]))


def _cues(lines: Sequence[str]) -> list[slice]:
    """The lines of text of each subtitle: those behind the line of its times, up to an empty one or the next times."""
    cues, begin = [], -1
    for number, line in enumerate([*lines, ""]):
        is_next = "-->" in line
        if begin >= 0 and (is_next or not line.strip()):
            end = number - (is_next and lines[number - 1].strip().isdecimal())
            cues += [slice(begin, end)] if end > begin else []
            begin = -1
        if is_next:
            begin = number + 1
    return cues


def _wrapped(text: str, num_lines: int) -> list[str]:
    """A text in so many lines of like length, or fewer."""
    lines: list[str] = []
    for left in range(num_lines, 1, -1):
        aim = len(text) / left
        spaces = [place for place, char in enumerate(text) if char == " "]
        if not spaces:
            break
        cut = min(spaces, key=lambda place: abs(place - aim))
        lines.append(text[:cut])
        text = text[cut + 1 :]
    return [*lines, text]
