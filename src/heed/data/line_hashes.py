"""Hashes of training lines, to detect test lines among them: 64 bits for each line and kind.

A run folder has one sorted NumPy array for each kind, which is memory-mapped: `src.npy`, `tgt.npy`, and `pair.npy` for
both sides together. They reveal whether a given line was in the training data, but no line can be read from them.
"""

from __future__ import annotations

import os
import re
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import reduce
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Self
from weakref import finalize

import numpy as np
from numpy.typing import NDArray

from heed.core.errors import DataError
from heed.core.run_files import RunFiles
from heed.text.hashing import hash_pair, hash_text

DTYPE = np.dtype("<u8")  # the same on every machine
_RUN = 1 << 20
"""Numbers in a sorted run: 8 MB."""
_PARTS = 256
_PART_BEGINS = np.arange(1, _PARTS, dtype=np.uint64) * np.uint64(2**64 // _PARTS)
"""Lower bounds of the parts of the range of numbers, except the first."""

Row = tuple[str, ...]
"""(source, target), or the (line,) of a text."""


def hashes_of(row: Row) -> dict[str, int]:
    """The hashes of a row by kind: of each side, and of a pair as a whole."""
    if len(row) == 1:
        return {"tgt": hash_text(row[0])}
    src, tgt = row
    return {"src": hash_text(src), "tgt": hash_text(tgt), "pair": hash_pair(src, tgt)}


_HEADER = re.compile(
    rb"\x93NUMPY\x01\x00(?P<length>..)"
    rb"(?P<text>\{'descr': '<u8', 'fortran_order': False, 'shape': \((?P<count>\d{1,15}),\), \} *\n)",
    re.DOTALL,
)
"""The beginning of a file of hashes. NumPy's own reader parses any header as Python, with any of Python's errors."""


class LineHasher:
    """Collects the hashes of rows and writes the files that `LineHashes.open` reads, in little memory."""

    def __init__(self, folder: Path) -> None:
        """`folder` is for temporary files, of 8 bytes for each row and kind."""
        self._folder = folder
        self._hashes: dict[str, DistinctNumbers] = {}

    def add(self, row: Row) -> None:
        """Add the hashes of a row."""
        for kind, key in hashes_of(row).items():
            if kind not in self._hashes:
                self._hashes[kind] = DistinctNumbers(self._folder)
            self._hashes[kind].add(key)

    def write(self, files: RunFiles, name: str) -> None:
        """Write the hashes of all rows into the folder `name` of a run. Ends the collection."""
        for kind, hashes in self._hashes.items():
            with files.write(f"{name}/{kind}.npy") as file:
                hashes.write(file)


class LineHashes:
    """The distinct lines of a set of rows, as hashes."""

    def __init__(self, hashes: Mapping[str, NDArray[np.uint64]]) -> None:
        """`hashes`: sorted and distinct, by kind."""
        self.hashes = hashes

    @classmethod
    def of(cls, rows: Iterable[Row]) -> LineHashes:
        """The hashes of all rows, in memory."""
        keys: dict[str, array[int]] = {}
        for row in rows:
            for kind, key in hashes_of(row).items():
                keys.setdefault(kind, array("Q")).append(key)
        return cls({kind: np.unique(np.array(numbers, dtype=DTYPE)) for kind, numbers in keys.items()})

    @classmethod
    def open(cls, files: RunFiles, name: str) -> Self | None:
        """The hashes in the folder `name` of a run, memory-mapped; None if there is none. Raises DataError if damaged.

        What they are mapped from is checked as a whole.
        """
        folder = files.folder / name
        if not folder.is_dir():
            return None
        advice = f"Remove {folder} to evaluate without the check for leakage."
        try:
            kinds = sorted(path.stem for path in folder.glob("*.npy"))
            return cls({kind: _mapped(files, f"{name}/{kind}.npy", advice) for kind in kinds})
        except (ValueError, EOFError, OSError) as error:
            raise DataError(f"{folder} is damaged ({error}). {advice}") from error

    def write(self, files: RunFiles, name: str) -> None:
        """Write the hashes into the folder `name` of a run."""
        for kind, keys in self.hashes.items():
            with files.write(f"{name}/{kind}.npy") as file:
                np.save(file, keys)

    def united(self, other: LineHashes) -> LineHashes:
        """The lines of both."""
        nothing = np.empty(0, dtype=DTYPE)
        kinds = {**self.hashes, **other.hashes}
        return LineHashes(
            {kind: np.union1d(self.hashes.get(kind, nothing), other.hashes.get(kind, nothing)) for kind in kinds}
        )

    def as_read_by(self, others: LineHashes) -> LineHashes:
        """The same lines by the kinds of the rows of `others`.

        Where they differ, each side of a pair is a text, and a text counts as a source if the others have any.
        """
        if self.hashes.keys() == others.hashes.keys():
            return self
        texts = [keys for kind, keys in self.hashes.items() if kind != "pair"]
        kind = "src" if "src" in others.hashes else "tgt"
        return LineHashes({kind: reduce(np.union1d, texts, np.empty(0, dtype=DTYPE))})

    def found(self, rows: Sequence[Row]) -> dict[str, NDArray[np.bool_]]:
        """Masks of the rows that are among the lines, by the kinds that the rows have [num_rows]."""
        keys = [hashes_of(row) for row in rows]
        return {
            kind: _among(hashes, np.array([key[kind] for key in keys], dtype=DTYPE))
            for kind, hashes in self.hashes.items()
            if all(kind in key for key in keys)
        }


def _mapped(files: RunFiles, name: str, advice: str) -> NDArray[np.uint64]:
    with files.open(name, advice) as file:
        header = _HEADER.match(file.read(1000))
        if header is None or int.from_bytes(header["length"], "little") != len(header["text"]):
            raise ValueError(f"{Path(name).name} does not begin as an array of 64-bit numbers")
        count, size = int(header["count"]), os.fstat(file.fileno()).st_size - header.end()
        if size != count * DTYPE.itemsize:
            raise ValueError(f"{Path(name).name} has {size} bytes for {count} numbers")
        return np.asarray(np.memmap(file, DTYPE, "r", offset=header.end(), shape=(count,)))


def _among(hashes: NDArray[np.uint64], keys: NDArray[np.uint64]) -> NDArray[np.bool_]:
    """Mask of the keys that are among sorted hashes, by binary search, which reads little of a mapped file."""
    indices = np.minimum(np.searchsorted(hashes, keys), max(len(hashes) - 1, 0))
    return hashes[indices] == keys if len(hashes) else np.zeros(len(keys), dtype=bool)


class DistinctNumbers:
    """External sort of distinct numbers below 2^64, in 8 MB of memory and 8 bytes a number in a temporary file.

    Sorted runs are written to the file, and merged for one part of the range of numbers after another. The numbers are
    hashes, so the parts are about equal.
    """

    def __init__(self, folder: Path) -> None:
        """`folder` is for the temporary file."""
        self._recent = array("Q")
        self._file: IO[bytes] = TemporaryFile(dir=folder)  # noqa: SIM115, closed by the finaliser
        finalize(self, self._file.close)
        self._cuts: list[NDArray[np.int64]] = []
        """For each run, the bounds of its parts in the file, in numbers."""

    def add(self, number: int) -> None:
        """Add a number, which may occur more than once."""
        self._recent.append(number)
        if len(self._recent) >= _RUN:
            self._spill()

    def write(self, file: IO[bytes]) -> None:
        """Write the ascending distinct numbers as a NumPy array that can be memory-mapped. Ends the collection."""
        self._spill()
        with self._file:
            _write_header(file, 0)  # has the length of the header that replaces it
            count = 0
            for part in range(_PARTS):
                numbers = np.unique(np.concatenate([np.empty(0, DTYPE), *self._read(part)]))
                file.write(numbers.tobytes())
                count += len(numbers)
            file.seek(0)
            _write_header(file, count)

    def _spill(self) -> None:
        run = np.unique(np.array(self._recent, dtype=DTYPE))
        begin = self._cuts[-1][-1] if self._cuts else 0
        self._cuts.append(begin + np.concatenate(([0], np.searchsorted(run, _PART_BEGINS), [len(run)])))
        self._file.write(run.tobytes())
        del self._recent[:]

    def _read(self, part: int) -> Iterator[NDArray[np.uint64]]:
        """One part of each run."""
        for cuts in self._cuts:
            begin, end = (int(cut) * DTYPE.itemsize for cut in cuts[part : part + 2])
            self._file.seek(begin)
            yield np.frombuffer(self._file.read(end - begin), dtype=DTYPE)


def _write_header(file: IO[bytes], count: int) -> None:
    # NumPy reserves room for the digits of any length.
    np.lib.format.write_array_header_1_0(file, {"descr": DTYPE.str, "fortran_order": False, "shape": (count,)})
