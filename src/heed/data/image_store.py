"""Image store: the pixels of many images of one size on disk, memory-mapped for reading in any order.

A store is a folder with `pixels.u8`, the bytes `[N, 3, S, S]` of all images, and `manifest.json` with the names of the
images, the size and the checksum. The folder is written atomically.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Literal, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, PositiveInt, ValidationError

from heed.core.errors import DataError
from heed.core.files import atomic_folder
from heed.core.own_files import LARGE, read_own
from heed.data.store import HashedFile, StoredFile, map_file

FORMAT: Literal["heed-images-1"] = "heed-images-1"
PIXELS = "pixels.u8"


class Manifest(BaseModel):
    """Content of `manifest.json`."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    format: Literal["heed-images-1"]
    size: PositiveInt
    """Pixels of each side of an image (S)."""
    names: list[str]
    """The name of each image."""
    pixels: StoredFile


class ImageStore:
    """The pixels of images, read from disk on demand."""

    def __init__(self, folder: Path, manifest: Manifest, pixels: NDArray[np.uint8]) -> None:
        """`pixels`: `[N, 3, S, S]`."""
        self.folder = folder
        self.manifest = manifest
        self._pixels = pixels

    @classmethod
    def open(cls, folder: Path, verify: bool = False) -> Self:
        """The store in `folder`; with `verify`, its pixels are compared with their checksum.

        Raises MissingInputError if the folder does not exist, and DataError if its files have changed.
        """
        text = read_own(folder.parent, f"{folder.name}/manifest.json", LARGE)
        try:
            manifest = Manifest.model_validate_json(text)
        except ValidationError as error:
            raise DataError(f"The image store {folder} is damaged: manifest.json. Prepare the data again.") from error
        values, _ = map_file(folder / PIXELS, "uint8", manifest.pixels, verify)
        shape = (len(manifest.names), 3, manifest.size, manifest.size)
        if values.size != np.prod(shape, dtype=np.int64):
            raise DataError(f"The image store {folder} is damaged: {PIXELS} does not fit {shape[0]} images.")
        return cls(folder, manifest, values.reshape(shape).view(np.uint8))

    def __len__(self) -> int:
        return len(self.manifest.names)

    @property
    def names(self) -> Sequence[str]:
        """The name of each image."""
        return self.manifest.names

    def pixels(self, rows: Sequence[int] | NDArray[np.integer]) -> NDArray[np.uint8]:
        """A copy of the pixels `[B, 3, S, S]` of these images."""
        return np.array(self._pixels[np.asarray(rows, dtype=np.int64)])


def write_images(folder: Path, size: int, images: Iterable[tuple[str, NDArray[np.uint8]]]) -> ImageStore:
    """Write (name, pixels `[3, size, size]`) of images, one in memory at a time; then open the store."""
    names: list[str] = []
    with atomic_folder(folder) as unfinished:
        with (unfinished / PIXELS).open("wb") as file:
            hashed = HashedFile(file)
            for name, pixels in images:
                names.append(name)
                hashed.write(pixels)
        manifest = Manifest(format=FORMAT, size=size, names=names, pixels=hashed.stored())
        (unfinished / "manifest.json").write_text(manifest.model_dump_json(indent=1) + "\n", encoding="utf-8")
    return ImageStore.open(folder)
