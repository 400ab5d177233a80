"""Checks of what callers give to the methods of predictors."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from numbers import Integral
from pathlib import Path
from typing import Any

from heed.core.errors import UsageError


def several(inputs: Any) -> Sequence[Any]:
    """The inputs as a sequence; a single text, path or bytes as one of one. Raises UsageError for anything else."""
    if isinstance(inputs, str | bytes | Path):
        return [inputs]
    if isinstance(inputs, Sequence):
        return inputs
    try:
        each = iter(inputs)
    except TypeError as error:  # also an array without dimensions
        raise UsageError(f"expected a text or a list of texts, got {type(inputs).__name__}.") from error
    return list(each)


def one_text(text: object) -> str:
    """A single text. Raises UsageError for anything else."""
    if not isinstance(text, str):
        raise UsageError(f"expected a text, got {type(text).__name__}.")
    return text


def several_texts(inputs: Any) -> Sequence[str]:
    """The inputs as a sequence of texts; a single text as one of one. Raises UsageError for anything else."""
    texts = several(inputs)
    if wrong := [text for text in texts if not isinstance(text, str)][:1]:
        raise UsageError(f"expected a text or a list of texts, got {type(wrong[0]).__name__} in the list.")
    return texts


def texts_or_words(inputs: Any) -> Sequence[str | Sequence[str]]:
    """The inputs as a sequence of texts and of lists of words; a single text as one of one. Raises UsageError."""
    found: list[str | Sequence[str]] = []
    for each in several(inputs):
        words: Sequence[Any] = [each] if isinstance(each, str | bytes) or not isinstance(each, Iterable) else list(each)
        if wrong := [word for word in words if not isinstance(word, str)][:1]:
            raise UsageError(f"expected texts or lists of words, got {type(wrong[0]).__name__} in the list.")
        found.append(each if isinstance(each, str) else words)
    return found


def require_top(top: object) -> None:
    """Raise UsageError unless a number of answers is a whole number above 0."""
    if isinstance(top, bool) or not isinstance(top, Integral) or top < 1:
        raise UsageError(f"top must be at least 1 and a whole number, got {top!r:.80}.")
