"""Lossless tokenization: any bytes to tokens and back.

A text is split into lines, and a line into the tokens that the model was trained on. Text that a tokenizer would change
is also stored as bytes: an unknown word or character after `<unk>`; and a whole line without exact tokens (bytes that
are not UTF-8, odd spaces between words) after `<pad>`, a token that no model predicts.
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
    """A token; `LITERAL` and `UNKNOWN` are followed by bytes. `UNKNOWN` without bytes is the text of `<unk>` itself."""

    token: int
    literal: bytes = b""


Piece = list[Item]
"""The input of a model from a new state: a line, or a part of a text."""


@dataclass(frozen=True)
class Layout:
    """The properties of a text that its tokens do not contain."""

    unended: bool = False
    """The last line has no line feed."""
    framed: bool = False
    """Every line begins and ends with a space."""
    spaced: bool = False
    """The tokens of a line begin with a space that it does not have."""


class LosslessTokenizer:
    """Bytes to pieces and back. `line_end`: as the model was trained; None: on separate lines."""

    def __init__(self, tokenizer: Tokenizer, line_end: LineEnd | None, may_frame: bool = False) -> None:
        self.tokenizer = tokenizer
        self.line_end = line_end
        self.may_frame = may_frame and line_end != "newline"  # there the spaces of a line are ordinary characters
        self._token_bytes = tokenizer.bytes_of(range(len(tokenizer.vocabulary)))
        self._unknown = self._token_bytes[UNKNOWN]
        self._between = b" " if self._unknown.endswith(b" ") else b""
        first = b"".join(tokenizer.bytes_of(tokenizer.encode(["a"])[0]))
        self._spaced = first.startswith(b" ") and line_end != "newline"  # there a line is not decoded by itself

    # --- encoding ----------------------------------------------------------------------------------------

    def encode(self, data: bytes, num_parts: int = 1) -> tuple[list[Piece], Layout]:
        """The pieces of a text: its lines, or `num_parts` parts of it; none is empty."""
        lines = data.split(b"\n")
        tail = lines.pop()
        all_lines = [*lines, tail] if tail else lines
        framed = self.may_frame and bool(all_lines) and all(map(_is_framed, all_lines))
        layout = Layout(bool(tail), framed, self._spaced)
        if framed:
            all_lines = [line[1:-1] for line in all_lines]
        ended = [self._with_end(line, number < len(lines)) for number, line in enumerate(all_lines)]
        if self.line_end is None:
            return ended, layout
        parts = ([item for items in part for item in items] for part in _parts(ended, num_parts))
        return [part for part in parts if part], layout

    def _with_end(self, line: bytes, has_end: bool) -> Piece:
        """The items of a line with its end; a separate line always has one."""
        if self.line_end in (None, "eos"):
            return self._items(line) + [Item(END)] * (has_end or self.line_end is None)
        if self.line_end == "newline":
            return self._items(line + SPELLED["newline"].encode() * has_end)
        return self._items(line) + [Item(LITERAL, b"\n")] * has_end

    def _items(self, line: bytes) -> Piece:
        """Items that are decoded to exactly this line."""
        try:
            items = self._tokens(line.decode())
        except UnicodeDecodeError:
            return [Item(LITERAL, line)]
        return items if self._bytes(items, self._spaced) == line else [Item(LITERAL, line)]

    def _tokens(self, text: str) -> Piece:
        """The tokens of a text; unknown ones with their bytes, if tokens and words (or characters) correspond."""
        [ids] = self.tokenizer.encode([text])
        units = text.split() if self._between else list(text)
        if UNKNOWN not in ids or len(units) != len(ids):
            return [Item(id) for id in ids]
        written_unknown = self._unknown.removesuffix(self._between)
        return [
            Item(id, b"" if id != UNKNOWN or unit == written_unknown else unit)
            for id, unit in zip(ids, map(str.encode, units), strict=True)
        ]

    # --- decoding ----------------------------------------------------------------------------------------

    def decode(self, pieces: Sequence[Piece], layout: Layout) -> bytes:
        """The text of all pieces."""
        if self.line_end is None:
            lines = [self._line(piece[:-1], layout) for piece in pieces]
            return b"\n".join(lines) + (b"\n" if lines and not layout.unended else b"")
        return b"".join(self._decode_part(piece, layout) for piece in pieces)

    def _decode_part(self, piece: Piece, layout: Layout) -> bytes:
        if self.line_end == "newline":
            return self._bytes(piece, layout.spaced)
        end = Item(END) if self.line_end == "eos" else Item(LITERAL, b"\n")
        *lines, tail = _split(piece, end)
        text = b"".join(self._line(line, layout) + b"\n" for line in lines)
        return text + (self._line(tail, layout) if tail else b"")

    def _line(self, items: Sequence[Item], layout: Layout) -> bytes:
        text = self._bytes(items, layout.spaced)
        return b" " + text + b" " if layout.framed else text

    def _bytes(self, items: Sequence[Item], spaced: bool) -> bytes:
        joined = b"".join(map(self._item_bytes, items))
        if spaced and items and items[0].token != LITERAL:
            joined = joined.removeprefix(b" ")
        last_is_word = bool(items) and items[-1].token != LITERAL
        return joined.removesuffix(self._between) if last_is_word else joined

    def _item_bytes(self, item: Item) -> bytes:
        if item.token == LITERAL:
            return item.literal
        return item.literal + self._between if item.literal else self._token_bytes[item.token]


def _is_framed(line: bytes) -> bool:
    return len(line) > 2 and line.startswith(b" ") and line.endswith(b" ")


def _split(piece: Piece, end: Item) -> Iterator[Piece]:
    """The parts between the ends; the last part follows the last end and may be empty."""
    begin = 0
    for place, item in enumerate(piece):
        if item == end:
            yield piece[begin:place]
            begin = place + 1
    yield piece[begin:]


def _parts(lines: Sequence[Piece], num_parts: int) -> Iterator[Sequence[Piece]]:
    """The lines in `num_parts` parts of nearly equal numbers of items; some may be empty."""
    ends = list(accumulate(map(len, lines), initial=0))
    cuts = [bisect_left(ends, ends[-1] * part // num_parts) for part in range(num_parts + 1)]
    return (lines[begin:end] for begin, end in pairwise(cuts))
