"""Weight files as they are read: safetensors with a checked header and a SHA-256.

A safetensors file consists of 8 bytes with the length of its header, a JSON header with the type, shape and offsets of
each tensor, and the data. The header is read and checked before memory is allocated for the tensors. heed's own files
also contain their format and a SHA-256 of the tensors, so that a changed bit is noticed. PyTorch reads and writes them
in `heed.nn.weight_file`, NumPy reads them in `heed.statistical.saved_arrays`.
"""

from __future__ import annotations

import hashlib
import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, NonNegativeInt, ValidationError
from safetensors import SafetensorError

from heed.core.errors import DataError
from heed.core.files import format_bytes
from heed.core.formats import require_format
from heed.core.json_text import parse_json
from heed.core.own_files import open_own

T = TypeVar("T")

MAX_HEADER_BYTES = 16_000_000
MAX_TENSORS = 50_000
"""A checkpoint with averages of a deep model's weights has some thousands."""
METADATA_KEY = "heed"
"""Key of heed's metadata: one JSON text, because the library writes several keys in any order."""

Shapes = Mapping[str, tuple[int, ...]]
_ITEM_BYTES = {
    "BOOL": 1, "U8": 1, "I8": 1, "U16": 2, "I16": 2, "F16": 2, "BF16": 2, "U32": 4, "I32": 4, "F32": 4, "U64": 8,
    "I64": 8, "F64": 8,
}  # fmt: skip


class StoredTensor(BaseModel):
    """A tensor's entry in the header."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    dtype: Literal["BOOL", "U8", "I8", "U16", "I16", "F16", "BF16", "U32", "I32", "F32", "U64", "I64", "F64"]
    shape: Annotated[list[NonNegativeInt], Field(max_length=8)]
    data_offsets: Annotated[list[NonNegativeInt], Field(min_length=2, max_length=2)]

    @property
    def num_bytes(self) -> int:
        """Number of bytes that the shape needs."""
        return math.prod(self.shape) * _ITEM_BYTES[self.dtype]


class Header(BaseModel):
    """Header of a weight file; `metadata` is that given to `save_weights`, with the format and the SHA-256."""

    model_config = ConfigDict(frozen=True, strict=True)

    metadata: dict[str, str]
    tensors: Annotated[dict[str, StoredTensor], Field(max_length=MAX_TENSORS)]

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The shape of each tensor."""
        return {name: tuple(tensor.shape) for name, tensor in self.tensors.items()}

    @property
    def num_parameters(self) -> int:
        """Number of learned or counted numbers; integer tensors that index them are not included."""
        floats = [tensor for tensor in self.tensors.values() if "F" in tensor.dtype]
        return sum(math.prod(tensor.shape) for tensor in floats or self.tensors.values())


def read_header(path: Path) -> Header:
    """The header of a safetensors file, checked against the file's size.

    Raises what `open_own` raises, and DataError if it is not a safetensors file, is truncated, or has a header of more
    than `MAX_HEADER_BYTES`.
    """
    with open_own(path.parent, path.name) as file:
        size = os.fstat(file.fileno()).st_size
        length = int.from_bytes(file.read(8), "little")
        if not 2 <= length <= size - 8:
            raise _damaged(path, f"its header claims {length} bytes, but the file has {size}")
        if length > MAX_HEADER_BYTES:
            limit = format_bytes(MAX_HEADER_BYTES)
            raise _damaged(path, f"its header has {format_bytes(length)}, more than the limit of {limit}")
        return _parsed(path, file.read(length), size - 8 - length)


def _parsed(path: Path, text: bytes, num_data_bytes: int) -> Header:
    try:
        entries = parse_json(text)
        metadata = entries.pop("__metadata__", {}) if isinstance(entries, dict) else {}
        metadata = parse_json(metadata.get(METADATA_KEY, "{}")) if isinstance(metadata, dict) else metadata
        header = Header.model_validate({"metadata": metadata, "tensors": entries})
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        raise _damaged(path, f"its header is wrong at {'.'.join(map(str, first['loc']))!r}: {first['msg']}") from error
    except (ValueError, TypeError) as error:
        raise _damaged(path, "its header is not JSON") from error
    for name, tensor in header.tensors.items():
        begin, end = tensor.data_offsets
        if end - begin != tensor.num_bytes:
            raise _damaged(path, f"{name!r} has {end - begin} bytes, but its shape needs {tensor.num_bytes}")
        if end > num_data_bytes:
            raise _damaged(path, f"{name!r} is outside the file")
    return header


def _damaged(path: Path, what: str) -> DataError:
    return DataError(f"{path} is damaged or not a safetensors file: {what:.300}.")  # a name can be as long as a header


def require_shapes(shapes: Shapes, model_shapes: Shapes, path: Path) -> None:
    """Raises DataError unless names and shapes are those of the recipe's model."""
    if shapes.keys() != model_shapes.keys():
        name = sorted(shapes.keys() ^ model_shapes.keys())[0]
        raise DataError(f"{path}: the weights do not fit the recipe's model: only one of the two has {name!r:.100}.")
    for name, shape in model_shapes.items():
        if shapes[name] != shape:
            difference = f"{list(shapes[name])}, the recipe's model has {list(shape)}"
            raise DataError(f"{path}: {name!r} has the shape {difference}.")


def read_tensors(
    path: Path, load: Callable[[Path], dict[str, T]], digest: Callable[[Mapping[str, T]], str],
    shapes: Shapes | None = None,
) -> dict[str, T]:  # fmt: skip
    """The tensors of a safetensors file, written by heed or by another program.

    `load` reads them, and `digest` is their SHA-256 by `digest_of`. With `shapes`, those of the recipe's model, a file
    of other weights is refused before its tensors are read. Raises DataError and MissingInputError; nothing in the file
    can run code.
    """
    header = read_header(path)
    number = header.metadata.get("format", "1")
    require_format(int(number) if number.isdecimal() else number, path)
    if shapes is not None:
        require_shapes(header.shapes, shapes, path)
    try:
        tensors = load(path)
    except (SafetensorError, OSError) as error:
        raise _damaged(path, str(error)) from error
    if "sha256" in header.metadata and header.metadata["sha256"] != digest(tensors):
        raise DataError(f"{path} is damaged: its numbers do not match their SHA-256.")
    return tensors


def digest_of(tensors: Iterable[tuple[str, str, Sequence[int], memoryview]]) -> str:
    """SHA-256 of names, types as PyTorch writes them, shapes and values, independent of the layout of a file."""
    sha256 = hashlib.sha256()
    for name, dtype, shape, values in sorted(tensors, key=lambda tensor: tensor[0]):
        sha256.update(f"{name} {dtype} {list(shape)}\n".encode())
        sha256.update(values)
    return sha256.hexdigest()
