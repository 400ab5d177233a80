"""Token store: the token ids of a corpus on disk, memory-mapped for reading in any order.

A store is a folder: for each side (`src`, `tgt`) the concatenated ids of all rows in `src.tok`, the beginning of each
row in `src.off`, and `manifest.json` with sizes, checksums and the caller's fingerprint of the source data. The folder
is written atomically. The files are memory-mapped: opening one costs the same at any size, and data that was read
belongs to the system's cache rather than to the memory of this process.
"""

from __future__ import annotations

import hashlib
import mmap
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, BinaryIO, Literal, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, JsonValue, NonNegativeInt, PositiveInt, StringConstraints, ValidationError

from heed.core.errors import DataError, MissingInputError
from heed.core.files import atomic_folder
from heed.core.own_files import open_own, read_own

TRAIN = "data/train"
"""The folder of the training rows in a run folder."""
FORMAT: Literal["heed-tokens-1"] = "heed-tokens-1"
_BUFFERED_IDS = 1 << 16
"""Ids of each side in memory before they are written."""
_LEFT_MAPPED = 1 << 28
"""Bytes of tokens that may remain mapped in a process that reads them all."""

SideName = Annotated[str, StringConstraints(pattern=r"^[a-z]+$")]


class StoredFile(BaseModel):
    """Size and checksum of a file of the store."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    num_bytes: NonNegativeInt
    sha256: str


class StoredSide(BaseModel):
    """One side of the corpus."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    vocab_size: PositiveInt
    dtype: Literal["uint16", "uint32"]
    tokens: StoredFile
    offsets: StoredFile


class Manifest(BaseModel):
    """Content of `manifest.json`. `fingerprint` is given by the caller, for instance the tokenizer's hash."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    format: Literal["heed-tokens-1"]
    num_rows: NonNegativeInt
    sides: dict[SideName, StoredSide]
    fingerprint: dict[str, JsonValue]


@dataclass(frozen=True)
class _Side:
    """The mapped files of one side."""

    tokens: NDArray[np.unsignedinteger]
    tokens_map: mmap.mmap | None
    offsets: NDArray[np.uint64]


class TokenStore:
    """The rows of a corpus as token ids, read from disk on demand."""

    def __init__(self, folder: Path, manifest: Manifest, sides: Mapping[str, _Side]) -> None:
        self.folder = folder
        self.manifest = manifest
        self._sides = sides

    @classmethod
    def open(cls, folder: Path, verify: bool = False) -> Self:
        """The store in `folder`; with `verify`, the files are read once and compared with the checksums.

        Raises MissingInputError if the folder does not exist, and DataError if its files have changed.
        """
        manifest = _read_manifest(folder)
        sides = {}
        for name, side in manifest.sides.items():
            tokens, tokens_map = map_file(folder / f"{name}.tok", side.dtype, side.tokens, verify)
            offsets, _ = map_file(folder / f"{name}.off", "uint64", side.offsets, verify)
            if len(offsets) != manifest.num_rows + 1 or offsets[0] != 0 or offsets[-1] != len(tokens):
                raise _damaged(folder, f"{name}.off does not fit {manifest.num_rows} rows of {len(tokens)} tokens")
            sides[name] = _Side(tokens, tokens_map, offsets)
        return cls(folder, manifest, sides)

    def __len__(self) -> int:
        return self.manifest.num_rows

    @property
    def sides(self) -> tuple[str, ...]:
        """The names of the sides in the order of writing."""
        return tuple(self._sides)

    def row(self, side: str, i: int) -> NDArray[np.unsignedinteger]:
        """The token ids of row `i`, read-only, in the store's own integer type, without bos or eos."""
        i = range(len(self))[i]
        stored = self._sides[side]
        return stored.tokens[stored.offsets[i] : stored.offsets[i + 1]]

    def all_tokens(self, side: str) -> tuple[NDArray[np.unsignedinteger], NDArray[np.uint64]]:
        """The concatenated ids of all rows, read-only, and the beginning of each row and the end of the last."""
        stored = self._sides[side]
        return stored.tokens, stored.offsets

    def lengths(self, side: str) -> NDArray[np.int32]:
        """The number of tokens of every row `[num_rows]`."""
        lengths = np.diff(self._sides[side].offsets)
        # An offset below its predecessor wraps to a huge length.
        if len(lengths) and lengths.max() > np.iinfo(np.int32).max:
            raise _damaged(self.folder, f"{side}.off is not ascending")
        return lengths.astype(np.int32)

    def release_pages(self) -> None:
        """Release the pages that were read; they remain in the system's cache.

        Otherwise a reader of a large store is reported to use as much memory as the store has bytes. Pages of a small
        store are kept, since reading released pages again takes time.
        """
        if sys.platform != "win32" and sum(side.tokens.nbytes for side in self._sides.values()) > _LEFT_MAPPED:
            for side in self._sides.values():
                if side.tokens_map is not None:
                    side.tokens_map.madvise(mmap.MADV_DONTNEED)


