"""The `[data]` and `[head]` tables of a recipe for extractive answers."""

from __future__ import annotations

from pydantic import Field

from heed.core.config import Config
from heed.tasks.data import DataConfig
from heed.text.readers.questions import QuestionTable


class SpanData(DataConfig):
    """Tables of questions about texts. Paths are relative to `dir`."""

    path_keys = ("table", "valid_table")

    table: str = ""
    """Training questions: .jsonl, .json (SQuAD), .csv, .tsv or .parquet."""
    valid_table: str = ""
    """Validation questions; empty: contexts with all their questions are held out of the training table."""
    overlap: int = Field(default=128, ge=0)
    """Tokens that neighbouring windows share, if a context is longer than `max_tokens`."""
    lower_case: bool = False
    """Read words in lower case; the features of characters and of letter case keep the difference."""
    zero_digits: bool = False
    """Read each digit of a word as 0; the features of characters keep the difference."""

    def questions(self, path: str, needs_answers: bool = True) -> QuestionTable:
        """The questions of a file."""
        return QuestionTable(self.resolve(path), self.errors, needs_answers)


class SpanHeadConfig(Config):
    """The head that scores spans."""

    max_words: int = Field(default=20, ge=1, le=200)
    """Words of the longest answer."""
    hidden_size: int = Field(default=100, ge=0)
    """Features of both ends of a span together (0: none; the score is then the sum of those of its ends)."""
    no_answer: bool = False
    """Whether a question can have no answer."""
