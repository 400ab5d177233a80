"""Line ends of language models: what a model predicts after each line."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from heed.text.tokenizers import Tokenizer
from heed.text.vocabulary import Vocabulary

LineEnd = Literal["eos", "newline", "none"]
"""The end-of-sentence token, a line break as an ordinary character, or nothing."""

SPELLED: dict[LineEnd, str] = {"eos": "", "newline": "\n", "none": ""}
"""The text that the tokenizer sees after a line."""


def encode_ended(tokenizer: Tokenizer, lines: Sequence[str], line_end: LineEnd) -> list[list[int]]:
    """The ids of each line, with its line end."""
    end = [Vocabulary.eos_id] if line_end == "eos" else []
    return [ids + end for ids in tokenizer.encode([line + SPELLED[line_end] for line in lines])]
