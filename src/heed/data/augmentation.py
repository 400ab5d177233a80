"""Augmentation of images: random shifts and mirroring that depend on the seed, the epoch and the image alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.random import Philox
from numpy.typing import NDArray


@dataclass(frozen=True)
class Augmentation:
    """A new variant of each image in each epoch."""

    seed: int
    max_shift: int
    """Largest shift in either direction, in pixels; the border is continued by its mirror image."""
    mirrors: bool
    """Whether half of the images are mirrored from left to right."""

    def apply(
        self, pixels: NDArray[np.uint8], epoch: int, rows: Sequence[int] | NDArray[np.integer]
    ) -> NDArray[np.uint8]:
        """The variants `[B, 3, S, S]` of the images with these numbers in this epoch."""
        return np.stack([self._variant(image, epoch, int(row)) for image, row in zip(pixels, rows, strict=True)])

    def _variant(self, image: NDArray[np.uint8], epoch: int, row: int) -> NDArray[np.uint8]:
        # NumPy promises to keep the raw output of Philox.
        across, down, mirror = Philox(key=np.array([self.seed, epoch << 40 | row], dtype=np.uint64)).random_raw(3)
        most, size = self.max_shift, image.shape[-1]
        if most:
            left, top = int(across % (2 * most + 1)), int(down % (2 * most + 1))
            padded = np.pad(image, ((0, 0), (most, most), (most, most)), mode="reflect")
            image = padded[:, top : top + size, left : left + size]
        return image[:, :, ::-1] if self.mirrors and mirror >> 63 else image
