"""Manifest of a run folder: `manifest.json`, with the SHA-256 of each file that is read as a whole.

It is sealed, so that a changed bit in it is noticed too. A file and the manifest cannot be replaced in the same step.
So the manifest first gets the digest of the new file next to that of the old one: a process that is killed between the
two leaves a folder that is whole, with the old file or the new one.
"""

from __future__ import annotations

import fcntl
import os
import stat
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from heed.core.errors import DataError, MissingInputError, StorageError
from heed.core.files import atomic_write
from heed.core.formats import FORMAT, require_format
from heed.core.own_files import parts_of, read_own
from heed.core.sealed import sealed, unsealed

MANIFEST = "manifest.json"

Digest = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
Digests = dict[str, list[str]]
"""The digest of each file, followed by that of the file it replaces."""


class _Entries(BaseModel):
    """The contents of `manifest.json` without its seal."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    format: int
    sha256: dict[str, Annotated[list[Digest], Field(min_length=1, max_length=2)]]


def read_digests(folder: Path) -> Digests:
    """The digests of each listed file; empty without a manifest. Raises DataError for a damaged one."""
    path = folder / MANIFEST
    try:
        content = read_own(folder, MANIFEST)
    except MissingInputError:
        return {}
    if not content:  # made by a process that was killed before its first entry
        return {}
    try:
        entries = unsealed(content, str(path))
    except DataError as error:
        raise DataError(
            f"{error}: it is damaged. Restore the run's original file; without it, no file is checked."
        ) from error
    require_format(entries.get("format"), path)
    try:
        digests = _Entries.model_validate(entries).sha256
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        raise DataError(f"{path}: {'.'.join(map(str, first['loc']))!r:.100}: {first['msg']}.") from error
    for name in digests:
        parts_of(name)
    return digests


Writer = Callable[[Mapping[str, list[str]]], None]
"""Rewrites the manifest. Raises OSError."""


@contextmanager
def locked(folder: Path) -> Iterator[Writer]:
    """Hold the lock of the manifest, and yield the function that writes it.

    The lock is that of the manifest itself. A new manifest is locked before it replaces the old one, so that nobody
    enters in between; one that was made for the lock alone is removed. On a file system without locks nobody waits.
    """
    path = folder / MANIFEST
    descriptors = [_claimed(path)]

    @contextmanager
    def hold(new: Path) -> Iterator[None]:
        descriptors.append(os.open(new, os.O_RDWR))
        _lock(descriptors[-1])
        yield

    def write(digests: Mapping[str, list[str]]) -> None:
        with atomic_write(path, "w", around=hold) as file:
            file.write(sealed({"format": FORMAT, "sha256": {name: digests[name] for name in sorted(digests)}}))

    try:
        yield write
    finally:
        if os.fstat(descriptors[-1]).st_size == 0:
            path.unlink(missing_ok=True)
        for descriptor in descriptors:
            os.close(descriptor)


def _lock(descriptor: int) -> None:
    with suppress(OSError):
        fcntl.flock(descriptor, fcntl.LOCK_EX)


def _claimed(path: Path) -> int:
    """A descriptor that holds the lock of the file that has this name: while waiting, it may have been replaced."""
    while True:
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK, 0o666)
        except OSError as error:
            if path.is_symlink() or path.is_dir():
                raise StorageError(f"cannot write {path}: it is not a regular file. Remove it.") from error
            raise
        _lock(descriptor)
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            os.close(descriptor)
            raise StorageError(f"cannot write {path}: it is not a regular file. Remove it.")
        with suppress(FileNotFoundError):
            if os.path.samestat(found, path.lstat()):
                return descriptor
        os.close(descriptor)
