"""Captions of the training data as baselines: the most frequent one, and that of the most similar image.

A captioning model that has learned to see is better than both.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from heed.data.image_store import ImageStore
from heed.nn.images import PATCH, ImageSource
from heed.run import Run
from heed.tasks.captioning.batches import split
from heed.tasks.captioning.prepare import TRAIN_IMAGES
from heed.tasks.prepare import open_tokens

AT_ONCE = 256
"""Images whose features are computed at once."""
Vectors = NDArray[np.float32]
FREQUENT, BY_PIXELS, BY_FEATURES = "most frequent caption", "nearest image (pixels)", "nearest image (encoder)"


def baseline_captions(run: Run, images: NDArray[np.uint8]) -> dict[str, list[str]]:
    """The captions of images `[N, 3, S, S]` by each baseline; empty if the run's training data was removed."""
    if not run.files.has(TRAIN_IMAGES):
        return {}
    store, train = open_tokens(run.folder), ImageStore.open(run.folder / TRAIN_IMAGES)
    captions = [
        run.tokenizers["tgt"].decode([ids.tolist() for ids in split(store.row("tgt", row))])
        for row in range(len(store))
    ]
    [(frequent, _)] = Counter(text for of_image in captions for text in of_image).most_common(1)
    nearest = {name: _nearest(vectors, images, train) for name, vectors in _similarities(run).items()}
    first = {name: [captions[row][0].strip() for row in rows] for name, rows in nearest.items()}
    return {FREQUENT: [frequent.strip()] * len(images), **first}


def _similarities(run: Run) -> dict[str, Callable[[NDArray[np.uint8]], Vectors]]:
    """The vectors by which images are compared: mean colours of the patches, and the mean annotation vector."""

    def annotations(images: NDArray[np.uint8]) -> Vectors:
        encoder: Any = run.model.encoder
        with torch.inference_mode():
            source = ImageSource(torch.from_numpy(images)).to(run.device)
            means = torch.nn.functional.normalize(encoder.read(source).mean(1).float(), dim=-1)
        return np.asarray(means.cpu().numpy(), dtype=np.float32)

    similarities: dict[str, Callable[[NDArray[np.uint8]], Vectors]] = {BY_PIXELS: colours}
    return {**similarities, BY_FEATURES: annotations} if hasattr(run.model, "encoder") else similarities


def colours(images: NDArray[np.uint8]) -> Vectors:
    """The mean colour of each patch `[N, 3 · patches]`."""
    count, channels, height, width = images.shape
    patches = images.reshape(count, channels, height // PATCH, PATCH, width // PATCH, PATCH)
    means: Vectors = patches.mean((3, 5), dtype=np.float32).reshape(count, -1)
    return means


def _nearest(
    vectors: Callable[[NDArray[np.uint8]], Vectors], images: NDArray[np.uint8], train: ImageStore
) -> list[int]:
    """The row of the training image with the smallest Euclidean distance from each image."""
    of_images = _in_parts(vectors, len(images), lambda rows: images[rows])
    of_train = _in_parts(vectors, len(train), train.pixels)
    squares = (of_train**2).sum(1)
    return [int((squares - 2 * of_train @ vector).argmin()) for vector in of_images]


def _in_parts(
    vectors: Callable[[NDArray[np.uint8]], Vectors], number: int, images: Callable[[Sequence[int]], NDArray[np.uint8]]
) -> Vectors:
    parts = [vectors(images(range(begin, min(number, begin + AT_ONCE)))) for begin in range(0, number, AT_ONCE)]
    return np.concatenate(parts)
