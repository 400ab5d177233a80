"""Image store and augmentation."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from heed.core.errors import DataError, MissingInputError
from heed.data.augmentation import Augmentation
from heed.data.image_store import PIXELS, ImageStore, write_images


def images(number: int, size: int = 16) -> NDArray[np.uint8]:
    return np.random.default_rng(0).integers(256, size=(number, 3, size, size), dtype=np.uint8)


def store_of(folder: Path, pixels: NDArray[np.uint8]) -> ImageStore:
    return write_images(
        folder / "images", pixels.shape[-1], ((f"{row}.png", image) for row, image in enumerate(pixels))
    )


def test_images_are_read_in_any_order(tmp_path: Path) -> None:
    pixels = images(5)
    store = store_of(tmp_path, pixels)
    assert (len(store), store.names[3], store.manifest.size) == (5, "3.png", 16)
    assert (store.pixels([4, 0, 4]) == pixels[[4, 0, 4]]).all()


def test_a_changed_or_missing_store_is_refused(tmp_path: Path) -> None:
    store = store_of(tmp_path, images(3))
    path = store.folder / PIXELS
    content = bytearray(path.read_bytes())
    content[7] ^= 1
    path.write_bytes(content)
    ImageStore.open(store.folder)
    with pytest.raises(DataError, match=r"the checksum of pixels\.u8 does not match"):
        ImageStore.open(store.folder, verify=True)
    path.write_bytes(content[:-1])
    with pytest.raises(DataError, match=r"pixels\.u8 has 2303 bytes, but 2304 were written"):
        ImageStore.open(store.folder)
    (store.folder / "manifest.json").write_text("{}")
    with pytest.raises(DataError, match=r"is damaged: manifest\.json"):
        ImageStore.open(store.folder)
    with pytest.raises(MissingInputError):
        ImageStore.open(tmp_path / "none")


def test_an_unfinished_store_leaves_nothing(tmp_path: Path) -> None:
    def broken():
        yield "a.png", images(1)[0]
        raise DataError("b.png is damaged")

    with pytest.raises(DataError, match=r"b\.png is damaged"):
        write_images(tmp_path / "images", 16, broken())
    assert not (tmp_path / "images").exists()


def test_a_variant_depends_on_seed_epoch_and_image_alone() -> None:
    pixels, augmentation = images(6), Augmentation(seed=1, max_shift=3, mirrors=True)
    together = augmentation.apply(pixels, 2, range(6))
    alone = augmentation.apply(pixels[4:5], 2, [4])
    assert (together[4] == alone[0]).all()
    assert (augmentation.apply(pixels, 3, range(6)) != together).any()
    assert (Augmentation(2, 3, True).apply(pixels, 2, range(6)) != together).any()


def test_shifts_stay_within_their_limit_and_half_of_the_images_are_mirrored() -> None:
    image = np.zeros((3, 16, 16), dtype=np.uint8)
    image[:, 8, 5] = 255
    variants = Augmentation(1, 3, True).apply(np.stack([image] * 400), 0, range(400))
    places = {(int(v[0].argmax()) // 16, int(v[0].argmax()) % 16) for v in variants}
    assert {row for row, _ in places} == set(range(5, 12))
    assert {column for _, column in places} == {*range(2, 9), *range(7, 14)}
    num_mirrored = sum(int(v[0].argmax()) % 16 > 8 for v in variants)
    assert 120 < num_mirrored < 240
    assert (Augmentation(1, 0, False).apply(variants, 0, range(400)) == variants).all()
