"""Markdown: escaped text, code and tables that are readable unrendered."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

_MARKUP = re.compile(r"([\\`*_\[\]<>|#~$&])")


def plain(text: str) -> str:
    """Text on one line, in which no character acts as markup."""
    return _MARKUP.sub(r"\\\1", " ".join(text.split()))


def code(text: str) -> str:
    """Text as inline code, on one line."""
    text = " ".join(text.split())
    return f"`` {text} ``" if "`" in text else f"`{text}`"


def table(rows: Sequence[Sequence[str]], right: Iterable[int] = ()) -> str:
    """A table of Markdown cells; the first row is the header, and the columns `right` are aligned to the right.

    A bar would end a cell even inside code; it is the only character that can be escaped there.
    """
    aligned_right = set(right)
    rules = ["---:" if column in aligned_right else "---" for column in range(len(rows[0]))]
    return "\n".join("| " + " | ".join(map(_cell, row)) + " |" for row in (rows[0], rules, *rows[1:]))


def _cell(text: str) -> str:
    return re.sub(r"(?<!\\)\|", r"\|", text)
