"""Resumable order of batches over all epochs, shared by ranks.

The batches of epoch 0, of epoch 1, and so on are one endless stream. Rank r of n takes every n-th of them from the r-th
on, across the ends of epochs, so that all ranks take equally many, and n ranks see in one step what one rank sees in n.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from heed.core.errors import DataError

Item = TypeVar("Item")


@dataclass(frozen=True, order=True)
class Position:
    """The next batch to be taken, counted over all ranks: what a checkpoint stores."""

    epoch: int = 0
    batch: int = 0


BEGIN = Position()


@dataclass(frozen=True)
class Turn(Generic[Item]):
    """A batch that a rank takes."""

    epoch: int
    item: Item
    """What the plan of the epoch has in its place."""
    after: Position
    """Once all ranks took a batch."""


def turns(
    plan: Callable[[int], Sequence[Item]], start: Position, rank: int = 0, world_size: int = 1
) -> Iterator[Turn[Item]]:
    """What a rank takes from `start` on, without end; `plan` gives what each batch of an epoch is made of.

    Raises DataError for a start that the data does not have.
    """
    epoch, index = start.epoch, start.batch
    if index >= len(plan(epoch)):
        raise DataError(
            f"Cannot go on from batch {index} of epoch {epoch}: that epoch has {len(plan(epoch))} batches. "
            "The data, or how it is cut into batches, is not what it was when the run was started."
        )
    while True:
        mine: list[tuple[int, Item]] = []
        for turn in range(world_size):
            planned = plan(epoch)
            if turn == rank:
                mine = [(epoch, planned[index])]
            index += 1
            if index == len(planned):
                epoch, index = epoch + 1, 0
        yield Turn(*mine[0], Position(epoch, index))
