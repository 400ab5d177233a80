"""Encoding of words: pieces, characters, letter case and marks of sentences, and batches of them.

Tagging and extractive answers share it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, Self, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, NonNegativeInt

from heed.core.run_files import RunFiles
from heed.data.batch import Ids
from heed.data.validation import Row
from heed.nn.contract import Vocabularies
from heed.nn.word_source import CHARACTER_PAD, CHARACTER_UNKNOWN, WordSource
from heed.text.normalise import Normaliser
from heed.text.tokenizers import Tokenizer
from heed.text.vocabulary import UNK_ID, Vocabulary

LABELS = "labels.json"
"""The file of what the ids of a run stand for."""
MIN_CHARACTER_COUNT = 2
"""Rarer characters are read as unknown, so that the unknown one is trained."""
MAX_CHARACTERS = 40
"""Characters of a word that are read; of longer words the first and the last 20."""
COLUMNS = ("src", "starts", "chars", "cases", "marks")
"""Columns of the token store that describe the words; tags follow."""
NO_TEXT = "\ufffd"
"""What a token is read as that has no text, such as a control character."""
_DIGITS = str.maketrans("123456789", "000000000")


class WordSettings(Protocol):
    """How words are looked up in the vocabulary, from the `[data]` table of a recipe."""

    @property
    def normaliser(self) -> Normaliser: ...
    @property
    def lower_case(self) -> bool: ...
    @property
    def zero_digits(self) -> bool: ...


class WordIds(Protocol):
    """What the ids of characters and marks stand for."""

    @property
    def character_ids(self) -> Mapping[str, int]: ...
    @property
    def mark_ids(self) -> Mapping[str, int]: ...


@dataclass(frozen=True)
class Words:
    """A sentence to tag."""

    tokens: Sequence[str]
    marks: Sequence[str] = ()
    """A mark for each token, or none."""


class StoredLabels(BaseModel):
    """What the ids of a run stand for; `labels.json` of its folder."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    format: NonNegativeInt = 1

    def write(self, files: RunFiles) -> None:
        """Write `labels.json`."""
        files.write_as(self, LABELS)

    @classmethod
    def read(cls, files: RunFiles) -> Self:
        """Read `labels.json`. Raises DataError if it is damaged."""
        return files.read_as(cls, LABELS)


def frequent_characters(counts: Mapping[str, int]) -> tuple[str, ...]:
    """The characters that get ids, in order."""
    return tuple(sorted(character for character, count in counts.items() if count >= MIN_CHARACTER_COUNT))


def num_singletons(tokenizer: Tokenizer, lines: Iterable[Row]) -> int:
    """The number of words of the vocabulary that occur once; the most frequent words come first."""
    counts = Counter(word for (line,) in lines for word in line.split())
    return sum(counts[piece] == 1 for piece in tokenizer.vocabulary.pieces)


L = TypeVar("L", bound=WordIds)


class WordEncoder(Generic[L]):
    """Turns sentences into the columns of the token store, for training and in use."""

    def __init__(self, data: WordSettings, tokenizer: Tokenizer, labels: L) -> None:
        self.data = data
        self.tokenizer = tokenizer
        self.labels = labels

    def columns(self, sentences: Sequence[Words]) -> dict[str, list[list[int]]]:
        """The ids of each sentence by column, without the end of the sentence."""
        texts = [[normalised(token, self.data) for token in sentence.tokens] for sentence in sentences]
        lines = [" ".join(looked_up(word, self.data) for word in words) for words in texts]
        ids = self.tokenizer.encode(lines)
        words_of = [self.tokenizer.word_ids(line) for line in lines]
        pieces = [with_starts(row, of, len(words)) for row, of, words in zip(ids, words_of, texts, strict=True)]
        marks = [self._marks(sentence) for sentence in sentences]
        return {
            "src": [of_sentence for of_sentence, _ in pieces],
            "starts": [starts for _, starts in pieces],
            "chars": [[id for word in words for id in self._characters(word)] for words in texts],
            "cases": [[case_of(word) for word in words] for words in texts],
            "marks": marks,
        }

    def _characters(self, word: str) -> list[int]:
        """The ids of the characters of a word, and a separator."""
        half = MAX_CHARACTERS // 2
        read = word if len(word) <= MAX_CHARACTERS else word[:half] + word[-half:]
        ids = self.labels.character_ids
        return [*(ids.get(character, CHARACTER_UNKNOWN) for character in read), CHARACTER_PAD]

    def _marks(self, sentence: Words) -> list[int]:
        ids = self.labels.mark_ids
        return [ids.get(mark, 1) for mark in sentence.marks] if sentence.marks else [0] * len(sentence.tokens)

    def source(self, sentences: Sequence[Words]) -> WordSource:
        """The sentences as one batch."""
        return word_source(self.columns(sentences))


def normalised(token: str, data: WordSettings) -> str:
    """A token as one word: normalised, and with underscores for blanks inside."""
    return "_".join(data.normaliser.apply(token).split()) or NO_TEXT


