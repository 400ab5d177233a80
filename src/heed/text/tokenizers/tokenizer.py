"""What can every tokenizer do, and how is one chosen?"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Literal, Protocol, Self

from pydantic import Field

from heed.core.config import Config
from heed.core.errors import DataError, UsageError
from heed.text.vocabulary import SPECIAL_PIECES, Vocabulary


class TokenizerConfig(Config):
    """How text is cut into pieces."""

    kind: Literal["bpe", "unigram", "word", "character", "byte", "char-bigram"] = "bpe"
    """How text is cut: the lossless bpe, unigram and byte give any text back, the others only what they know."""
    vocab_size: int = Field(default=8000, ge=len(SPECIAL_PIECES) + 1)
    """The most pieces to have, the four special ones included; a small text gives fewer."""
    joint: bool = True
    """One vocabulary for source and target; false trains one for each side."""
    dropout: float = Field(default=0.0, ge=0, le=1)
    """Probability that BPE leaves out a merge, drawn anew for each epoch and used in training only."""
    min_frequency: int = Field(default=2, ge=1)
    """How often a word, a character or a pair to merge must be seen to become a piece; unigram and byte ignore it."""
    shortlist: int = Field(default=0, ge=0)
    """For char-bigram: so many of the most frequent words stay whole."""


class Tokenizer(Protocol):
    """Text to ids and back.

    No text becomes `pad_id`, `bos_id`, `eos_id` or a tag, and none of them is added: a sentence gets its ends where
    batches are made, and its tag where it is said. A lossless tokenizer never needs `unk_id` and gives every text back
    exactly.
    """

    @property
    def vocabulary(self) -> Vocabulary: ...

    @property
    def lossless(self) -> bool: ...

    @property
    def max_token_characters(self) -> int | None:
        """Characters of the longest piece of a word; None for pieces of any length."""
        ...

    def encode(self, lines: Sequence[str]) -> list[list[int]]:
        """The ids of each line. Raises DataError for a lone surrogate, which is not text."""
        ...

    def decode(self, sequences: Sequence[Sequence[int]]) -> list[str]:
        """The text of each sequence; any ids will do.

        Control ids and numbers that are no id are skipped; bytes that are not UTF-8 become U+FFFD.
        """
        ...

    def pieces(self, ids: Sequence[int]) -> list[str]:
        """Each id as text to show; bytes that are no whole character look like `\\xc3`."""
        ...

    def bytes_of(self, ids: Sequence[int]) -> list[bytes]:
        """What each id adds to a decoded text, as UTF-8; nothing where it is skipped.

        One after the other they are the text, perhaps with a space behind it.
        """
        ...

    def word_ids(self, line: str) -> list[int | None]:
        """For each piece of the line the number of its word in `line.split()`; None for a piece of white space."""
        ...

    def encode_with_dropout(self, ids: Sequence[int], p: float, key: tuple[int, int, int]) -> list[int]:
        """Cut one encoded sentence again, leaving out each merge with probability `p` (BPE-dropout).

        `key` is (seed, epoch, sentence index) and decides everything: the same key gives the same ids in any
        process and order. Kinds without merges, and `p` = 0, give the ids unchanged. `ids` are pieces of text
        only. Raises KeyError when there is a special one among them.
        """
        ...

    def with_tags(self, tags: Sequence[str]) -> Self:
        """The same with these tags, where there were none; a word that is spelled like one is unknown from then on."""
        ...

    def to_json(self) -> str:
        """The text of `tokenizer.json`."""
        ...


def checked(lines: Iterable[str]) -> Iterator[str]:
    """The same lines. Raises DataError at one that is not valid Unicode, since it cannot be written as UTF-8."""
    for number, line in enumerate(lines, start=1):
        try:
            line.encode()
        except UnicodeEncodeError as error:
            code = f"U+{ord(line[error.start]):04X}"
            raise DataError(
                f"line {number} has the lone surrogate {code} at character {error.start + 1}, which is half of a "
                "character and not text. Read the text as UTF-8, or take this character out."
            ) from error
        yield line


def checked_for_training(lines: Iterable[str]) -> Iterator[str]:
    """As `checked`; also raises DataError when there is no text at all."""
    empty = True
    for line in checked(lines):
        empty = empty and not line.strip()
        yield line
    if empty:
        raise DataError("there is no text to learn a tokenizer from: every line is empty. Give lines of text.")


def require_vocab_size(config: TokenizerConfig, minimum: int, why: str) -> None:
    """Raise UsageError when the vocabulary that was asked for is too small for this kind."""
    if config.vocab_size < minimum:
        raise UsageError(
            f"vocab_size = {config.vocab_size} is too small for a {config.kind} tokenizer: "
            f"it needs at least {minimum} ({why})."
        )


def words_of_characters(line: str) -> list[int | None]:
    """For each character the number of the white-space separated word it is in; None for white space."""
    words: list[int | None] = []
    word, inside = -1, False
    for character in line:
        if character.isspace():
            inside = False
        elif not inside:
            word, inside = word + 1, True
        words.append(word if inside else None)
    return words
