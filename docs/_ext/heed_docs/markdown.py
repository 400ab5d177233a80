"""Markdown of generated pages: text as it is, and tables."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

_SPECIAL = re.compile(r"([\\*_$<>\[\]|{}~#])")
_FLAG = re.compile(r"(?<![\w`-])(--[a-z][\w-]*(?:\.\w+)*(?:=[\w.-]*\w)?)")


def escaped(text: str) -> str:
    """The text on one line, so that Markdown shows it as written; flags and what is between backticks are code."""
    parts = re.split(r"(`[^`]*`)", _FLAG.sub(r"`\1`", " ".join(text.split())))
    return "".join(code(part[1:-1]) if part.startswith("`") else _SPECIAL.sub(r"\\\1", part) for part in parts)


def code(text: str) -> str:
    """The text as code, in a table too."""
    return "`" + text.replace("|", r"\|") + "`" if text else ""


def table(heading: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table, whose cells are Markdown."""
    return "".join("| " + " | ".join(cells) + " |\n" for cells in [heading, ["---"] * len(heading), *rows])
