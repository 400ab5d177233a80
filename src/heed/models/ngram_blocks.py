"""Blocks of n-gram features of texts: words and characters of each text, and for pairs those that both texts have.

Texts are read some at a time, and each pass over them keeps only what its result needs: the counts of n-grams, or the
rows of the sparse matrices of those in a vocabulary.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from heed.core.allocator import give_memory_back
from heed.nn.incidence import Features, Incidence, occurrences
from heed.statistical.ngram_table import NgramNames, SparseRows
from heed.statistical.text_ngrams import Counted, Hashes, NgramOrders, Ngrams, Occurrences, ngrams_of

Texts = tuple[str, ...]
"""A text, or the two of a pair."""
_CHARACTERS = 1_000_000
"""Characters of texts whose n-grams are computed at once."""


@dataclass(frozen=True)
class NgramBlocks:
    """The features of texts with n-grams up to some lengths."""

    orders: NgramOrders

    def of(self, chunk: Sequence[Texts]) -> list[tuple[Occurrences, Ngrams]]:
        """The occurrences of each block in some texts, and what their places refer to."""
        sides = [ngrams_of(column, self.orders, salt) for salt, column in enumerate(zip(*chunk, strict=True))]
        blocks = [(found, side) for side in sides for found in side.kinds]
        if len(sides) == 2:
            first, second = (ngrams_of(column, self.orders, 2) for column in zip(*chunk, strict=True))
            blocks += [(_common(*kinds), second) for kinds in zip(first.kinds, second.kinds, strict=True)]
        return blocks

    def number(self, texts: Sequence[Texts]) -> int:
        """Occurrences in some texts, of all blocks."""
        return sum(len(found.hashes) for chunk in _chunks(texts) for found, _ in self.of(chunk))

    def count(self, texts: Iterable[Texts], least: int, most: int) -> list[Hashes]:
        """The vocabulary of each block: the n-grams that occur at least `least` times, at most `most` of them."""
        counted: list[Counted] = []
        for chunk in _chunks(texts):
            blocks = self.of(chunk)
            counted = counted or [Counted() for _ in blocks]
            for counts, (found, _) in zip(counted, blocks, strict=True):
                counts.add(found.hashes)
        vocabularies = [counts.frequent(least, most) for counts in counted]
        del counted
        give_memory_back()
        return vocabularies

    def incidences(
        self, texts: Iterable[Texts], vocabularies: Sequence[Hashes]
    ) -> tuple[list[Incidence], list[tuple[NDArray[np.uint8], NDArray[np.int64]]]]:
        """The features of training texts, scaled by inverse document frequency, and the names of the n-grams."""
        names = [NgramNames(vocabulary) for vocabulary in vocabularies]
        rows = [SparseRows() for _ in vocabularies]
        for chunk in _chunks(texts):
            for of_block, named, (found, ngrams) in zip(rows, names, self.of(chunk), strict=True):
                named.add(found, ngrams)
                of_block.add(found, named.vocabulary, len(chunk))
        blocks = []
        for vocabulary, of_block in zip(vocabularies, rows, strict=True):
            columns, offsets, counts = of_block.arrays()
            idf = np.log((1 + len(offsets) - 1) / (1 + occurrences(columns, len(vocabulary)))) + 1
            blocks.append(Incidence(columns, offsets, torch.from_numpy(idf.astype(np.float32)), counts))
        named_blocks = [named.arrays() for named in names]
        give_memory_back()
        return blocks, named_blocks

    def features(self, texts: Iterable[Texts], vocabularies: Sequence[Hashes], scales: Sequence[Tensor]) -> Features:
        """The features of texts with the vocabulary and the scale of each block."""
        rows = [SparseRows() for _ in vocabularies]
        for chunk in _chunks(texts):
            for of_block, vocabulary, (found, _) in zip(rows, vocabularies, self.of(chunk), strict=True):
                of_block.add(found, vocabulary, len(chunk))
        arrays = (of_block.arrays() for of_block in rows)
        return Features([
            Incidence(columns, offsets, scale, counts)
            for (columns, offsets, counts), scale in zip(arrays, scales, strict=True)
        ])  # fmt: skip


def _common(first: Any, second: Any) -> Any:
    """The occurrences of the second texts whose n-grams the first text has too."""
    one, other = (_keyed(found) for found in (first, second))
    kept = np.isin(other, one)
    return type(second)(second.text[kept], second.hashes[kept], second.begin[kept], second.end[kept])


def _keyed(found: Any) -> Hashes:
    return found.hashes * np.uint64(0x9E3779B97F4A7C15) + found.text.astype(np.uint64)  # type: ignore[no-any-return]


def _chunks(texts: Iterable[Texts]) -> Iterator[list[Texts]]:
    """Groups of texts with about `_CHARACTERS` characters each."""
    chunk: list[Texts] = []
    size = 0
    for row in texts:
        chunk.append(row)
        size += sum(map(len, row)) + 2
        if size >= _CHARACTERS:
            yield chunk
            chunk, size = [], 0
    if chunk:
        yield chunk