def write_store(
    folder: Path,
    sides: Sequence[str],
    rows: Iterable[tuple[Sequence[int], ...]],
    vocab_sizes: Sequence[int],
    fingerprint: Mapping[str, JsonValue],
) -> TokenStore:
    """Writes rows of token ids, one sequence for each side, in little memory; then opens the store.

    `vocab_sizes` has one number for each side: ids are stored in 16 bits if they fit. `fingerprint` is stored in the
    manifest, so that the caller can recognise the source data. After an error no folder is left.

    Raises DataError for an id that is not below the size of its vocabulary.
    """
    with atomic_folder(folder) as unfinished:
        with ExitStack() as stack:
            writers = [
                stack.enter_context(_SideWriter(unfinished, side, vocab_size))
                for side, vocab_size in zip(sides, vocab_sizes, strict=True)
            ]
            num_rows = 0
            for row in rows:
                for writer, ids in zip(writers, row, strict=True):
                    writer.add(ids)
                num_rows += 1
            stored = {side: writer.finish() for side, writer in zip(sides, writers, strict=True)}
        manifest = Manifest(format=FORMAT, num_rows=num_rows, sides=stored, fingerprint=dict(fingerprint))
        (unfinished / "manifest.json").write_text(manifest.model_dump_json(indent=2) + "\n", encoding="utf-8")
    return TokenStore.open(folder)


class HashedFile:
    """A file that computes its size and checksum while it is written."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._hash = hashlib.sha256()
        self._num_bytes = 0

    def write(self, array: NDArray[np.unsignedinteger]) -> None:
        data = array.tobytes()
        self._hash.update(data)
        self._num_bytes += self._file.write(data)

    def stored(self) -> StoredFile:
        return StoredFile(num_bytes=self._num_bytes, sha256=self._hash.hexdigest())


class _SideWriter(ExitStack):
    """Writes one side, with a bounded number of ids in memory."""

    def __init__(self, folder: Path, side: str, vocab_size: int) -> None:
        super().__init__()
        self._side, self._vocab_size = side, vocab_size
        self._dtype: Literal["uint16", "uint32"] = "uint16" if vocab_size <= 1 << 16 else "uint32"
        self._tokens = HashedFile(self.enter_context((folder / f"{side}.tok").open("wb")))
        self._offsets = HashedFile(self.enter_context((folder / f"{side}.off").open("wb")))
        self._ids: list[int] = []
        self._ends = [0]
        self._num_tokens = 0

    def add(self, ids: Sequence[int]) -> None:
        """Add a row."""
        self._ids.extend(ids)
        self._num_tokens += len(ids)
        self._ends.append(self._num_tokens)
        if len(self._ids) + len(self._ends) >= _BUFFERED_IDS:
            self._flush()

    def finish(self) -> StoredSide:
        """Write the remaining ids; returns the manifest's entry."""
        self._flush()
        return StoredSide(
            vocab_size=self._vocab_size,
            dtype=self._dtype,
            tokens=self._tokens.stored(),
            offsets=self._offsets.stored(),
        )

    def _flush(self) -> None:
        ids = np.array(self._ids, dtype=np.int64)
        wrong = ids[(ids < 0) | (ids >= self._vocab_size)]
        if len(wrong):
            raise DataError(
                f"The {self._side} side has the token id {wrong[0]}, but its vocabulary has {self._vocab_size} tokens "
                f"(ids 0 to {self._vocab_size - 1}). Use the tokenizer that belongs to the vocabulary."
            )
        self._tokens.write(ids.astype(_little_endian(self._dtype)))
        self._offsets.write(np.array(self._ends, dtype=_little_endian("uint64")))
        self._ids.clear()
        self._ends.clear()


def _little_endian(dtype: str) -> np.dtype[np.unsignedinteger]:
    """The byte order on disk is always the same, so that stores can be copied between machines."""
    return np.dtype(dtype).newbyteorder("<")


def _read_manifest(folder: Path) -> Manifest:
    try:
        text = read_own(folder.parent, f"{folder.name}/manifest.json")
    except MissingInputError as error:
        raise MissingInputError(f"{folder} is not a token store: it has no manifest.json. {_ADVICE}") from error
    try:
        return Manifest.model_validate_json(text)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise _damaged(folder, f"manifest.json: {where or 'the file'}: {first['msg']}") from error


def map_file(
    path: Path, dtype: str, stored: StoredFile, verify: bool
) -> tuple[NDArray[np.unsignedinteger], mmap.mmap | None]:
    """The file as a read-only array, and its mapping (an empty file has none)."""
    folder = path.parent
    try:
        file = open_own(folder.parent, f"{folder.name}/{path.name}")
    except MissingInputError as error:
        raise _damaged(folder, f"{path.name} is missing") from error
    with file:
        num_bytes = os.fstat(file.fileno()).st_size
        if num_bytes != stored.num_bytes or num_bytes % np.dtype(dtype).itemsize:
            raise _damaged(folder, f"{path.name} has {num_bytes} bytes, but {stored.num_bytes} were written")
        if verify and hashlib.file_digest(file, "sha256").hexdigest() != stored.sha256:
            raise _damaged(folder, f"the checksum of {path.name} does not match")
        if num_bytes == 0:
            return np.empty(0, dtype=dtype), None
        mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    return np.frombuffer(mapped, dtype=_little_endian(dtype)), mapped


_ADVICE = "Prepare the data again; a damaged store can be deleted, since it is made from the text."


def _damaged(folder: Path, what: str) -> DataError:
    return DataError(f"The token store {folder} is damaged: {what}. {_ADVICE}")
