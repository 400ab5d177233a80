"""Arrays in NumPy's file format, written row by row to anything, also to a pipe.

The header has the number of rows, which is known at the end only, so the rows wait in a temporary file: memory stays
small, and after an error nothing has been written.
"""

from __future__ import annotations

import shutil
import tempfile
from types import TracebackType
from typing import BinaryIO, Self

import numpy as np
from numpy.typing import NDArray

_IN_MEMORY = 1 << 24
"""Bytes that wait in memory before they go into a file."""


class NpyWriter:
    """Writes a float32 array [N, D] to `target` when the `with` block ends without an error."""

    def __init__(self, target: BinaryIO, num_columns: int) -> None:
        self._target = target
        self._num_columns, self._num_rows = num_columns, 0
        self._rows = tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY)  # noqa: SIM115 (closed by __exit__)

    def add(self, rows: NDArray[np.float32]) -> None:
        """Add rows [n, D]."""
        self._rows.write(np.ascontiguousarray(rows, dtype="<f4").tobytes())
        self._num_rows += len(rows)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        with self._rows as rows:
            if kind is None:
                header = {"descr": "<f4", "fortran_order": False, "shape": (self._num_rows, self._num_columns)}
                np.lib.format.write_array_header_1_0(self._target, header)
                rows.seek(0)
                shutil.copyfileobj(rows, self._target)
                self._target.flush()
