"""Interface of tokenizers, the options of their training, and checks of text."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import ClassVar, Self

from pydantic import Field

from heed.core.config import Config
from heed.core.errors import DataError
from heed.text.vocabulary import SPECIAL_PIECES, Vocabulary


class TokenizerOptions(Config):
    """The options of training a tokenizer, for all kinds; `TokenizerConfig` checks the kind."""

    kind: str = "bpe"
    """Kind of tokenizer. bpe, unigram, open-word and byte restore any text exactly, the others only text in their
    vocabulary, and wordpiece with spaces around punctuation."""
    vocab_size: int = Field(default=8000, ge=len(SPECIAL_PIECES) + 1)
    """Maximum number of pieces, including the four special ones; a small text gives fewer."""
    joint: bool = True
    """One vocabulary for source and target; false: one for each side."""
    dropout: float = Field(default=0.0, ge=0, le=1)
    """Probability of leaving out a BPE merge, drawn anew in each epoch; in training only."""
    min_frequency: int = Field(default=2, ge=1)
    """Minimum number of occurrences of words, characters or merges that become pieces; not for unigram and byte."""
    shortlist: int = Field(default=0, ge=0)
    """For char-bigram: number of the most frequent words, which stay whole."""
    uncased: bool = False
    """For wordpiece: read text in lower case and without accents, as uncased BERT models do."""


class Tokenizer(ABC):
    """Text to ids and back. Its class is a value of `heed.text.tokenizers.TOKENIZERS`.

    No text becomes `pad_id`, `bos_id`, `eos_id` or a tag, and none of them is added: batches add the ends of a
    sentence, and tasks its tag. A lossless tokenizer never needs `unk_id` and restores every text exactly.
    """

    vocabulary: Vocabulary
    _bytes: Mapping[int, bytes]
    """The text that each id adds to the decoded text, as UTF-8; without ids that are skipped."""
    between: ClassVar[str] = ""
    """The separator of two words in decoded text, which a piece at the end of a word ends with."""
    lossless: ClassVar[bool] = False
    restores: ClassVar[bool] = True
    """Whether decoding restores text without unknown pieces, words being separated by single spaces."""
    whole_words: ClassVar[bool] = False
    """Whether each piece is a whole word, so that a word that is not in the vocabulary is unknown as a whole."""
    uncased: bool = False
    """Whether it reads text in lower case."""
    max_token_characters: ClassVar[int | None] = None
    """Maximum number of characters of a piece of a word; None without a maximum."""

    @property
    def seldom_unknown(self) -> bool:
        """Whether next to no text has a piece that is unknown."""
        return self.lossless

    @classmethod
    def min_vocab_size(cls, options: TokenizerOptions) -> tuple[int, str]:
        """The minimum of `vocab_size`, and the reason."""
        return len(SPECIAL_PIECES) + 1, "4 special pieces and one to learn"

    @classmethod
    @abstractmethod
    def train(cls, options: TokenizerOptions, lines: Iterable[str]) -> Self:
        """Train on lines, deterministically. Raises DataError if there is no text, or text that is not Unicode."""

    @classmethod
    @abstractmethod
    def from_json(cls, text: str) -> Self:
        """The tokenizer that `to_json` gave. Raises DataError for anything else."""

    @abstractmethod
    def to_json(self) -> str:
        """The text of `tokenizer.json`."""

    @abstractmethod
    def with_tags(self, tags: Sequence[str]) -> Self:
        """A copy of a tokenizer without tags that has these; a word that looks like one is then unknown."""

    @abstractmethod
    def encode(self, lines: Sequence[str]) -> list[list[int]]:
        """The ids of each line. Raises DataError for a lone surrogate, which is not text."""

    def decode(self, sequences: Sequence[Sequence[int]]) -> list[str]:
        """The text of each sequence, for any ids.

        Control ids and numbers outside the vocabulary are skipped; bytes that are not UTF-8 become U+FFFD.
        """
        table, end = self._bytes, self.between.encode()
        joined = [b"".join([table.get(id, b"") for id in ids]) for ids in sequences]
        return [text.removesuffix(end).decode("utf-8", "replace") for text in joined]

    @abstractmethod
    def pieces(self, ids: Sequence[int]) -> list[str]:
        """Each id as text to display; bytes of an incomplete character look like `\\xc3`."""

    def bytes_of(self, ids: Sequence[int]) -> list[bytes]:
        """The text that each id adds to the decoded text, as UTF-8; empty for an id that is skipped.

        Concatenated they are the text, possibly after a space or followed by one.
        """
        return [self._bytes.get(id, b"") for id in ids]

    def texts(self) -> list[str]:
        """The text that each id of the vocabulary adds, without the bytes of incomplete characters."""
        return [part.decode(errors="ignore") for part in self.bytes_of(range(len(self.vocabulary)))]

    @abstractmethod
    def word_ids(self, line: str) -> list[int | None]:
        """For each piece of the line, the index of its word in `line.split()`; None for a piece of white space."""

    def encode_with_dropout(self, ids: Sequence[int], p: float, key: tuple[int, int, int]) -> list[int]:
        """Segment one encoded sentence again, leaving out each merge with probability `p` (BPE-dropout).

        `key` is (seed, epoch, sentence index) and decides everything: the same key gives the same ids in any process
        and order. Kinds without merges, and `p` = 0, return the ids unchanged. Raises KeyError for ids of special
        pieces.
        """
        return list(ids)


def checked(lines: Iterable[str]) -> Iterator[str]:
    """The same lines. Raises DataError for one that is not valid Unicode, since it cannot be written as UTF-8."""
    for number, line in enumerate(lines, start=1):
        try:
            line.encode()
        except UnicodeEncodeError as error:
            code = f"U+{ord(line[error.start]):04X}"
            raise DataError(
                f"line {number} has the lone surrogate {code} at character {error.start + 1}, which is half of a "
                "character and not text. Read the text as UTF-8, or remove this character."
            ) from error
        yield line


def checked_for_training(lines: Iterable[str]) -> Iterator[str]:
    """As `checked`. Also raises DataError if there is no text at all."""
    empty = True
    for line in checked(lines):
        empty = empty and not line.strip()
        yield line
    if empty:
        raise DataError("no text to train a tokenizer on: every line is empty.")


def words_of_characters(line: str) -> list[int | None]:
    """For each character, the index of its word in `line.split()`; None for white space."""
    words: list[int | None] = []
    word, inside = -1, False
    for character in line:
        if character.isspace():
            inside = False
        elif not inside:
            word, inside = word + 1, True
        words.append(word if inside else None)
    return words
