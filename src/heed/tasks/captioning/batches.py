"""Batches of captioned images, and their loss.

A row of the data is an image with all its captions, so an image is encoded once for all of them. In the token store,
the captions of a row follow each other, each with an end of sentence.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from jaxtyping import Int
from numpy.typing import NDArray
from torch import Tensor

from heed.data.augmentation import Augmentation
from heed.data.batch import Batch, Ids, SourceBatch, collate
from heed.data.image_store import ImageStore
from heed.data.loader import BatchLoader
from heed.data.store import TokenStore
from heed.nn.contract import Autoregressive, Smoothing, State
from heed.nn.dropout_keys import DropoutKeys
from heed.nn.images import ImageSource
from heed.tasks.task import Loss
from heed.text.vocabulary import Vocabulary


@dataclass(frozen=True)
class CaptionBatch(SourceBatch):
    """Images, and their captions in the order of the images."""

    source: ImageSource
    text: Batch
    """The captions as a batch without a source."""
    image_of: Int[Tensor, " R"]
    """The image of each caption, counted within the batch."""
    number: Int[Tensor, " R"]
    """The number of each caption among those of its image."""
    rows: Int[Tensor, " B"]
    """Index of each image in the corpus."""

    @property
    def num_targets(self) -> int:
        return self.text.num_targets

    @property
    def num_positions(self) -> int:
        return self.text.num_positions + self.source.mask.numel()

    @property
    def num_real(self) -> int:
        return self.text.num_real + self.source.mask.numel()

    def part(self, rows: slice) -> CaptionBatch:
        begin, end, _ = rows.indices(len(self.rows))
        captions = slice(int((self.image_of < begin).sum()), int((self.image_of < end).sum()))
        return CaptionBatch(
            self.source.part(rows), self.text.part(captions), self.image_of[captions] - begin, self.number[captions],
            self.rows[rows],
        )  # fmt: skip


def caption_batch(
    pixels: NDArray[np.uint8], captions: Sequence[Sequence[Ids]], rows: Sequence[int] | NDArray[np.integer]
) -> CaptionBatch:
    """A batch of images `[B, 3, S, S]` with the ids of their captions, without bos and eos."""
    flat = [ids for of_image in captions for ids in of_image]
    counts = [len(of_image) for of_image in captions]
    text = collate(None, flat, np.arange(len(flat)), Vocabulary.bos_id, Vocabulary.eos_id, Vocabulary.pad_id)
    image_of = torch.from_numpy(np.repeat(np.arange(len(counts)), counts))
    number = torch.tensor([index for count in counts for index in range(count)], dtype=torch.long)
    return CaptionBatch(
        ImageSource(torch.from_numpy(pixels)), text, image_of, number, torch.from_numpy(np.array(rows, dtype=np.int64))
    )


def joined(captions: Sequence[Sequence[int]]) -> list[int]:
    """The ids of an image's captions as a row of the token store."""
    return [id for ids in captions for id in (*ids, Vocabulary.eos_id)]


def split(ids: Ids) -> list[NDArray[np.integer]]:
    """The captions of a row of the token store, without their ends."""
    row = np.asarray(ids)
    return [part[:-1] for part in np.split(row, np.flatnonzero(row == Vocabulary.eos_id) + 1)[:-1]]


class CaptionLoader(BatchLoader[CaptionBatch]):
    """Batches of a token store of captions and of the store of their images, which are augmented anew in each epoch."""

    def __init__(self, store: TokenStore, images: ImageStore, augmentation: Augmentation, **options: Any) -> None:
        def collate(ids: Mapping[str, Sequence[Ids]], rows: NDArray[np.int64]) -> CaptionBatch:
            return caption_batch(images.pixels(rows), [split(row) for row in ids["tgt"]], rows)

        super().__init__(store, collate, **options)
        self.augmentation = augmentation

    def made(self, ids: Mapping[str, Sequence[Ids]], rows: NDArray[np.int64], epoch: int) -> CaptionBatch:
        batch = super().made(ids, rows, epoch)
        pixels = self.augmentation.apply(batch.source.pixels.numpy(), epoch, rows)
        return replace(batch, source=ImageSource(torch.from_numpy(pixels)))


def features_of(model: Autoregressive, batch: CaptionBatch, dropout_keys: DropoutKeys | None = None) -> Tensor:
    """The features `[R, T, D]` of all captions under teacher forcing; each image is read once."""
    state: Any = model.start(batch.source, dropout_keys=dropout_keys)
    captions: State = state.select(batch.image_of)
    if dropout_keys is not None:  # the captions of an image have masks of their own
        keys = state.dropout_keys.select(batch.image_of).numbered(batch.number)
        captions = replace(captions, dropout_keys=keys)  # type: ignore[type-var]
    features, _ = model.advance(batch.text.tgt_in, captions)
    return features


def caption_loss(
    model: Any, batch: CaptionBatch, smoothing: Smoothing, dropout_keys: DropoutKeys | None,
    moving_nll: float | None,
) -> Loss:  # fmt: skip
    """Cross-entropy of each word of the captions, with the terms of the model's attention, if it has any."""
    features, text = features_of(model, batch, dropout_keys), batch.text
    average = (moving_nll,) if model.compares_losses else ()
    return Loss(*model.head.loss(features, text.tgt_out, text.tgt_mask, smoothing, *average))
