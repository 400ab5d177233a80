"""Batches of tagged sentences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Int
from numpy.typing import NDArray
from torch import Tensor

from heed.data.batch import Ids, SourceBatch
from heed.nn.word_source import WordSource
from heed.tasks.words import word_source


@dataclass(frozen=True)
class TagBatch(SourceBatch):
    """Sentences with the tags of their words."""

    source: WordSource
    tags: Int[Tensor, "B W"]
    rows: Int[Tensor, " B"]

    @property
    def num_targets(self) -> int:
        """Number of words."""
        return int(self.source.words.sum())

    def part(self, rows: slice) -> TagBatch:
        source = self.source.part(rows)
        return TagBatch(source, self.tags[rows, : source.words.shape[1]], self.rows[rows])


def collate(ids: Mapping[str, Sequence[Ids]], rows: Sequence[int] | NDArray[np.int64]) -> TagBatch:
    """A batch from the columns of the token store and the rows' indices in the corpus."""
    source = word_source(ids)
    tags = np.zeros(source.words.shape, dtype=np.int64)
    tags[source.words.numpy()] = np.concatenate([np.asarray(row, dtype=np.int64) for row in ids["tags"]])
    return TagBatch(source, torch.from_numpy(tags), torch.from_numpy(np.array(rows, dtype=np.int64)))
