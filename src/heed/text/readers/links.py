"""Reader of word links in Pharaoh format: a line for each pair, `i-j` for a sure link, `i?j` for a possible one.

Positions are counted from 0: i in the source, j in the target.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from heed.core.errors import DataError
from heed.text.archives import shown_name
from heed.text.readers.lines import Errors, read_lines

LINK = re.compile(r"(\d{1,9})([-?])(\d{1,9})", re.ASCII)


class GoldLinks(NamedTuple):
    """The links of a pair that a person made."""

    sure: frozenset[tuple[int, int]]
    possible: frozenset[tuple[int, int]]
    """The sure ones too."""


def parse_links(line: str) -> GoldLinks:
    """The links of a line. Raises ValueError, with the item, for anything else."""
    sure, possible = set(), set()
    for item in line.split():
        match = LINK.fullmatch(item)
        if match is None:
            raise ValueError(f"{item!r:.60} is not a link; write i-j, or i?j for a possible one, counted from 0")
        link = int(match[1]), int(match[3])
        possible.add(link)
        if match[2] == "-":
            sure.add(link)
    return GoldLinks(frozenset(sure), frozenset(possible))


def read_links(path: str | Path, lengths: Sequence[tuple[int, int]], errors: Errors = "strict") -> Iterator[GoldLinks]:
    """The links of each pair; `lengths` are the numbers of its source and target words.

    Raises what `read_lines` raises, and DataError, with the line, for what is not a link or leads out of its pair, and
    for another number of lines than pairs.
    """
    name, number = shown_name(path), 0
    for number, line in enumerate(read_lines(path, errors), start=1):
        try:
            links = parse_links(line)
        except ValueError as error:
            raise DataError(f"{name}:{number}: {error}.") from error
        if number <= len(lengths):
            _require_inside(links, lengths[number - 1], f"{name}:{number}")
        yield links
    if number != len(lengths):
        raise DataError(f"{name} has {number:,} lines, but the texts have {len(lengths):,}: each pair needs its line.")


def _require_inside(links: GoldLinks, lengths: tuple[int, int], place: str) -> None:
    num_src, num_tgt = lengths
    outside = sorted((i, j) for i, j in links.possible if i >= num_src or j >= num_tgt)
    if outside:
        i, j = outside[0]
        raise DataError(
            f"{place}: the link {i}-{j} is outside its pair, which has {num_src} source and {num_tgt} target words "
            "(positions are counted from 0)."
        )


def render_gold(gold: GoldLinks) -> str:
    """The line of a pair with sure and possible links."""
    return " ".join(f"{i}{'-' if (i, j) in gold.sure else '?'}{j}" for i, j in sorted(gold.possible))


def render_links(links: frozenset[tuple[int, int]]) -> str:
    """The line of a pair: `0-0 1-2`, in the order of the source."""
    return " ".join(f"{i}-{j}" for i, j in sorted(links))
