"""Arrays of a saved model, checked as they are read."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load_file

from heed.core.errors import DataError
from heed.core.run_files import RESTORE
from heed.core.weight_file import digest_of, read_tensors
from heed.statistical.predictor import Ints

Arrays = Mapping[str, NDArray[np.generic]]


def read_arrays(path: Path) -> dict[str, NDArray[np.generic]]:
    """The arrays of a weight file; see `heed.core.weight_file.read_tensors`."""
    return read_tensors(path, _load, _digest)


def _load(path: Path) -> dict[str, NDArray[np.generic]]:
    try:
        return load_file(path)
    except TypeError as error:  # bfloat16
        raise DataError(f"{path} is not a model of counts: {error}.") from error


def _digest(arrays: Arrays) -> str:
    return digest_of(
        (name, f"torch.{array.dtype}", array.shape, array.reshape(-1).view(np.uint8).data)
        for name, array in arrays.items()
    )


def named(parts: Mapping[str, Arrays]) -> dict[str, NDArray[np.generic]]:
    """The arrays of several parts of a model, each after the name of its part: `table.counts`."""
    return {f"{part}.{name}": array for part, arrays in parts.items() for name, array in arrays.items()}


def part_of(arrays: Arrays, part: str) -> dict[str, NDArray[np.generic]]:
    """The arrays of a part, as `named` got them."""
    prefix = f"{part}."
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}


def read_numbers(arrays: Arrays, name: str, what: str, end: int, size: int | None = None, begin: int = 0) -> Ints:
    """The whole numbers [N] of an array, from `begin` to below `end`; `size` is N if it is known.

    Raises DataError, which calls the model `what`, for anything else.
    """
    array = arrays.get(name)
    fits = array is not None and array.ndim == 1 and array.dtype.kind in "iub" and size in (None, len(array))
    if array is None or not fits or (array.size and not (int(array.min()) >= begin and int(array.max()) < end)):
        raise DataError(f"not {what}: {name!r} is missing or has unexpected values. {RESTORE}")
    return array.astype(np.int64)


def read_bounds(arrays: Arrays, name: str, what: str, num_parts: int, size: int) -> Ints:
    """Where each of several consecutive parts of `size` elements begins, and the last one ends, [num_parts + 1].

    Raises DataError as `read_numbers` does.
    """
    bounds = read_numbers(arrays, name, what, size + 1, num_parts + 1)
    if bounds[0] != 0 or bounds[-1] != size or (np.diff(bounds) < 0).any():
        raise DataError(f"not {what}: {name!r} does not delimit its parts. {RESTORE}")
    return bounds
