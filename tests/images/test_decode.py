"""Decoding of image files, whatever they hold."""

from __future__ import annotations

import struct
import zlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from toy_images import encoded

from heed.core.errors import DataError
from heed.images.decode import MAX_PIXELS, decode, digest_of

PIL = pytest.importorskip("PIL", reason="images need the package pillow")
from PIL import Image  # noqa: E402  # after the check


def halves(mode: str = "RGB") -> Image.Image:
    """Red above blue."""
    image = Image.new("RGB", (12, 12), (255, 0, 0))
    image.paste((0, 0, 255), (0, 6, 12, 12))
    return image.convert(mode)


def colour(pixels: np.ndarray, row: int, column: int = 3) -> list[int]:
    return [int(value) for value in pixels[:, row, column]]


def test_the_pixels_are_red_green_and_blue_from_the_top() -> None:
    pixels = decode(encoded(halves()), "x", 12)
    assert (pixels.shape, pixels.dtype) == ((3, 12, 12), np.uint8)
    assert (colour(pixels, 0), colour(pixels, 11)) == ([255, 0, 0], [0, 0, 255])


def test_the_whole_image_is_scaled_to_a_square() -> None:
    wide = halves().resize((48, 12))
    pixels = decode(encoded(wide), "x", 8)
    assert (colour(pixels, 0, 0), colour(pixels, 7, 7)) == ([255, 0, 0], [0, 0, 255])


@pytest.mark.parametrize(
    ("format", "mode"), [("JPEG", "CMYK"), ("GIF", "P"), ("BMP", "RGB"), ("TIFF", "CMYK"), ("WEBP", "RGBA")]
)
def test_other_formats_and_modes_give_nearly_the_same(format: str, mode: str) -> None:
    pixels = decode(encoded(halves(mode), format), "x", 12)
    assert np.abs(np.array(colour(pixels, 1)) - [255, 0, 0]).max() < 40
    assert np.abs(np.array(colour(pixels, 10)) - [0, 0, 255]).max() < 40


def test_grey_and_black_and_white_images_have_equal_channels() -> None:
    for mode in ("L", "1", "LA"):
        pixels = decode(encoded(halves(mode)), "x", 12)
        assert (pixels[0] == pixels[1]).all() and (pixels[1] == pixels[2]).all()


def test_sixteen_bits_are_scaled_to_eight() -> None:
    image = Image.fromarray(np.full((8, 8), 0x8000, dtype=np.uint16))
    assert colour(decode(encoded(image), "x", 8), 4) == [128, 128, 128]


def test_fractions_are_not_taken_for_black() -> None:
    for full in (1.0, 255.0):
        values = np.array([[0.0, 0.5], [0.75, 1.0]], dtype=np.float32) * full
        pixels = decode(encoded(Image.fromarray(values), "TIFF"), "x", 2)
        assert pixels[0].tolist() == [[0, 127], [191, 255]]


def test_transparent_parts_are_white() -> None:
    image = Image.new("RGBA", (8, 8), (0, 0, 0, 0))
    assert colour(decode(encoded(image), "x", 8), 4) == [255, 255, 255]


def test_an_image_is_turned_upright() -> None:
    orientation, upside_down = 0x0112, 3
    exif = Image.Exif()
    exif[orientation] = upside_down
    pixels = decode(encoded(halves(), "PNG", exif=exif), "x", 12)
    assert (colour(pixels, 0), colour(pixels, 11)) == ([0, 0, 255], [255, 0, 0])


def test_of_an_animation_the_first_image_is_read() -> None:
    first, second = Image.new("RGB", (8, 8), (255, 0, 0)), Image.new("RGB", (8, 8), (0, 0, 255))
    moving = encoded(first, "GIF", save_all=True, append_images=[second])
    assert colour(decode(moving, "x", 8), 4) == [255, 0, 0]


def png_of_size(width: int, height: int) -> bytes:
    """A PNG of some hundred bytes that says it has this size."""

    def chunk(kind: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(bytes(100))) + chunk(b"IEND", b"")
    )


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "x is not an image in a format that heed reads"),
        (b"just text", "x is not an image in a format that heed reads"),
        (b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n", "x is not an image in a format that heed reads"),
        (b"<svg xmlns='http://www.w3.org/2000/svg'/>", "x is not an image in a format that heed reads"),
        (encoded(halves().resize((99, 99)))[:80], "x is damaged or incomplete"),
        (encoded(halves().resize((99, 99)), "JPEG")[:-150], "x is damaged or incomplete"),
        (png_of_size(10_000, 10_000), "x has 10,000 × 10,000 pixels, more than the 50 million that heed decodes"),
        (png_of_size(30_000, 30_000), "x has more than the 50 million pixels that heed decodes"),
        (png_of_size(9000, 3), "x has 9,000 × 3 pixels, which is a line and not a picture"),
    ],
    ids=["empty", "text", "PostScript", "SVG", "cut PNG", "cut JPEG", "100 megapixels", "bomb", "line"],
)
def test_what_cannot_be_decoded_is_refused_by_name(content: bytes, message: str) -> None:
    assert MAX_PIXELS == 50_000_000
    with pytest.raises(DataError, match=message):
        decode(content, "x", 16)


PICTURE = encoded(halves().resize((40, 40)))


@settings(max_examples=40, deadline=None)
@given(st.integers(0, len(PICTURE) - 1), st.binary(min_size=1, max_size=6))
def test_a_damaged_file_is_decoded_or_refused(at: int, damage: bytes) -> None:
    try:
        assert decode(PICTURE[:at] + damage + PICTURE[at + len(damage) :], "x", 8).shape == (3, 8, 8)
    except DataError as error:
        assert str(error).startswith("x ")


def test_equal_pixels_have_equal_digests() -> None:
    pixels = decode(PICTURE, "x", 8)
    assert digest_of(pixels) == digest_of(np.asfortranarray(pixels)) != digest_of(pixels[:, ::-1])
