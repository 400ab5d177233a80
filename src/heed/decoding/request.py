"""What is asked of one line beside its translation, what decides its output, and how many are searched at once?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Constraints:
    """What the output of one line must keep to."""

    prefix: str = ""
    """How it begins; spaces at the end of the prefix are left out."""
    terms: tuple[str, ...] = ()
    """Words and phrases that must stand in it, as they are written here (see `glossary.py`)."""


@dataclass(frozen=True, order=True)
class Request:
    """All that decides the output of a line; equal requests are searched once."""

    source: tuple[int, ...]
    """The ids of the source, without its end; empty for a line of nothing but space."""
    prefix: tuple[int, ...] = ()
    """The ids that the output begins with."""
    terms: tuple[str, ...] = ()
    draw: int = 0
    """Of a language model: which of several draws for the same prompt, which is the prefix."""

    @property
    def stream(self) -> int:
        """The key of its random draws, which no other line can change."""
        stream = 0
        for token in self.source:
            stream = (stream * 1_000_003 + token + 1) & ((1 << 62) - 1)
        return stream


def groups(lengths: Sequence[int], max_rows: int, max_positions: int) -> Iterator[slice]:
    """Cuts through rows that come longest first: at most so many rows, and so many positions with padding."""
    begin = 0
    while begin < len(lengths):
        end = begin + max(1, min(max_rows, max_positions // lengths[begin]))
        yield slice(begin, end)
        begin = end
