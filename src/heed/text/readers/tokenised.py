"""Reader of tokenised pairs of sentences: two files of lines whose words are separated by blanks."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from heed.core.errors import DataError
from heed.text.archives import shown_name
from heed.text.readers import CorpusFiles, Errors, read_pairs


class TokenisedPairs(NamedTuple):
    """The words of each pair, as they are written."""

    sources: list[list[str]]
    targets: list[list[str]]

    @property
    def lengths(self) -> list[tuple[int, int]]:
        """The numbers of source and target words of each pair."""
        return [(len(src), len(tgt)) for src, tgt in zip(self.sources, self.targets, strict=True)]


def read_tokenised(src: str | Path, tgt: str | Path, errors: Errors = "strict") -> TokenisedPairs:
    """The words of two parallel files; only blanks and tabs separate words.

    Raises what `read_pairs` raises, and DataError for a line without words.
    """
    pairs = TokenisedPairs([], [])
    known: dict[str, str] = {}  # a word that occurs often is one string in memory
    for number, lines in enumerate(read_pairs(CorpusFiles(src, tgt), errors), start=1):
        for path, line, words in zip((src, tgt), lines, pairs, strict=True):
            words.append([known.setdefault(word, word) for word in line.replace("\t", " ").split(" ") if word])
            if not words[-1]:
                raise DataError(
                    f"{shown_name(path)}:{number}: the line has no words, so there is nothing to align. Remove it and "
                    "its pair from both files."
                )
    if not pairs.sources:
        raise DataError(f"{shown_name(src)} has no lines, so there is nothing to align.")
    return pairs
