"""The `[data]` table of a language model's recipe: texts, how they are cut, and how their lines end."""

from __future__ import annotations

from pydantic import model_validator

from heed.decoding.scoring import TextAs
from heed.tasks.data import DataConfig
from heed.text.tokenizers import LineEnd


class TextData(DataConfig):
    """A text. Paths are relative to `dir`."""

    path_keys = ("text", "valid_text", "vocabulary_text")

    text: str = ""
    """One sentence or paragraph per line."""
    valid_text: str = ""
    """Validation text; empty: lines are held out of the training text."""
    text_as: TextAs = "lines"
    """Independent "lines", one "stream" whose state is carried along, or "windows" of it."""
    line_end: LineEnd = "eos"
    """In a stream or windows each line ends with the end-of-sentence token, a "newline" as a character, or "none"."""
    vocabulary_text: str = ""
    """Text that the tokenizer is trained on, such as a list of words; empty: the training text."""
    keep_blank_lines: bool = False
    """Read lines without words too, as a character or an end of sentence of their own."""

    @model_validator(mode="after")
    def _check_text(self) -> TextData:
        if self.text_as == "lines" and (self.line_end != "eos" or self.keep_blank_lines):
            raise ValueError(
                'data.keep_blank_lines and a data.line_end other than "eos" need data.text_as = "stream" or "windows"'
            )
        return self

    @property
    def holds_out(self) -> bool:
        return not self.valid_text
