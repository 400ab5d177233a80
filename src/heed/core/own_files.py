"""Own files of a folder: regular files inside it, opened so that nothing else can take their place.

A folder from elsewhere may hold a link that leads out of it, a pipe on which reading waits for ever, or a device
without end. Each part of a name is opened inside the folder before it, without following links, and what was opened is
examined before a byte is read.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from io import BufferedReader
from pathlib import Path, PurePosixPath
from typing import TextIO

from heed.core.errors import DataError, MissingInputError, StorageError
from heed.core.files import format_bytes

SMALL, LARGE = 16_000_000, 1_000_000_000
"""Maximum bytes of a file of facts, and of one that grows with the data. Mapped files have no limit."""

_REPLACE = "heed uses nothing outside the folder: put a regular file in its place."
_FOLDER = os.O_RDONLY | os.O_DIRECTORY
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK  # opening a pipe would wait for its writer


def open_own(folder: Path, name: str) -> BufferedReader:
    """The file `name` of a folder, such as `data/valid.jsonl`, opened for reading bytes.

    The folder itself may be a link. Raises MissingInputError for a file that does not exist or may not be read,
    and DataError for anything but a regular file of the folder's own.
    """
    path = folder / name
    try:
        descriptor = _open(folder, parts_of(name))
    except FileNotFoundError as error:
        raise MissingInputError(f"{path} does not exist.") from error
    except OSError as error:
        if link := first_link(folder, name):
            raise DataError(f"{link} is a link; {_REPLACE}") from error
        if not path.is_file() and path.exists():
            raise DataError(f"{path} is not a regular file; {_REPLACE}") from error
        raise MissingInputError(f"{path} cannot be read: {error.strerror}.") from error
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise DataError(f"{path} is not a regular file; {_REPLACE}")
    return os.fdopen(descriptor, "rb")


def _open(folder: Path, parts: Sequence[str]) -> int:
    *parents, last = parts
    place = os.open(folder, _FOLDER)
    try:
        for parent in parents:
            below = os.open(parent, _FOLDER | os.O_NOFOLLOW, dir_fd=place)
            os.close(place)
            place = below
        return os.open(last, _FILE, dir_fd=place)
    finally:
        os.close(place)


def read_own(folder: Path, name: str, most: int = SMALL) -> bytes:
    """The bytes of a file of a folder. Raises what `open_own` raises, and DataError for more than `most` bytes."""
    with open_own(folder, name) as file:
        return read_at_most(file, most, folder / name)


def read_at_most(file: BufferedReader, most: int, path: Path) -> bytes:
    """The bytes of an open file. Raises DataError, before memory is taken, for more than `most` bytes."""
    size = os.fstat(file.fileno()).st_size
    content = file.read(size + 1) if size <= most else b""
    if size > most or len(content) > size:
        what = f"is larger than {format_bytes(most)}" if size > most else "grew while it was read"
        raise DataError(f"{path} {what}, so it is not the file that heed wrote.")
    return content


def open_to_append(folder: Path, name: str) -> TextIO:
    """A log, opened for appending lines of UTF-8; a last line that a crash cut off gets its line feed.

    Raises StorageError for a link and for what is not a regular file, and OSError as writing does.
    """
    path = folder / name
    if path.is_symlink():
        raise StorageError(f"cannot write {path}: it is a link. Remove it.")
    descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK, 0o666)
    found = os.fstat(descriptor)
    if not stat.S_ISREG(found.st_mode):
        os.close(descriptor)
        raise StorageError(f"cannot write {path}: it is not a regular file. Remove it.")
    if found.st_size and os.pread(descriptor, 1, found.st_size - 1) != b"\n":
        os.write(descriptor, b"\n")
    return os.fdopen(descriptor, "a", encoding="utf-8")


def own_path(folder: Path, name: str) -> Path:
    """The path of a file, for a library that opens it itself. Raises what `open_own` raises."""
    open_own(folder, name).close()
    return folder / name


def own_folder(folder: Path, name: str) -> Path:
    """The path of a folder inside a folder. Raises DataError where the name leads through a link."""
    if link := first_link(folder, name):
        raise DataError(f"{link} is a link; {_REPLACE}")
    return folder / name


def parts_of(name: str) -> Sequence[str]:
    """The parts of a path. Raises DataError for a path that leads out of the folder."""
    parts = PurePosixPath(name).parts
    if not parts or parts[0] == "/" or ".." in parts or "\0" in name:
        raise DataError(f"{name!r:.200} is not the name of a file inside a folder.")
    return parts


def first_link(folder: Path, name: str) -> Path | None:
    """The first part of a path that is a link."""
    path = folder
    for part in parts_of(name):
        path /= part
        if path.is_symlink():
            return path
    return None
