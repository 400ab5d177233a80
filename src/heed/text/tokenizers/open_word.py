"""Tokenizer of words and punctuation marks with an open vocabulary: an unknown word is spelled byte by byte.

A word includes the space before it, so that any text is restored exactly and no rules of detokenisation are needed. The
words are those of `heed.text.words`: punctuation and clitics are words of their own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Self

from heed.text.tokenizers.byte_level import BYTE_SYMBOLS, ByteLevel
from heed.text.tokenizers.tokenizer import TokenizerOptions, checked, checked_for_training
from heed.text.vocabulary import SPECIAL_PIECES, Vocabulary, dump_pieces, load_versioned_pieces
from heed.text.words import split_words

KIND = "open-word"
VERSION = 2
"""Of the file format. In version 1, the marks after a letter were cut off its word."""
FIRST_BYTE = len(SPECIAL_PIECES)
"""The id of byte 0; the others follow."""


class OpenWord(ByteLevel):
    """The most frequent words, and bytes for all others."""

    def __init__(self, text_pieces: Iterable[str], tags: Iterable[str] = (), version: int = VERSION) -> None:
        super().__init__(Vocabulary(text_pieces, tags))
        self._version = version
        self._ids = {text: id for id, spelled in self._bytes.items() if (text := spelled.decode(errors="ignore"))}

    @classmethod
    def min_vocab_size(cls, options: TokenizerOptions) -> tuple[int, str]:
        return len(SPECIAL_PIECES) + 257, "256 bytes, 4 special pieces and a word"

    @classmethod
    def train(cls, options: TokenizerOptions, lines: Iterable[str]) -> Self:
        """The first word of a line counts as if it were inside another one too."""
        counts: Counter[str] = Counter()
        for line in checked_for_training(lines):
            texts = list(_cut(line, VERSION))
            counts.update(text for text, is_word in texts if is_word)
            counts.update(f" {text}" for text, is_word in texts[:1] if is_word)
        words = [
            (-count, text) for text, count in counts.items() if count >= options.min_frequency and text not in _BYTES
        ]
        most = options.vocab_size - len(SPECIAL_PIECES) - len(BYTE_SYMBOLS)
        return cls([*BYTE_SYMBOLS, *(_symbols(text) for _, text in sorted(words)[:most])])

    @classmethod
    def from_json(cls, text: str) -> Self:
        return cls(*load_versioned_pieces(text, KIND, VERSION))

    def with_tags(self, tags: Sequence[str]) -> Self:
        return type(self)(self.vocabulary.text_pieces, tags, self._version)

    def to_json(self) -> str:
        return dump_pieces(KIND, self.vocabulary, self._version)

    def encode(self, lines: Sequence[str]) -> list[list[int]]:
        return [[id for text, _ in _cut(line, self._version) for id in self._encode(text)] for line in checked(lines)]

    def _encode(self, text: str) -> list[int]:
        known = self._ids.get(text)
        return [byte + FIRST_BYTE for byte in text.encode()] if known is None else [known]


def _cut(line: str, version: int) -> Iterator[tuple[str, bool]]:
    """The words of a line, each with the space before it, and other white space; and whether it is a word."""
    done = 0
    for word in split_words(line, cut_at_marks=version == 1):
        begin = word.start - (word.start > done and line[word.start - 1] == " ")
        if begin > done:
            yield line[done:begin], False
        yield line[begin : word.end], True
        done = word.end
    if done < len(line):
        yield line[done:], False


def _symbols(text: str) -> str:
    return "".join(BYTE_SYMBOLS[byte] for byte in text.encode())


_BYTES = frozenset(map(chr, range(128)))
"""Words that are single bytes."""
