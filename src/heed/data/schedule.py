"""Resumable order of batches over all epochs, shared by ranks, and the random numbers of an epoch.

The batches of epoch 0, of epoch 1, and so on are one endless sequence. Rank r of n takes every n-th of them, starting
with the r-th, across the ends of epochs, so that all ranks take equally many, and n ranks see in one step what one rank
sees in n steps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np
from numpy.random import Philox
from numpy.typing import NDArray

from heed.core.errors import DataError

Item = TypeVar("Item")


@dataclass(frozen=True, order=True)
class Position:
    """The next batch, counted over all ranks, as a checkpoint stores it."""

    epoch: int = 0
    batch: int = 0


START = Position()


@dataclass(frozen=True)
class Turn(Generic[Item]):
    """A batch that a rank takes."""

    epoch: int
    item: Item
    """The batch's item in the plan of the epoch."""
    after: Position
    """The position after all ranks have taken a batch."""


def turns(
    plan: Callable[[int], Sequence[Item]], start: Position, rank: int = 0, world_size: int = 1
) -> Iterator[Turn[Item]]:
    """The batches of a rank from `start`, without end; `plan` returns the items of an epoch's batches.

    Raises DataError if the data has no such position.
    """
    epoch, index = start.epoch, start.batch
    if index >= len(plan(epoch)):
        raise DataError(
            f"Cannot continue at batch {index} of epoch {epoch}, which has {len(plan(epoch))} batches. "
            "The data or its division into batches has changed since the run was started."
        )
    while True:
        own: list[tuple[int, Item]] = []
        for turn in range(world_size):
            planned = plan(epoch)
            if turn == rank:
                own = [(epoch, planned[index])]
            index += 1
            if index == len(planned):
                epoch, index = epoch + 1, 0
        yield Turn(*own[0], Position(epoch, index))


def epoch_random(seed: int, epoch: int) -> Philox:
    """The random numbers of an epoch: raw output of NumPy's Philox generator (Salmon et al. 2011).

    NumPy promises to keep this stream; it makes no such promise for `Generator.permutation`.
    """
    return Philox(key=np.array([seed, epoch], dtype=np.uint64))


def shuffled(n: int, random: Philox) -> NDArray[np.int64]:
    """The numbers below `n` in random order."""
    return np.argsort(random.random_raw(n), kind="stable").astype(np.int64, copy=False)
