"""How is Markdown written so that text from anywhere stays text, and tables read well unrendered too?"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

_MARKUP = re.compile(r"([\\`*_\[\]<>|#~$&])")


def plain(text: str) -> str:
    """Text that is shown as it is, on one line."""
    return _MARKUP.sub(r"\\\1", " ".join(text.split()))


def code(text: str) -> str:
    """Text in the font of code, on one line."""
    text = " ".join(text.split())
    return f"`` {text} ``" if "`" in text else f"`{text}`"


def table(rows: Sequence[Sequence[str]], right: Iterable[int] = ()) -> str:
    """A table of cells that are Markdown, the first row being the heads; the columns `right` are flush right.

    A bar ends a cell even inside code, and is the one character that code lets escape.
    """
    flush_right = set(right)
    rules = ["---:" if place in flush_right else "---" for place in range(len(rows[0]))]
    return "\n".join("| " + " | ".join(map(_cell, row)) + " |" for row in (rows[0], rules, *rows[1:]))


def _cell(text: str) -> str:
    return re.sub(r"(?<!\\)\|", r"\|", text)
