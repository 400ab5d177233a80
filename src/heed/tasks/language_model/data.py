"""The `[data]` table of a language model's recipe: texts, their segmentation, and their line ends."""

from __future__ import annotations

from pydantic import model_validator

from heed.core.errors import UsageError
from heed.decoding.detokenizer import Detokenizer
from heed.tasks.data import DataConfig
from heed.text.tokenizers import LineEnd, TextAs, Tokenizer
from heed.text.tokenizers.backward import Backward


class TextData(DataConfig):
    """A text. Paths are relative to `dir`."""

    path_keys = ("text", "valid_text", "vocabulary_text")

    text: str = ""
    """Training text, one sentence or paragraph per line."""
    valid_text: str = ""
    """Validation text; empty: lines are held out of the training text."""
    text_as: TextAs = "lines"
    """Independent "lines", one "stream" with a carried state, or independent "windows" of the stream."""
    line_end: LineEnd = "eos"
    """In a stream or windows, each line ends with the end-of-sentence token, a "newline" character, or "none"."""
    vocabulary_text: str = ""
    """Text for training the tokenizer, such as a word list; empty: the training text."""
    keep_blank_lines: bool = False
    """Keep blank lines, each as its line end alone."""
    backward: bool = False
    """Read each line from its end to its beginning, as the second language model of ELMo does."""

    @model_validator(mode="after")
    def _check_text(self) -> TextData:
        if self.text_as == "lines" and (self.line_end != "eos" or self.keep_blank_lines):
            raise ValueError(
                'data.keep_blank_lines and a data.line_end other than "eos" need data.text_as = "stream" or "windows"'
            )
        if self.text_as != "lines" and self.backward:
            raise ValueError('data.backward needs data.text_as = "lines"')
        return self

    def detokenizer(self, tokenizer: Tokenizer) -> Detokenizer:
        """Prompts to tokens, and tokens to text."""
        return Detokenizer(tokenizer, None if self.text_as == "lines" else self.line_end)

    def require_forward(self) -> None:
        """Raise UsageError for text that is read from its end, which no prompt can begin."""
        if self.backward:
            raise UsageError("this model reads text from its end (data.backward), so it continues no text.")

    def reading(self, tokenizer: Tokenizer) -> Tokenizer:
        """The tokenizer in the direction in which the text is read."""
        return Backward(tokenizer) if self.backward else tokenizer
