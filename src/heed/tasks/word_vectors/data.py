"""The `[data]` table of word vectors."""

from __future__ import annotations

from heed.tasks.data import DataConfig


class WordText(DataConfig):
    """A text. Paths are relative to `dir`."""

    path_keys = ("text", "valid_text")

    text: str = ""
    """Training text, one sentence or paragraph per line; words do not occur together across lines."""
    valid_text: str = ""
    """Validation text; empty: lines are held out of the training text."""
