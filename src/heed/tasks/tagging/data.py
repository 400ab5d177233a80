"""The `[data]` table of a tagger's recipe: CoNLL files, their columns, and how words are read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from heed.tasks.data import DataConfig
from heed.text.readers.conll import Columns, TaggedSentence, read_conll
from heed.text.tag_schemes import Scheme


class TagData(DataConfig):
    """CoNLL files. Paths are relative to `dir`."""

    path_keys = ("conll", "valid_conll")

    conll: str = ""
    """Training data: a token on each line with its tags in columns, a blank line after each sentence."""
    valid_conll: str = ""
    """Validation data; empty: sentences are held out of the training data."""
    token_column: int | str | None = None
    """Column of the tokens, by number from 1 or by name; not given: the first one that does not count them."""
    tag_column: int | str | None = None
    """Column of the tags; not given: the last one, or upos in CoNLL-U."""
    mark_column: int | str | None = None
    """Column of marks, an additional input, such as the predicate whose arguments are tagged; not given: none."""
    scheme: Literal["file", "iob2", "iobes"] = "file"
    """How the model writes spans: as in the file (IOB1 as IOB2), or in this scheme. Outputs are as in the file."""
    lower_case: bool = False
    """Read words in lower case; the features of characters and of letter case keep the difference."""
    zero_digits: bool = False
    """Read each digit of a word as 0; the features of characters keep the difference."""

    @property
    def columns(self) -> Columns:
        """The columns of the files."""
        return Columns(self.token_column, self.tag_column, self.mark_column)

    def read(self, path: str) -> Iterator[TaggedSentence]:
        """The sentences of a file."""
        return read_conll(self.resolve(path), self.columns, self.errors)

    def inner_scheme(self, written: Scheme) -> Scheme:
        """The scheme of the model's tags for a file in the scheme `written`."""
        if written == "plain":
            return "plain"
        if self.scheme != "file":
            return self.scheme
        return "iob2" if written in ("iob1", "iob2") else "iobes"
