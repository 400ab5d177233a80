"""External sort of distinct 64-bit numbers, for more of them than should stay in memory.

By an external sort: sorted runs go to a nameless temporary file, and are merged one part of the range of numbers after
the other. The numbers are hashes, so the parts are about equal.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO
from weakref import finalize

import numpy as np
from numpy.typing import NDArray

from heed.core.files import atomic_write

DTYPE = np.dtype("<u8")  # the same on every machine
_RUN = 1 << 20
"""Numbers of a run: 8 MB."""
_PARTS = 256
_BEGINS = np.arange(1, _PARTS, dtype=np.uint64) * np.uint64(2**64 // _PARTS)
"""Where the parts of the range begin, but the first."""


class DistinctNumbers:
    """Collects numbers below 2^64 in 8 MB of memory; 8 bytes a number in a temporary file, then on disk."""

    def __init__(self, folder: Path) -> None:
        """`folder` is on the disk that has room for them."""
        self._recent = array("Q")
        self._file: IO[bytes] = TemporaryFile(dir=folder)  # noqa: SIM115, it lives as long as this does
        finalize(self, self._file.close)
        self._cuts: list[NDArray[np.int64]] = []
        """Of each run: where in the file its parts begin and end, in numbers."""

    def add(self, number: int) -> None:
        """One more; it may have come before."""
        self._recent.append(number)
        if len(self._recent) >= _RUN:
            self._spill()

    def write(self, path: Path) -> None:
        """Write them, ascending and each once, as a NumPy array that can be memory-mapped. Ends the collection."""
        self._spill()
        with self._file, atomic_write(path) as file:
            _write_header(file, 0)  # as long as the one that takes its place
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
        self._cuts.append(begin + np.concatenate(([0], np.searchsorted(run, _BEGINS), [len(run)])))
        self._file.write(run.tobytes())
        del self._recent[:]

    def _read(self, part: int) -> Iterator[NDArray[np.uint64]]:
        """One part of each run."""
        for cuts in self._cuts:
            begin, end = (int(cut) * DTYPE.itemsize for cut in cuts[part : part + 2])
            self._file.seek(begin)
            yield np.frombuffer(self._file.read(end - begin), dtype=DTYPE)


def _write_header(file: IO[bytes], count: int) -> None:
    """NumPy keeps room for the digits of a length that is not known yet."""
    np.lib.format.write_array_header_1_0(file, {"descr": DTYPE.str, "fortran_order": False, "shape": (count,)})
