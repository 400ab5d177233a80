"""The `[data]` table of a masked language model's recipe: a text, and which of its pieces are masked."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from heed.tasks.data import DataConfig


class MaskedTextData(DataConfig):
    """A text of independent lines. Paths are relative to `dir`."""

    path_keys = ("text", "valid_text")
    text_as: ClassVar[str] = "lines"
    keep_blank_lines: ClassVar[bool] = False

    text: str = ""
    """Training text, one sentence or paragraph per line; lines of more than max_tokens are cut into equal parts."""
    valid_text: str = ""
    """Validation text; empty: lines are held out of the training text."""
    mask_share: float = Field(default=0.15, gt=0, lt=1)
    """Share of the pieces of a line that are predicted."""
    whole_words: bool = False
    """Mask all pieces of a word together."""
    next_sentence: bool = False
    """Read pairs of lines and also predict whether the second follows the first in the text, as in half of the pairs it
    does. Blank lines end documents."""
