"""Dictionaries of single words: on each line a word, a tab, its translation, and perhaps a tab and its probability.

`heed align --dictionary` writes them, and `heed translate --dictionary` replaces unknown words by them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from heed.core.errors import DataError
from heed.text.readers.lines import read_lines


def read_dictionary(path: str | Path, normalise: Callable[[str], str]) -> dict[str, str]:
    """The likeliest translation of each word; of equally likely ones, as without probabilities, the first.

    Words and translations are normalised. Empty lines are skipped. Raises DataError for a malformed line.
    """
    best: dict[str, tuple[float, str]] = {}
    for number, line in enumerate(read_lines(path), start=1):
        if not line.strip():
            continue
        columns = [normalise(column).strip() for column in line.split("\t")]
        probability = _probability(columns[2]) if len(columns) == 3 else 1.0
        if len(columns) not in (2, 3) or not all(columns) or probability is None:
            raise DataError(
                f"{path}, line {number}: expected a word, a tab and its translation on each line of a dictionary, and "
                f"perhaps a tab and a probability, got {line!r}."
            )
        word, translation, *_ = columns
        if word not in best or probability > best[word][0]:
            best[word] = probability, translation
    return {word: translation for word, (_, translation) in best.items()}


def _probability(text: str) -> float | None:
    """The number from 0 to 1 that a text is, or None."""
    try:
        value = float(text)
    except ValueError:
        return None
    return value if 0 <= value <= 1 else None


def dictionary_lines(linked: Iterable[tuple[str, str]]) -> Iterator[str]:
    """The lines of a dictionary, from all linked words of a text: the share of a word's links is the probability.

    Words come in alphabetical order, and the translations of a word from the likeliest on.
    """
    counts = Counter(linked)
    totals: Counter[str] = Counter()
    for (word, _), count in counts.items():
        totals[word] += count
    for (word, translation), count in sorted(counts.items(), key=lambda item: (item[0][0], -item[1], item[0][1])):
        yield f"{word}\t{translation}\t{count / totals[word]:.4g}"
