"""Hashes of training lines, to detect test lines among them: 64 bits for each line and kind.

A folder with one sorted NumPy array for each kind, memory-mapped: `src.npy`, `tgt.npy`, and `pair.npy` for both
sides together. Whoever has the folder can ask of a line whether it was there, and cannot read any.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Self

import numpy as np
from numpy.typing import NDArray

from heed.core.errors import DataError
from heed.core.files import atomic_write
from heed.data.distinct import DTYPE, DistinctNumbers
from heed.text.hashing import hash_pair, hash_text

Row = tuple[str, ...]
"""(source, target), or the (line,) of a text."""


def hashes_of(row: Row) -> dict[str, int]:
    """The hashes of a row by kind: of each side, and of a pair as a whole."""
    if len(row) == 1:
        return {"tgt": hash_text(row[0])}
    src, tgt = row
    return {"src": hash_text(src), "tgt": hash_text(tgt), "pair": hash_pair(src, tgt)}


class LineHasher:
    """Collects the hashes of rows as they pass and writes what `LineHashes.open` reads, in little memory."""

    def __init__(self, folder: Path) -> None:
        """`folder` is on the disk that has room for 8 bytes a row a kind."""
        self._folder = folder
        self._hashes: dict[str, DistinctNumbers] = {}

    def add(self, row: Row) -> None:
        """One more row."""
        for kind, key in hashes_of(row).items():
            if kind not in self._hashes:
                self._hashes[kind] = DistinctNumbers(self._folder)
            self._hashes[kind].add(key)

    def write(self, folder: Path) -> None:
        """Write those of the rows so far into a folder, which is made where it is missing."""
        folder.mkdir(parents=True, exist_ok=True)
        for kind, hashes in self._hashes.items():
            hashes.write(folder / f"{kind}.npy")


class LineHashes:
    """The distinct lines of some rows, by their hashes."""

    def __init__(self, hashes: Mapping[str, NDArray[np.uint64]]) -> None:
        """`hashes`: sorted and distinct, by kind."""
        self.hashes = hashes

    @classmethod
    def of(cls, rows: Iterable[Row]) -> LineHashes:
        """Those of all rows, in memory."""
        keys: dict[str, array[int]] = {}
        for row in rows:
            for kind, key in hashes_of(row).items():
                keys.setdefault(kind, array("Q")).append(key)
        return cls({kind: np.unique(np.array(found, dtype=DTYPE)) for kind, found in keys.items()})

    @classmethod
    def open(cls, folder: Path) -> Self | None:
        """What `write` wrote, memory-mapped; None where there is no such folder. Raises DataError when damaged."""
        if not folder.is_dir():
            return None
        try:
            return cls({path.stem: _mapped(path) for path in sorted(folder.glob("*.npy"))})
        except (ValueError, EOFError, OSError) as error:
            advice = f"Remove {folder} to evaluate without the check for leakage."
            raise DataError(f"{folder} is damaged ({error}). {advice}") from error

    def write(self, folder: Path) -> None:
        """Write them into a folder, which is made where it is missing."""
        folder.mkdir(parents=True, exist_ok=True)
        for kind, keys in self.hashes.items():
            with atomic_write(folder / f"{kind}.npy") as file:
                np.save(file, keys)

    def united(self, other: LineHashes) -> LineHashes:
        """The lines of both."""
        nothing = np.empty(0, dtype=DTYPE)
        kinds = {**self.hashes, **other.hashes}
        return LineHashes(
            {kind: np.union1d(self.hashes.get(kind, nothing), other.hashes.get(kind, nothing)) for kind in kinds}
        )

    def found(self, rows: Sequence[Row]) -> dict[str, NDArray[np.bool_]]:
        """Which rows are among them, by kind [num_rows]."""
        keys = [hashes_of(row) for row in rows]
        return {
            kind: _among(known, np.array([key[kind] for key in keys], dtype=DTYPE))
            for kind, known in self.hashes.items()
        }


def _mapped(path: Path) -> NDArray[np.uint64]:
    found = np.asarray(np.load(path, mmap_mode="r"))
    if found.dtype != DTYPE or found.ndim != 1:
        raise ValueError(f"{path.name} holds {found.dtype} numbers in {found.ndim} dimensions")
    return found


def _among(known: NDArray[np.uint64], keys: NDArray[np.uint64]) -> NDArray[np.bool_]:
    """Which keys are among the sorted ones: a binary search each, so that a mapped file stays on the disk."""
    places = np.minimum(np.searchsorted(known, keys), max(len(known) - 1, 0))
    return known[places] == keys if len(known) else np.zeros(len(keys), dtype=bool)
