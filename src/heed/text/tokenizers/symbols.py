"""Tokenizers with a closed vocabulary of words or characters; anything else becomes `<unk>`.

A symbol of the text that looks like a special piece or a tag is never in the vocabulary, so `</s>` becomes `<unk>` too.
"""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import ClassVar, Self

from heed.text.tokenizers.tokenizer import (
    Tokenizer,
    TokenizerOptions,
    checked,
    checked_for_training,
    words_of_characters,
)  # fmt: skip
from heed.text.vocabulary import SPECIAL_PIECES, UNK_ID, Vocabulary, dump_pieces, load_pieces, spelled_tag

MARK = "@@"
"""Ends a piece that is not the last of its word."""


class Symbols(Tokenizer):
    """Base of the kinds with a closed vocabulary."""

    kind: ClassVar[str]

    def __init__(self, text_pieces: Iterable[str], tags: Iterable[str] = ()) -> None:
        self.vocabulary = Vocabulary(text_pieces, tags)
        self._ids = {piece: self.vocabulary.id(piece) for piece in self.vocabulary.text_pieces}
        pieces = {**self._ids, SPECIAL_PIECES[UNK_ID]: UNK_ID}
        self._bytes = {id: self._spell(piece).encode(errors="replace") for piece, id in pieces.items()}

    @abstractmethod
    def _cut(self, line: str) -> list[str]:
        """The pieces of a line, known or not."""

    @abstractmethod
    def _spell(self, piece: str) -> str:
        """The piece in decoded text, with its separator."""

    @classmethod
    def from_json(cls, text: str) -> Self:
        return cls(*load_pieces(text, cls.kind))

    def with_tags(self, tags: Sequence[str]) -> Self:
        reserved = {*map(spelled_tag, tags)}
        return type(self)([piece for piece in self.vocabulary.text_pieces if piece not in reserved], tags)

    def to_json(self) -> str:
        return dump_pieces(self.kind, self.vocabulary)

    def encode(self, lines: Sequence[str]) -> list[list[int]]:
        ids = self._ids
        return [[ids.get(piece, UNK_ID) for piece in self._cut(line)] for line in checked(lines)]

    def pieces(self, ids: Sequence[int]) -> list[str]:
        return [self.vocabulary.piece(id) for id in ids]


class Word(Symbols):
    """The most frequent words, separated by white space."""

    kind, between, whole_words = "word", " ", True

    @classmethod
    def train(cls, options: TokenizerOptions, lines: Iterable[str]) -> Self:
        words = Counter(word for line in checked_for_training(lines) for word in line.split())
        return cls(_most_frequent(words, options, options.vocab_size - len(SPECIAL_PIECES)))

    def _cut(self, line: str) -> list[str]:
        return line.split()

    def _spell(self, piece: str) -> str:
        return piece + self.between

    def word_ids(self, line: str) -> list[int | None]:
        return list(range(len(line.split())))


class Character(Symbols):
    """The most frequent Unicode characters; an unknown one is decoded as U+FFFD."""

    kind = "character"
    max_token_characters = 1

    @classmethod
    def train(cls, options: TokenizerOptions, lines: Iterable[str]) -> Self:
        characters: Counter[str] = Counter()
        for line in checked_for_training(lines):
            characters.update(line)
        return cls(_most_frequent(characters, options, options.vocab_size - len(SPECIAL_PIECES)))

    def _cut(self, line: str) -> list[str]:
        return list(line)

    def _spell(self, piece: str) -> str:
        return "\ufffd" if piece in SPECIAL_PIECES else piece

    def word_ids(self, line: str) -> list[int | None]:
        return words_of_characters(line)


class CharBigram(Symbols):
    """A shortlist of whole words; all others are cut into pairs of characters: `he@@ ed`.

    The baseline C2-50k of Sennrich et al. (2016), table 4, where the shortlist has 50,000 words.
    """

    kind, between = "char-bigram", " "
    max_token_characters = 2

    @classmethod
    def min_vocab_size(cls, options: TokenizerOptions) -> tuple[int, str]:
        return options.shortlist + len(SPECIAL_PIECES) + 1, f"shortlist = {options.shortlist}, 4 special, 1 pair"

    @classmethod
    def train(cls, options: TokenizerOptions, lines: Iterable[str]) -> Self:
        words = Counter(word for line in checked_for_training(lines) for word in line.split())
        whole = _most_frequent(
            {word: count for word, count in words.items() if not _continues(word)}, options, options.shortlist
        )
        pairs: Counter[str] = Counter()
        for word in words.keys() - set(whole):
            for pair in _pairs(word):
                pairs[pair] += words[word]
        for word in whole:  # a word of one or two characters may also end other words
            del pairs[word]
        return cls(whole + _most_frequent(pairs, options, options.vocab_size - len(SPECIAL_PIECES) - len(whole)))

    def _cut_word(self, word: str) -> list[str]:
        return [word] if word in self._ids and not _continues(word) else _pairs(word)

    def _cut(self, line: str) -> list[str]:
        return [piece for word in line.split() for piece in self._cut_word(word)]

    def _spell(self, piece: str) -> str:
        return piece.removesuffix(MARK) if _continues(piece) else piece + self.between

    def word_ids(self, line: str) -> list[int | None]:
        return [number for number, word in enumerate(line.split()) for _ in self._cut_word(word)]


def _pairs(word: str) -> list[str]:
    """The word in pairs of characters from the left, all but the last one marked."""
    last = len(word) - 2 + len(word) % 2
    return [word[start : start + 2] + MARK * (start < last) for start in range(0, len(word), 2)]


def _continues(piece: str) -> bool:
    """Whether the word continues after the piece. A pair that is `@@` itself has no mark."""
    return len(piece) > len(MARK) and piece.endswith(MARK)


def _most_frequent(counts: Mapping[str, int], options: TokenizerOptions, limit: int) -> list[str]:
    """At most `limit` symbols that are frequent enough, the most frequent first, ties in alphabetical order."""
    frequent = [
        (-count, symbol)
        for symbol, count in counts.items()
        if count >= options.min_frequency and symbol not in SPECIAL_PIECES
    ]
    return [symbol for _, symbol in sorted(frequent)[:limit]]
