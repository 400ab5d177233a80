"""Image files by name: those of a folder, the members of a tar archive, or a single file.

Nothing outside the folder or the archive is read: links, devices and names that climb out are refused. An image is
named by its path inside the folder or archive, with slashes; a name without folders is enough where it is unique.
"""

from __future__ import annotations

import hashlib
import tarfile
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path, PurePosixPath
from typing import BinaryIO

from heed.core.errors import DataError, MissingInputError
from heed.core.files import format_bytes, sha256_file
from heed.core.own_files import parts_of
from heed.text.archives import open_file

SUFFIXES = (".jpg", ".jpeg", ".png", ".gif", ".webp", ".bmp", ".tif", ".tiff", ".ppm", ".pgm")
"""Files of a folder or archive with another suffix are not images and are left out."""
MAX_BYTES = 64_000_000
"""Maximum size of an image file."""
_SHOWN = 3
"""Names that a message lists."""


class ImageFiles(AbstractContextManager["ImageFiles"], ABC):
    """The image files of one place, by name. Close it, or use it in a `with` statement."""

    def __init__(self, place: Path, names: Iterable[str]) -> None:
        """Raises DataError if there are no images."""
        self.place = place
        self.names: Sequence[str] = sorted(names)
        if not self.names:
            suffixes = ", ".join(SUFFIXES[:5])
            raise DataError(f"{place} has no images: the names of image files end in {suffixes} or the like.")
        self._by_name = {**_unique_last_parts(self.names), **{name: name for name in self.names}}

    def find(self, name: str) -> str | None:
        """The full name of an image that is named by its path or by the last part of it; None if there is none."""
        return self._by_name.get(name.replace("\\", "/").removeprefix("./"))

    def require(self, names: Iterable[str], by: str) -> list[str]:
        """The full name of each image that the file `by` names. Raises DataError for images that are missing."""
        full = [(name, self.find(name)) for name in names]
        if missing := list(dict.fromkeys(name for name, known in full if known is None)):
            listed = ", ".join(map(repr, missing[:_SHOWN])) + (", ..." if len(missing) > _SHOWN else "")
            raise DataError(
                f"{by} names {len(missing):,} image{'s' * (len(missing) > 1)} that {self.place} does not have: "
                f"{listed}. "
                f"It has {len(self.names):,}, such as {self.names[0]!r}."
            )
        return [known for _, known in full if known is not None]

    def read(self, name: str) -> bytes:
        """The bytes of the file with this full name. Raises DataError for one of more than `MAX_BYTES`."""
        with self._open(name) as file:
            content = file.read(MAX_BYTES + 1)
        if len(content) > MAX_BYTES:
            raise DataError(f"{self.shown(name)} is larger than {format_bytes(MAX_BYTES)}, the limit of an image file.")
        return content

    def shown(self, name: str) -> str:
        """The name of an image in messages."""
        return f"{self.place}: {name}"

    def identity(self) -> tuple[int, str]:
        """The number of bytes and the SHA-256 of all names and contents; of an archive, those of its file."""
        num_bytes, digest = 0, hashlib.sha256()
        for name in self.names:
            content = self.read(name)
            num_bytes += len(content)
            digest.update(name.encode("utf-8", "surrogateescape") + b"\0" + hashlib.sha256(content).digest())
        return num_bytes, digest.hexdigest()

    @abstractmethod
    def _open(self, name: str) -> BinaryIO:
        """Open an image file."""

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the archive, if there is one."""


class Folder(ImageFiles):
    """The images of a folder and of the folders in it; links are not followed."""

    def __init__(self, place: Path) -> None:
        super().__init__(place, _images_below(place, place))

    def _open(self, name: str) -> BinaryIO:
        return open_file(self.place / name)


class SingleFile(ImageFiles):
    """One image file, whatever its suffix."""

    def __init__(self, place: Path) -> None:
        super().__init__(place, [place.name])

    def _open(self, name: str) -> BinaryIO:
        return open_file(self.place)

    def shown(self, name: str) -> str:
        return str(self.place)


class Archive(ImageFiles):
    """The images of a tar archive that is not compressed.

    Raises DataError for a damaged archive, and for one with links, devices, or names that climb out of it.
    """

    def __init__(self, place: Path) -> None:
        self._file = open_file(place)
        try:
            self._tar = tarfile.TarFile(fileobj=self._file)
            checked = ((member.name.removeprefix("./"), member) for member in self._checked(place))
            self._members = {name: member for name, member in checked if _is_image(name)}
            super().__init__(place, self._members)
        except (tarfile.TarError, EOFError, OverflowError, ValueError) as error:
            self._file.close()
            raise DataError(
                f"{place} is not a tar archive, or it is damaged ({error}). A compressed archive must be unpacked "
                "first; give a folder, a .tar file or an image file."
            ) from error
        except DataError:
            self._file.close()
            raise

    def _checked(self, place: Path) -> Iterator[tarfile.TarInfo]:
        for member in self._tar:
            name = member.name.removeprefix("./")
            if name.startswith("/") or ".." in PurePosixPath(name).parts or "\0" in name:
                raise DataError(
                    f"{place}: the member {member.name!r:.200} points outside the archive; nothing was read."
                )
            if not (member.isreg() or member.isdir()):
                kind = "link" if member.issym() or member.islnk() else "device or special file"
                raise DataError(f"{place}: the member {member.name!r:.200} is a {kind}; pack the image itself.")
            if member.isreg():
                yield member

    def _open(self, name: str) -> BinaryIO:
        member = self._members[name]
        if member.size > MAX_BYTES:
            raise DataError(f"{self.shown(name)} is larger than {format_bytes(MAX_BYTES)}, the limit of an image file.")
        file = self._tar.extractfile(member)
        assert file is not None
        return file  # type: ignore[return-value]

    def read(self, name: str) -> bytes:
        try:
            return super().read(name)
        except (tarfile.TarError, EOFError, OSError) as error:
            raise DataError(f"{self.shown(name)} cannot be read ({error}): the archive is damaged.") from error

    def identity(self) -> tuple[int, str]:
        return self.place.stat().st_size, sha256_file(self.place)

    def close(self) -> None:
        self._tar.close()
        self._file.close()


def open_images(place: str | Path) -> ImageFiles:
    """The images of a folder, of a .tar file, or a single image file. Raises MissingInputError or DataError."""
    path = Path(place)
    if path.is_dir():
        return Folder(path)
    with open_file(path):  # its errors are the clear ones
        pass
    return Archive(path) if ".tar" in [suffix.lower() for suffix in path.suffixes[-2:]] else SingleFile(path)


def _is_image(name: str) -> bool:
    return PurePosixPath(name).suffix.lower() in SUFFIXES and not PurePosixPath(name).name.startswith("._")


def _images_below(place: Path, folder: Path) -> Iterator[str]:
    try:
        entries = sorted(folder.iterdir())
    except OSError as error:
        raise MissingInputError(f"{folder} cannot be listed: {error.strerror}.") from error
    for entry in entries:
        if entry.is_symlink():
            continue
        if entry.is_dir():
            yield from _images_below(place, entry)
        elif entry.is_file() and _is_image(entry.name):
            yield entry.relative_to(place).as_posix()


def _unique_last_parts(names: Sequence[str]) -> dict[str, str]:
    """The full names by their last part, where that belongs to one image alone."""
    by_last: dict[str, list[str]] = {}
    for name in names:
        by_last.setdefault(parts_of(name)[-1], []).append(name)
    return {last: full[0] for last, full in by_last.items() if len(full) == 1}
