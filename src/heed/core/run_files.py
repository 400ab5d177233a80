"""Files of a run folder: checked reading and writing.

A file is read if it is the folder's own (`own_files.py`), is no larger than such a file can be, and has the SHA-256
that the manifest lists for it (`run_manifest.py`). Files that bring their own checksums are not listed: the weights,
the checkpoints and the token store; nor are the log of metrics, which grows line by line, and pages for people. A
folder of an older heed has no manifest, and what is not listed is read unchecked.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from io import BufferedReader
from pathlib import Path
from shlex import quote
from typing import IO, Any, Literal, TextIO, TypeVar, overload

from pydantic import BaseModel, ValidationError

from heed.core.errors import DataError, StorageError
from heed.core.files import atomic_write, is_plain_file, sha256_file
from heed.core.own_files import LARGE, SMALL, first_link, open_own, own_path, read_own
from heed.core.progress import warn
from heed.core.run_manifest import MANIFEST, Writer, locked, read_digests

C = TypeVar("C", bound=BaseModel)

RECIPE, WEIGHTS = "recipe.toml", "model.safetensors"
"""The recipe and the weights of a run."""
RESTORE = "Restore the run's original file."
"""Advice for a file of a run that is damaged or was changed."""


def resume_command(folder: Path) -> str:
    """The command that continues the training of a run, as a shell reads it."""
    return f"heed train --resume {quote(str(folder))}"


class ChangedError(DataError):
    """A file does not have the SHA-256 that its manifest lists. Exit code 65."""


class RunFiles:
    """The files of one run folder, by names such as `data/valid.jsonl`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def has(self, name: str) -> bool:
        """Whether the name exists. A link or a pipe is refused when it is read."""
        return os.path.lexists(self.folder / name)

    def has_lost(self, name: str) -> bool:
        """Whether the manifest lists a file that is missing."""
        return not self.has(name) and name in read_digests(self.folder)

    def open(self, name: str, otherwise: str = RESTORE) -> BufferedReader:
        """A file for reading bytes, checked as a whole. `otherwise`: advice if it was changed.

        Raises MissingInputError, DataError for what is not a file of the folder's own, and ChangedError.
        """
        file = open_own(self.folder, name)
        try:
            self._check(name, lambda: hashlib.file_digest(file, "sha256").hexdigest(), otherwise)
            file.seek(0)
        except BaseException:
            file.close()
            raise
        return file

    def read(self, name: str, most: int = SMALL, otherwise: str = RESTORE) -> bytes:
        """The bytes of a file. Raises what `open` raises, and DataError for more than `most` bytes."""
        content = read_own(self.folder, name, most)
        self._check(name, lambda: hashlib.sha256(content).hexdigest(), otherwise)
        return content

    def read_as(self, kind: type[C], name: str) -> C:
        """A file with the fields of a model of pydantic. Raises what `read` raises, and DataError for other fields."""
        try:
            return kind.model_validate_json(self.read(name, LARGE))
        except ValidationError as error:
            raise DataError(f"{self.folder / name} is damaged: {error.errors()[0]['msg']}. {RESTORE}") from error

    def write_as(self, fields: BaseModel, name: str) -> None:
        """Write fields that `read_as` reads."""
        with self.write(name, "w") as file:
            file.write(fields.model_dump_json(indent=1) + "\n")

    def read_anyway(self, name: str, otherwise: str, most: int = SMALL) -> bytes:
        """As `read`, but with a warning instead of a ChangedError."""
        try:
            return self.read(name, most, otherwise)
        except ChangedError as error:
            warn(str(error))
            return read_own(self.folder, name, most)

    def path(self, name: str) -> Path:
        """Path of a file with its own checksum, for the library that reads it. Raises what `open_own` raises."""
        return own_path(self.folder, name)

    @overload
    def write(self, name: str, mode: Literal["wb"] = "wb") -> AbstractContextManager[IO[bytes]]: ...
    @overload
    def write(self, name: str, mode: Literal["w"]) -> AbstractContextManager[TextIO]: ...
    def write(self, name: str, mode: Literal["wb", "w"] = "wb") -> AbstractContextManager[Any]:
        """Open a file that replaces `name`, and is listed, when the with-block ends, unless it raises.

        Raises StorageError where the name leads through a link, and what `atomic_write` raises.
        """
        return atomic_write(self._target(name), mode, around=lambda new: self._listed(name, new))

    @overload
    def write_page(self, name: str, mode: Literal["wb"] = "wb") -> AbstractContextManager[IO[bytes]]: ...
    @overload
    def write_page(self, name: str, mode: Literal["w"]) -> AbstractContextManager[TextIO]: ...
    def write_page(self, name: str, mode: Literal["wb", "w"] = "wb") -> AbstractContextManager[Any]:
        """As `write`, but without listing the file: a page or a picture, which people may edit."""
        return atomic_write(self._target(name), mode)

    def append(self, name: str, line: bytes, otherwise: str) -> None:
        """Append a line to a listed log. If it was changed, it is continued with a warning.

        Raises what `write` raises.
        """
        target = self._target(name)
        if self.has(name) and not is_plain_file(target):
            raise StorageError(f"cannot write {target}: it is not a regular file. Remove it.")
        with locked(self.folder) as write:
            before = self.read_anyway(name, otherwise, LARGE) if self.has(name) else b""
            with atomic_write(target, around=lambda new: self._expected(name, new, write)) as file:
                file.write(before + b"\n" * (before[-1:] not in (b"", b"\n")) + line)

    def copy(self, name: str, to: RunFiles) -> None:
        """Copy a file, checked, into another run folder, whose file is listed."""
        with self.open(name) as ours, to.write(name) as theirs:
            shutil.copyfileobj(ours, theirs)

    def remove(self, name: str) -> None:
        """Remove a file, or a folder with its contents."""
        path = self._target(name)
        with locked(self.folder) as write:
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)
            listed = read_digests(self.folder)
            kept = {k: v for k, v in listed.items() if k != name and not k.startswith(f"{name}/")}
            if kept != listed:
                write(kept)

    def accept(self, name: str) -> None:
        """List a file that was edited by hand as it is now, if it was listed."""
        with locked(self.folder) as write:
            digests = read_digests(self.folder)
            if name in digests:
                write({**digests, name: [sha256_file(own_path(self.folder, name))]})

    def changed(self) -> dict[str, str]:
        """The problem of each listed file; empty for an unchanged one."""
        return {name: self._judged(name) for name in read_digests(self.folder)}

    def _judged(self, name: str) -> str:
        if not self.has(name):
            return "missing"
        try:
            self.open(name).close()
        except ChangedError:
            return "changed"
        except DataError:
            return "not a file of the folder's own"
        return ""

    def _check(self, name: str, digest: Callable[[], str], otherwise: str) -> None:
        """Raise ChangedError for a file that is listed with other digests. Unlisted files are not hashed."""
        expected = read_digests(self.folder).get(name)
        if expected is not None and digest() not in expected:
            raise ChangedError(
                f"{self.folder / name} was changed after heed wrote it: {MANIFEST} lists another SHA-256. {otherwise}"
            )

    def _target(self, name: str) -> Path:
        """The path to write to, whose folder exists and is inside this one."""
        if link := first_link(self.folder, name):
            raise StorageError(f"cannot write {self.folder / name}: {link} is a link. Remove it.")
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        return path

    @contextmanager
    def _listed(self, name: str, new: Path) -> Iterator[None]:
        with locked(self.folder) as write, self._expected(name, new, write):
            yield

    @contextmanager
    def _expected(self, name: str, new: Path, write: Writer) -> Iterator[None]:
        """List the digest of a file that is about to get this name, next to that of the one that still has it."""
        digests = [sha256_file(new)]
        if self.has(name):
            digests.append(sha256_file(own_path(self.folder, name)))
        write({**read_digests(self.folder), name: digests})
        yield
