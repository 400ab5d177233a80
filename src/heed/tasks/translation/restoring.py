"""Restoring sentences with masked spans: a first task for a translator that needs text in one language only.

This is BART's text infilling (Lewis et al. 2020): spans of words, whose lengths have a Poisson distribution of mean 3,
become one mask each, until 35 % of the words are masked. A model learns to restore the sentences of both languages, and
a translator then begins with its weights. Where a script has no spaces, characters take the place of words.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from heed.core.files import atomic_write
from heed.tasks.translation.monolingual import SIDES
from heed.text.language.scripts import is_unspaced

MASK = "▒"
MASKED = 0.35
MEAN_SPAN = 3
NUM_VALID = 300
MOST_COPIES, MOST_ROWS = 4, 200_000
"""Times that a sentence is masked, each time in other places; and the rows from which it is masked less often."""
_WORDS = re.compile(r"\S+\s*")


def masked(text: str, rng: np.random.Generator) -> str:
    """A text in which masks have taken the place of spans of words."""
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
    """The characters of a word in a script without spaces, else the word; spaces stay at the end of a unit."""
    if not any(map(is_unspaced, word)):
        return [word]
    text = word.rstrip()
    return [*text[:-1], text[-1] + word[len(text) :]]


def write_masked(texts: Iterable[str], folder: Path) -> dict[str, str]:
    """Write distinct sentences and their masked copies; returns the files, absolute, by keys of a `[data]` table.

    A few sentences are for validation.
    """
    rng = np.random.default_rng(1)
    distinct = [text for text in dict.fromkeys(texts) if text.strip()]
    order = [distinct[number] for number in rng.permutation(len(distinct))]
    num_valid = min(NUM_VALID, len(order) // 10)
    valid, sentences = order[:num_valid], order[num_valid:]
    copies = max(1, min(MOST_COPIES, MOST_ROWS // max(len(sentences), 1)))
    rows = dict.fromkeys((masked(text, rng), text) for _ in range(copies) for text in sentences)
    known = {source for source, _ in rows}
    held = [row for row in ((masked(text, rng), text) for text in valid) if row[0] not in known]
    files: dict[str, str] = {}
    for prefix, kept in (("valid_", held), ("", list(rows))):
        for place, side in enumerate(SIDES):
            path = (folder / f"restoring.{prefix}{side}").absolute()
            with atomic_write(path, "w") as file:
                file.writelines(f"{row[place]}\n" for row in kept)
            files[f"{prefix}{side}"] = str(path)
    return files
