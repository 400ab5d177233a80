"""Treebanks: dependency trees of CoNLL-U files, and constituents of bracketed trees as in the Penn Treebank."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from heed.core.errors import DataError
from heed.text.readers import Errors, read_text

_BRACKETS = re.compile(r"\(|\)|[^\s()]+")
TRACE = "-NONE-"
"""Label of a word that is not in the text."""


@dataclass(frozen=True)
class Tree:
    """A sentence with its dependencies or its constituents."""

    words: tuple[str, ...]
    heads: tuple[int, ...] = ()
    """The place of each word's head, counted from 0; -1 for the root. Empty for constituents."""
    relations: tuple[str, ...] = ()
    """The relation of each word to its head, without subtypes: `nmod` for `nmod:poss`."""
    spans: tuple[tuple[int, int], ...] = ()
    """Begin and end of each constituent of at least two words, without the whole sentence."""


def read_trees(path: Path, errors: Errors = "strict") -> list[Tree]:
    """The trees of a file of either format. Raises MissingInputError, and DataError for anything else."""
    lines = enumerate(read_text(path, errors), start=1)
    found: list[Tree] = []
    rows: list[list[str]] = []
    for number, line in lines:
        is_bracketed = (
            not line.startswith("#")
            and "(" in line
            and line.rstrip().endswith(")")
            and "\t" not in line.partition("(")[2]
        )
        if is_bracketed and not rows:
            found.append(_constituents(line[line.index("(") :], f"{path}, line {number}"))
        elif line.strip() and not line.startswith("#"):
            rows.append(line.split("\t"))
        elif rows and not line.strip():
            found.append(_dependencies(rows, f"{path}, line {number - 1}"))
            rows = []
    if rows:
        found.append(_dependencies(rows, f"{path}, last line"))
    if not found:
        raise DataError(f"{path} has no trees.")
    return found


def _dependencies(rows: list[list[str]], where: str) -> Tree:
    """The tree of the rows of a sentence, without multiword tokens (`3-4`) and empty nodes (`8.1`)."""
    tokens = [row for row in rows if row[0].isdecimal()]
    try:
        heads = tuple(int(row[6]) - 1 for row in tokens)
        words = tuple("_".join(row[1].split()) or "_" for row in tokens)  # a form such as `10 000` is one word
        relations = tuple(row[7].partition(":")[0] for row in tokens)
    except (IndexError, ValueError) as error:
        raise DataError(f"{where}: expected the ten columns of CoNLL-U, with the head as a number.") from error
    if heads.count(-1) != 1 or not all(-1 <= head < len(heads) for head in heads):
        raise DataError(f"{where}: a sentence must have one root, and its heads must be words of it.")
    return Tree(words, heads, relations)


def _constituents(text: str, where: str) -> Tree:
    words: list[str] = []
    spans: list[tuple[int, int]] = []
    open_spans: list[int] = []
    tokens = _BRACKETS.findall(text)
    for before, token in _with_previous(tokens):
        if token == "(":
            open_spans.append(len(words))
        elif token == ")":
            if not open_spans:
                raise DataError(f"{where}: a closing bracket has no opening one.")
            spans.append((open_spans.pop(), len(words)))
        elif before not in ("(", ")") and before != TRACE:  # the word after its label
            words.append(token)
    if open_spans or not words:
        raise DataError(f"{where}: the brackets are not balanced, or have no words.")
    inner = {span for span in spans if 2 <= span[1] - span[0] < len(words)}
    return Tree(tuple(words), spans=tuple(sorted(inner)))


def _with_previous(tokens: list[str]) -> Iterator[tuple[str, str]]:
    return zip(["(", *tokens], tokens, strict=False)
