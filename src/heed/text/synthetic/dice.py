"""How are random choices made that are the same on every machine and with every version of Python?

Only `random.Random.random` is used, whose sequence for a seed Python promises never to change; the methods
built on it (`choice`, `shuffle`) carry no such promise, so they are written out here.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import TypeVar

Item = TypeVar("Item")


class Dice:
    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed).random

    def below(self, limit: int) -> int:
        """A whole number from 0 to `limit` - 1."""
        return int(self._random() * limit)

    def between(self, first: int, last: int) -> int:
        """A whole number from `first` to `last`, both included."""
        return first + self.below(last - first + 1)

    def chance(self, probability: float) -> bool:
        return self._random() < probability

    def pick(self, items: Sequence[Item]) -> Item:
        return items[self.below(len(items))]

    def weighted(self, items: Sequence[tuple[int, Item]]) -> Item:
        """One of the items, each as often as its weight says."""
        total = 0
        for weight, _ in items:
            total += weight
        point = self.below(total)
        for weight, item in items:
            point -= weight
            if point < 0:
                return item
        raise AssertionError("the weights are not positive")

    def shuffled(self, items: Sequence[Item]) -> list[Item]:
        """The items in random order (Fisher and Yates)."""
        order = list(items)
        for last in range(len(order) - 1, 0, -1):
            other = self.below(last + 1)
            order[last], order[other] = order[other], order[last]
        return order
