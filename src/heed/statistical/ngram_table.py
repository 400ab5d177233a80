"""Tables of n-grams that grow with the texts: the rows of a sparse matrix, and the names of its columns."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from heed.statistical.text_ngrams import Hashes, Ints, Ngrams, Occurrences, columns_of, incidence

_NAMES = 1 << 16
"""Names that are put into order at once."""


class Growing:
    """An array that grows at its end, in place where the system can extend the memory."""

    def __init__(self, dtype: type[np.generic]) -> None:
        self._held: NDArray[Any] = np.zeros(1024, dtype=dtype)
        self.size = 0

    def extend(self, values: NDArray[Any]) -> None:
        """Append values."""
        size = self.size + len(values)
        if size > len(self._held):
            self._held.resize(max(size, len(self._held) + len(self._held) // 8), refcheck=False)
        self._held[self.size : size] = values
        self.size = size

    def array(self) -> NDArray[Any]:
        """The values, without room for more."""
        self._held.resize(self.size, refcheck=False)
        return self._held


class SparseRows:
    """The n-grams of texts as rows of a sparse matrix: columns, where each row begins, and counts."""

    def __init__(self) -> None:
        self.columns, self.counts, self.lengths = Growing(np.int32), Growing(np.uint8), Growing(np.int64)

    def add(self, found: Occurrences, vocabulary: Hashes, num_texts: int) -> None:
        """Append the rows of some texts."""
        columns, offsets, counts = incidence(found, vocabulary, num_texts)
        self.columns.extend(columns)
        self.counts.extend(counts)
        self.lengths.extend(np.diff(offsets))

    def arrays(self) -> tuple[NDArray[np.int32], Ints, NDArray[np.uint8]]:
        """Columns, offsets and counts of all rows."""
        offsets = np.concatenate([[0], np.cumsum(self.lengths.array())]).astype(np.int64)
        return self.columns.array(), offsets, self.counts.array()


class NgramNames:
    """The n-grams of a vocabulary as text, as they are met."""

    def __init__(self, vocabulary: Hashes) -> None:
        self.vocabulary = vocabulary
        self._begins: Ints = np.full(len(vocabulary), -1, dtype=np.int64)
        self._lengths: Ints = np.zeros(len(vocabulary), dtype=np.int64)
        self._text = Growing(np.uint8)

    def add(self, found: Occurrences, ngrams: Ngrams) -> None:
        """Name those that have no name yet and occur in some texts."""
        columns, first = np.unique(columns_of(found.hashes, self.vocabulary), return_index=True)
        known = columns >= 0
        columns, first = columns[known], first[known]
        new = self._begins[columns] < 0
        columns, places = columns[new], first[new]
        spans = zip(found.begin[places].tolist(), found.end[places].tolist(), strict=True)
        names = [ngrams.joined[begin:end].encode("utf-8", "replace") for begin, end in spans]
        lengths = np.array([len(name) for name in names], dtype=np.int64)
        self._begins[columns] = self._text.size + np.cumsum(lengths) - lengths
        self._lengths[columns] = lengths
        self._text.extend(np.frombuffer(b"".join(names), dtype=np.uint8))

    def arrays(self) -> tuple[NDArray[np.uint8], Ints]:
        """The names in the order of the vocabulary as UTF-8, in sequence, and where each begins and the last one ends.

        At least one byte.
        """
        text, ordered = self._text.array(), Growing(np.uint8)
        for first in range(0, len(self.vocabulary), _NAMES):
            lengths, begins = (each[first : first + _NAMES] for each in (self._lengths, self._begins))
            shift = begins - (np.cumsum(lengths) - lengths)
            ordered.extend(text[np.arange(int(lengths.sum())) + np.repeat(shift, lengths)])
        ends = np.concatenate([[0], np.cumsum(self._lengths)]).astype(np.int64)
        return ordered.array() if ordered.size else np.zeros(1, dtype=np.uint8), ends
