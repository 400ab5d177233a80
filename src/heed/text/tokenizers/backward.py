"""Text from its end to its beginning: the tokenizer of a backward language model (Peters et al. 2018)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Self

from heed.core.errors import UsageError
from heed.text.tokenizers.tokenizer import Tokenizer, TokenizerOptions


class Backward(Tokenizer):
    """The pieces of another tokenizer in reverse order. It is never written to a file."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self.vocabulary = tokenizer.vocabulary
        self._bytes = tokenizer._bytes

    @classmethod
    def train(cls, options: TokenizerOptions, lines: Iterable[str]) -> Self:
        raise UsageError("train the tokenizer of the forward direction.")

    @classmethod
    def from_json(cls, text: str) -> Self:
        raise UsageError("read the tokenizer of the forward direction.")

    def to_json(self) -> str:
        return self._tokenizer.to_json()

    def with_tags(self, tags: Sequence[str]) -> Self:
        return type(self)(self._tokenizer.with_tags(tags))

    def encode(self, lines: Sequence[str]) -> list[list[int]]:
        return [ids[::-1] for ids in self._tokenizer.encode(lines)]

    def decode(self, sequences: Sequence[Sequence[int]]) -> list[str]:
        return self._tokenizer.decode([ids[::-1] for ids in sequences])

    def pieces(self, ids: Sequence[int]) -> list[str]:
        return self._tokenizer.pieces(ids)

    def word_ids(self, line: str) -> list[int | None]:
        return self._tokenizer.word_ids(line)[::-1]
