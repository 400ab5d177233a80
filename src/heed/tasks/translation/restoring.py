"""Restoring sentences with masked spans: a first task for a translator that needs text in one language only.

This is BART's text infilling (Lewis et al. 2020): spans of words, whose lengths have a Poisson distribution of mean 3,
become one mask each, until 35 % of the words are masked. A model learns to restore the sentences of both languages, and
a translator then begins with its weights. Where a script has no spaces, characters take the place of words.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from itertools import chain, islice
from pathlib import Path

import numpy as np

from heed.core.files import atomic_write
from heed.text.language.scripts import is_unspaced

MASK = "▒"
MASKED = 0.35
MEAN_SPAN = 3
MOST_COPIES = 4
"""Times that a sentence is masked, each time in other places."""
MOST_ROWS = 200_000
"""Rows from which a sentence is masked less often."""
MOST_LINES = 250_000
"""Lines that are read of each file."""
NUM_VALID = 300
FEWEST_ROWS, FEWEST_VALID = 100, 10
"""Rows for training and for validation without which there is nothing to learn."""
_WORDS = re.compile(r"\S+\s*")


def masked(text: str, rng: np.random.Generator) -> str:
    """A text in which masks have taken the place of spans of words.

    White space at the beginning is left out. One word is 35 % of at least two: a single one stays as it is.
    """
    words = [unit for word in _WORDS.findall(text) for unit in _units(word)]
    left = round(MASKED * len(words))
    while left > 0:
        length = min(max(1, int(rng.poisson(MEAN_SPAN))), left, len(words))
        at = int(rng.integers(len(words) - length + 1))
        last = words[at + length - 1]
        words[at : at + length] = [MASK + last[len(last.rstrip()) :]]
        left -= length
    return "".join(words)


def _units(word: str) -> list[str]:
    """A word, or the parts between which a script without spaces could be cut; spaces stay at the end of a unit."""
    if not any(map(is_unspaced, word)):
        return [word]
    units: list[str] = []
    for char in word:
        is_part = bool(units) and not is_unspaced(char) and not is_unspaced(units[-1][0])  # "iPhone" in Japanese
        if units and (is_part or char.isspace() or unicodedata.category(char).startswith("M")):
            units[-1] += char
        else:
            units.append(char)
    return units


def write_masked(files: Sequence[Path], masks: Path, texts: Path, valid_masks: Path, valid_texts: Path) -> int:
    """Write masked sentences and what they were, one a line, for training and for validation.

    `files`: sentences of both languages. Each distinct sentence is masked up to four times in other places, or kept for
    validation; one in which nothing is masked is left out. Returns the number of sentences for training; 0 if there are
    too few.
    """
    rng = np.random.default_rng(1)
    lines = chain.from_iterable(map(_lines, files))
    distinct = [text for text in dict.fromkeys(lines) if text.strip()]
    order = [distinct[number] for number in rng.permutation(len(distinct))]
    num_valid = min(NUM_VALID, len(order) // 10)
    valid, sentences = order[:num_valid], order[num_valid:]
    copies = max(1, min(MOST_COPIES, MOST_ROWS // max(len(sentences), 1)))
    rows = _rows((text for _ in range(copies) for text in sentences), rng)
    known = {source for source, _ in rows}
    held = [row for row in _rows(valid, rng) if row[0] not in known]
    if len(rows) < FEWEST_ROWS or len(held) < FEWEST_VALID:
        return 0
    for kept, paths in ((rows, (masks, texts)), (held, (valid_masks, valid_texts))):
        for place, path in enumerate(paths):
            with atomic_write(path, "w") as file:
                file.writelines(f"{row[place]}\n" for row in kept)
    return len({text for _, text in rows})


def _lines(path: Path) -> Iterable[str]:
    with path.open(encoding="utf-8", newline="\n") as file:
        yield from (line.rstrip("\n") for line in islice(file, MOST_LINES))


def _rows(texts: Iterable[str], rng: np.random.Generator) -> list[tuple[str, str]]:
    """The distinct masked texts with the texts, without those in which nothing is masked."""
    rows = dict.fromkeys((masked(text, rng), text) for text in texts)
    return [row for row in rows if MASK in row[0]]
