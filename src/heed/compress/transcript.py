"""How do bytes become tokens, so that they come back exactly?

A text is cut into lines, a line into the tokens that the model was trained on. What a tokenizer would change is kept
beside them as bytes: an unknown word or character behind `<unk>`, and a line that has no exact tokens (bytes that are
not UTF-8, odd spaces between words) whole, behind a token that no model says, `<pad>`.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

from heed.text.tokenizers import SPELLED, LineEnd, Tokenizer
from heed.text.vocabulary import Vocabulary

LITERAL, END, UNKNOWN = Vocabulary.pad_id, Vocabulary.eos_id, Vocabulary.unk_id


@dataclass(frozen=True)
class Item:
    """A token, with bytes of its own behind `LITERAL` and `UNKNOWN`; an unknown piece without is spelled as usual."""

    token: int
    literal: bytes = b""


Piece = list[Item]
"""What a model reads from a fresh start: a line, or a part of a text."""


@dataclass(frozen=True)
class Layout:
    """What the tokens do not tell of a text."""

    unended: bool = False
    """The last line has no line feed."""
    framed: bool = False
    """Every line has a space before and behind it."""


class Transcriber:
    """Bytes to pieces and back, for one tokenizer. `line_end`: as the model was trained; None: on lines alone."""

    def __init__(self, tokenizer: Tokenizer, line_end: LineEnd | None, may_frame: bool = False) -> None:
        self.tokenizer = tokenizer
        self.line_end = line_end
        self.may_frame = may_frame
        self._spelled = tokenizer.bytes_of(range(len(tokenizer.vocabulary)))
        self._unknown = self._spelled[UNKNOWN]
        self._between = b" " if self._unknown.endswith(b" ") else b""

    # --- to items ---------------------------------------------------------------------------------------

    def pieces(self, data: bytes, num_parts: int = 1) -> tuple[list[Piece], Layout]:
        """The pieces of a text: its lines, or `num_parts` of it; none is empty."""
        lines = data.split(b"\n")
        tail = lines.pop()
        all_lines = [*lines, tail] if tail else lines
        may_frame = self.may_frame and self.line_end != "newline"  # there a line's spaces are characters as others
        framed = may_frame and bool(all_lines) and all(_is_framed(line) for line in all_lines)
        layout = Layout(bool(tail), framed)
        if framed:
            all_lines = [line[1:-1] for line in all_lines]
        ended = [self._ended(line, number < len(lines)) for number, line in enumerate(all_lines)]
        if self.line_end is None:
            return ended, layout
        parts = ([item for items in part for item in items] for part in _parts(ended, num_parts))
        return [part for part in parts if part], layout

    def _ended(self, line: bytes, has_end: bool) -> Piece:
        """The items of a line with its end; a line that stands alone always has one."""
        if self.line_end in (None, "eos"):
            return self._items(line) + [Item(END)] * (has_end or self.line_end is None)
        if self.line_end == "newline":
            return self._items(line + SPELLED["newline"].encode() * has_end)
        return self._items(line) + [Item(LITERAL, b"\n")] * has_end

    def _items(self, line: bytes) -> Piece:
        """Items that are spelled exactly as the line."""
        try:
            items = self._tokens(line.decode())
        except UnicodeDecodeError:
            return [Item(LITERAL, line)]
        return items if self._bytes(items) == line else [Item(LITERAL, line)]

    def _tokens(self, text: str) -> Piece:
        """The tokens of a text; behind unknown ones what they stand for, where that can be told."""
        [ids] = self.tokenizer.encode([text])
        if UNKNOWN not in ids:
            return [Item(id) for id in ids]
        units = text.split() if self._between else list(text)
        if len(units) != len(ids):
            return [Item(id) for id in ids]
        usual = self._unknown.removesuffix(self._between)
        spelled = (unit.encode() for unit in units)
        return [
            Item(id, b"" if id != UNKNOWN or unit == usual else unit) for id, unit in zip(ids, spelled, strict=True)
        ]

    # --- back to bytes ----------------------------------------------------------------------------------

    def data(self, pieces: Sequence[Piece], layout: Layout) -> bytes:
        """The text of all pieces."""
        if self.line_end is None:
            lines = [self._bytes(piece[:-1]) for piece in pieces]
            ends = b"\n" if lines and not layout.unended else b""
            return b"\n".join(_reframed(line, layout) for line in lines) + ends
        return b"".join(self._part(piece, layout) for piece in pieces)

    def _part(self, piece: Piece, layout: Layout) -> bytes:
        if self.line_end == "newline":
            return self._bytes(piece)
        end = Item(END) if self.line_end == "eos" else Item(LITERAL, b"\n")
        *lines, tail = _split(piece, end)
        text = b"".join(_reframed(self._bytes(line), layout) + b"\n" for line in lines)
        return text + (_reframed(self._bytes(tail), layout) if tail else b"")

    def _bytes(self, items: Sequence[Item]) -> bytes:
        spelled = b"".join(map(self._spell, items))
        last_is_word = bool(items) and items[-1].token != LITERAL
        return spelled.removesuffix(self._between) if last_is_word else spelled

    def _spell(self, item: Item) -> bytes:
        if item.token == LITERAL:
            return item.literal
        return item.literal + self._between if item.literal else self._spelled[item.token]


def _is_framed(line: bytes) -> bool:
    return len(line) > 2 and line.startswith(b" ") and line.endswith(b" ")


def _reframed(line: bytes, layout: Layout) -> bytes:
    return b" " + line + b" " if layout.framed else line


def _split(piece: Piece, end: Item) -> Iterator[Piece]:
    """What stands between the ends; at last what stands behind the last one."""
    begin = 0
    for place, item in enumerate(piece):
        if item == end:
            yield piece[begin:place]
            begin = place + 1
    yield piece[begin:]


def _parts(lines: Sequence[Piece], num_parts: int) -> Iterator[Sequence[Piece]]:
    """The lines in so many parts, of nearly as many tokens each; some may be empty."""
    ends = list(accumulate(map(len, lines), initial=0))
    cuts = [bisect_left(ends, ends[-1] * part // num_parts) for part in range(num_parts + 1)]
    return (lines[begin:end] for begin, end in pairwise(cuts))
