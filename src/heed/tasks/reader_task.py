"""Shared part of the tasks that put a head on a reader: batches of rows, each with its source and its answer."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heed.data.batch import Ids, TrainingBatch
from heed.data.loader import BatchLoader
from heed.tasks.task import Loader, Task, refuse_settings_of_translation


class ReaderTask(Task):
    """A task whose batches are rows of the token store."""

    @classmethod
    def check(cls, recipe: Any, is_new: bool) -> None:
        if is_new:
            refuse_settings_of_translation(recipe)

    @classmethod
    def require_positions(cls, recipe: Any) -> None:
        """Raise ValueError if texts can be longer than the reader has positions for."""
        longest, most = recipe.data.max_tokens, recipe.model.max_positions
        if most is not None and longest >= most:
            keys = " and ".join(f"model.{key}" for key in recipe.model.keys_below(longest + 1))
            raise ValueError(
                f"data.max_tokens = {longest} and the end of a text need {longest + 1} positions, but the reader has "
                f"{most}: lower data.max_tokens, or give the reader more ({keys})"
            )

    @abstractmethod
    def collate(self, ids: Mapping[str, Sequence[Ids]], rows: Sequence[int] | NDArray[np.int64]) -> TrainingBatch:
        """A batch from the columns of the token store and the rows' indices in the corpus."""

    def loader(self, tokens_per_batch: int, seed: int, rank: int = 0, world_size: int = 1, workers: int = 0) -> Loader:
        return BatchLoader(
            self.store, self.collate, tokens_per_batch=tokens_per_batch, seed=seed, rank=rank, world_size=world_size,
            workers=workers,
        )  # fmt: skip