def looked_up(word: str, data: WordSettings) -> str:
    """A word as the vocabulary has it."""
    word = word.lower() if data.lower_case else word
    return word.translate(_DIGITS) if data.zero_digits else word


def case_of(word: str) -> int:
    """The pattern of letter case of a word, from 1 to 7: lower, upper, first letter, mixed, number, digits, other."""
    if word.isdigit():
        return 5
    letters = [letter for letter in word if letter.isalpha()]
    if not letters:
        return 6 if any(map(str.isdigit, word)) else 7
    if word.islower() or not any(letter.isupper() for letter in letters):
        return 1
    if word.isupper() and len(letters) > 1:
        return 2
    return 3 if word[0].isupper() and not any(map(str.isupper, word[1:])) else 4


def with_starts(ids: Sequence[int], word_of: Sequence[int | None], number: int) -> tuple[list[int], list[int]]:
    """The pieces of a sentence, and the position of the first one of each of its `number` words.

    A word of which the tokenizer leaves nothing, such as a lone variation selector in WordPiece, is an unknown piece.
    `word_of`: the word of each piece; None for white space.
    """
    pieces: list[int] = []
    starts: list[int] = []

    def begin(end: int) -> None:
        for _ in range(len(starts), end):
            starts.append(len(pieces))
            pieces.append(UNK_ID)

    for id, word in zip(ids, word_of, strict=True):
        if word is not None:
            begin(word)
            if len(starts) == word:
                starts.append(len(pieces))
        pieces.append(id)
    begin(number)
    return pieces, starts


def trial_columns(vocabularies: Vocabularies, num_rows: int, num_words: int) -> dict[str, list[list[int]]]:
    """The columns of sentences of random words, each of one piece and six characters."""
    spelled = [[*word, CHARACTER_PAD] * num_words for word in random_ids(vocabularies.num_characters, num_rows, 6)]
    pieces = random_ids(vocabularies.src_size, num_rows, num_words)
    ones = [[1] * num_words] * num_rows
    return dict(zip(COLUMNS, (pieces, [[*range(num_words)]] * num_rows, spelled, ones, ones), strict=True))


def random_ids(below: int, num_rows: int, num_words: int) -> list[list[int]]:
    """Random ids for a batch that is never trained on."""
    return torch.randint(2, max(3, below), (num_rows, num_words)).tolist()


def word_source(columns: Mapping[str, Sequence[Ids]]) -> WordSource:
    """A batch of sentences from their columns."""
    starts = [np.asarray(row, dtype=np.int64) for row in columns["starts"]]
    lengths = [len(row) for row in columns["src"]]
    forms, characters = _distinct_words(columns["chars"])
    per_position = {"forms": forms, "cases": columns["cases"], "marks": columns["marks"]}
    spread = {
        name: _padded([_spread(row, at, length) for row, at, length in zip(rows, starts, lengths, strict=True)])[0]
        for name, rows in per_position.items()
    }
    ids = [np.append(np.asarray(row, dtype=np.int64), Vocabulary.eos_id) for row in columns["src"]]
    padded, mask = _padded(ids, Vocabulary.pad_id)
    first, words = _padded(starts)
    return WordSource(
        ids=torch.from_numpy(padded), mask=torch.from_numpy(mask), starts=torch.from_numpy(first),
        words=torch.from_numpy(words), characters=torch.from_numpy(characters),
        **{name: torch.from_numpy(rows) for name, rows in spread.items()},
    )  # fmt: skip


def _spread(values: Ids, starts: NDArray[np.int64], length: int) -> NDArray[np.int64]:
    """The value of a word at each of its positions, and 0 at the end of the sentence."""
    positions = np.searchsorted(starts, np.arange(length), side="right") - 1
    return np.append(np.asarray(values, dtype=np.int64)[positions.clip(min=0)], 0)


def _distinct_words(rows: Iterable[Ids]) -> tuple[list[list[int]], NDArray[np.int64]]:
    """The number of each word, from 1, and the characters of the distinct words, after an empty one."""
    numbers: dict[bytes, int] = {}
    forms: list[list[int]] = []
    for row in rows:
        ids = np.asarray(row, dtype=np.int64)
        ends = np.flatnonzero(ids == CHARACTER_PAD)
        begins = np.append(0, ends[:-1] + 1)
        spelled = (ids[begin:end].tobytes() for begin, end in zip(begins, ends, strict=True))
        forms.append([numbers.setdefault(word, len(numbers) + 1) for word in spelled])
    words = [np.empty(0, dtype=np.int64), *(np.frombuffer(word, dtype=np.int64) for word in numbers)]
    return forms, _padded(words, CHARACTER_PAD)[0]


def _padded(rows: Sequence[NDArray[np.int64]], value: int = 0) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Rows of equal length, and where they are real."""
    lengths = np.array([len(row) for row in rows])
    mask = np.arange(max(1, int(lengths.max(initial=0)))) < lengths[:, None]
    padded = np.full(mask.shape, value, dtype=np.int64)
    padded[mask] = np.concatenate(rows) if len(rows) else []
    return padded, mask
