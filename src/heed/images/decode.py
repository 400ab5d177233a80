"""Decoding of image files into pixels of one size.

An image is untrusted: only common formats are read, its size is checked before memory is taken, and whatever the
decoder raises is one error that names the file. The whole image is scaled to a square, so that nothing is cut off; its
sides may be scaled differently.
"""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable
from hashlib import blake2b
from threading import Lock
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from heed.core.errors import DataError, UsageError

if TYPE_CHECKING:
    from PIL.Image import Image

FORMATS = ("JPEG", "PNG", "GIF", "WEBP", "BMP", "TIFF", "PPM")
MAX_PIXELS = 50_000_000
"""Maximum number of pixels of an image: a file of a few kilobytes may unpack to gigabytes."""
MAX_STRETCH = 50
"""Maximum ratio of the sides of an image."""

PREVIEW = 512
"""Pixels of the longer side of a preview."""

T = TypeVar("T")

_ONE_AT_A_TIME = Lock()
"""Bounds the memory of several threads; and filters of warnings belong to the whole process."""

Pixels = NDArray[np.uint8]
"""Red, green and blue values `[3, S, S]` from 0 to 255, the top row first."""


def decode(content: bytes, name: str, size: int, max_pixels: int = MAX_PIXELS) -> Pixels:
    """The pixels `[3, size, size]` of an image file: of the first image of an animation, turned upright.

    Transparent parts are white. Raises DataError, with `name`, for what cannot be read as an image or has more than
    `max_pixels`, and UsageError if Pillow is not installed.
    """
    with _ONE_AT_A_TIME:
        image = _checked(content, name, max_pixels)
        return _carefully(name, lambda: _square(image, size))


def preview(content: bytes, name: str) -> bytes:
    """The image as a small PNG for a page, upright and without anything but its pixels. Raises as `decode`."""

    def small() -> bytes:
        upright = _loaded(image)
        upright.thumbnail((PREVIEW, PREVIEW))
        file = io.BytesIO()
        _in_colours(upright).save(file, "PNG")
        return file.getvalue()

    with _ONE_AT_A_TIME:
        image = _checked(content, name, MAX_PIXELS)
        return _carefully(name, small)


def _carefully(name: str, work: Callable[[], T]) -> T:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of damaged metadata, which do not matter
            return work()
    except Exception as error:  # Pillow raises errors of many kinds for damaged files
        raise DataError(f"{name} is damaged or incomplete ({_reason(error)}). Replace the file.") from error


def _checked(content: bytes, name: str, max_pixels: int) -> Image:
    """The image, if its size is allowed; only its header has been read."""
    image = _opened(content, name)
    width, height = image.size
    if width * height > max_pixels:
        raise DataError(
            f"{name} has {width:,} × {height:,} pixels, more than the {max_pixels // 1_000_000} million that heed "
            "decodes. Make it smaller first."
        )
    if max(width, height) > MAX_STRETCH * min(width, height):
        raise DataError(f"{name} has {width:,} × {height:,} pixels, which is a line and not a picture.")
    return image


def digest_of(pixels: Pixels) -> int:
    """A digest of 128 bits, by which images with equal pixels are recognised."""
    return int.from_bytes(blake2b(np.ascontiguousarray(pixels).tobytes(), digest_size=16).digest(), "little")


def _opened(content: bytes, name: str) -> Image:
    """The image, whose header alone has been read."""
    try:
        from PIL import Image
    except ImportError as error:
        raise UsageError("images need the package pillow: pip install 'heed[images]'.") from error
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of many pixels, which are counted here
            return Image.open(io.BytesIO(content), formats=FORMATS)
    except Image.DecompressionBombError as error:
        raise DataError(
            f"{name} has more than the {MAX_PIXELS // 1_000_000} million pixels that heed decodes. Make it smaller "
            "first."
        ) from error
    except Exception as error:  # as above
        formats = ", ".join(FORMATS)
        raise DataError(f"{name} is not an image in a format that heed reads ({formats}).") from error


def _square(image: Image, size: int) -> Pixels:
    from PIL.Image import Resampling

    image.draft("RGB", (2 * size, 2 * size))  # a large JPEG is decoded at a fraction of its size
    scaled = _in_colours(_loaded(image)).resize((size, size), Resampling.LANCZOS, reducing_gap=3.0)
    return np.ascontiguousarray(np.asarray(scaled, dtype=np.uint8).transpose(2, 0, 1))


def _loaded(image: Image) -> Image:
    """The image with its pixels, upright."""
    from PIL import ImageOps

    image.load()
    return ImageOps.exif_transpose(image)


def _in_colours(image: Image) -> Image:
    """The image in red, green and blue, on white."""
    from PIL import Image

    if image.mode.startswith("I;16"):
        values: NDArray[Any] = np.asarray(image).astype(np.uint16) >> 8
        image = Image.fromarray(values.astype(np.uint8))
    elif image.mode in ("I", "F"):
        depths = np.asarray(image, dtype=np.float64)
        full = 1.0 if image.mode == "F" and depths.max() <= 1 else max(255.0, depths.max())
        image = Image.fromarray((depths / full * 255).clip(0, 255).astype(np.uint8))
    if image.mode in ("RGBA", "LA", "PA", "La", "RGBa") or "transparency" in image.info:
        coloured = image.convert("RGBA")
        white = Image.new("RGBA", coloured.size, "white")
        return Image.alpha_composite(white, coloured).convert("RGB")
    return image.convert("RGB")


def _reason(error: Exception) -> str:
    return str(error).strip().rstrip(".") or type(error).__name__
