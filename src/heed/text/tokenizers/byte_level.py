"""Byte-level tokenizers: pieces of UTF-8 bytes, from which any text is restored exactly.

The vocabulary writes each byte as a visible character, as every byte-level tokenizer since Radford et al. (2019) does:
a letter as itself, a space as `Ġ`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import count
from typing import Self

from heed.core.errors import DataError
from heed.text.tokenizers.tokenizer import Tokenizer, TokenizerOptions, checked, words_of_characters
from heed.text.vocabulary import SPECIAL_PIECES, Vocabulary, dump_pieces, load_pieces


def _byte_symbols() -> list[str]:
    """The character of each byte: its own if that is visible, otherwise the next one from U+0100 on."""
    visible = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    others = count(0x100)
    return [chr(byte) if byte in visible else chr(next(others)) for byte in range(256)]


BYTE_SYMBOLS = _byte_symbols()
_BYTE_OF_SYMBOL = {ord(symbol): byte for byte, symbol in enumerate(BYTE_SYMBOLS)}  # for str.translate


class ByteLevel(Tokenizer):
    """Base of the lossless kinds: each piece of text is a string of bytes."""

    lossless = True

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.vocabulary = vocabulary
        text_pieces = vocabulary.text_pieces
        if missing := {*BYTE_SYMBOLS}.difference(text_pieces):
            raise DataError(f"the vocabulary lacks {len(missing)} of the 256 single bytes.")
        if foreign := {*"".join(text_pieces)}.difference(BYTE_SYMBOLS):
            raise DataError(f"the pieces are not made of bytes: {min(foreign)!r} is not the symbol of a byte.")
        self._bytes = {
            id: piece.translate(_BYTE_OF_SYMBOL).encode("latin-1")
            for id, piece in enumerate(text_pieces, start=len(SPECIAL_PIECES))
        }

    @classmethod
    def min_vocab_size(cls, options: TokenizerOptions) -> tuple[int, str]:
        return len(SPECIAL_PIECES) + 256, "256 bytes and 4 special pieces"

    def pieces(self, ids: Sequence[int]) -> list[str]:
        table, special = self._bytes, self.vocabulary.piece
        return [table[id].decode("utf-8", "backslashreplace") if id in table else special(id) for id in ids]

    def word_ids(self, line: str) -> list[int | None]:
        return words_of_pieces(self.bytes_of(self.encode([line])[0]))


def words_of_pieces(pieces: Sequence[bytes]) -> list[int | None]:
    """For each piece of a text, the index of its first word in `text.split()`; None for white space."""
    text = b"".join(pieces).decode("utf-8", "surrogateescape")
    words = zip(text, words_of_characters(text), strict=True)
    word_of_byte = [word for character, word in words for _ in character.encode("utf-8", "surrogateescape")]
    numbers: list[int | None] = []
    start = 0
    for piece in pieces:
        end = start + len(piece)
        numbers.append(next((word for word in word_of_byte[start:end] if word is not None), None))
        start = end
    return numbers


class Byte(ByteLevel):
    """One piece for each byte: id = byte + 4."""

    max_token_characters = 1

    def __init__(self, tags: Iterable[str] = ()) -> None:
        super().__init__(Vocabulary(BYTE_SYMBOLS, tags))

    @classmethod
    def train(cls, options: TokenizerOptions, lines: Iterable[str]) -> Self:
        """The tokenizer; it learns nothing, so `lines` are not read."""
        return cls()

    @classmethod
    def from_json(cls, text: str) -> Self:
        pieces, tags = load_pieces(text, "byte")
        if pieces != BYTE_SYMBOLS:
            raise DataError("its pieces are not the 256 bytes in order.")
        return cls(tags)

    def with_tags(self, tags: Sequence[str]) -> Self:
        return type(self)(tags)

    def to_json(self) -> str:
        return dump_pieces("byte", self.vocabulary)

    def encode(self, lines: Sequence[str]) -> list[list[int]]:
        return [[byte + len(SPECIAL_PIECES) for byte in line.encode()] for line in checked(lines)]
