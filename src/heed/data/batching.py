"""Batch planning by length: the batches of an epoch and their order.

A plan is a pure function of the rows' lengths, a token budget, the seed and the number of the epoch. Nothing is
remembered between epochs: a resumed run computes the plan of its epoch again and replays nothing.

Rows are shuffled, then sorted so that a batch holds rows of nearly the same length on *both* sides: by the longer
side, which makes the batches as few as the budget allows, then by the signed difference of the sides, which fixes
the shorter one. The direction of the difference alternates from one length to the next, so that a batch that
reaches into the next length goes on with rows of the same difference.

Such batches are alike inside, so the rest is random: the order of the batches, the order of rows of equal lengths,
and the place of the first cut, so that rows do not keep the same company in every epoch.

The random numbers are the raw output of NumPy's Philox generator (Salmon et al. 2011), a stream that NumPy promises
to keep, and a shuffle is a sort by them. `Generator.permutation` has no such promise.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.random import Philox
from numpy.typing import NDArray


def plan_epoch(
    lengths: Sequence[NDArray[np.integer]],
    tokens_per_batch: int,
    seed: int,
    epoch: int,
    max_rows: int | None = None,
    block_rows: int = 2_000_000,
) -> list[NDArray[np.int64]]:
    """The batches of one epoch in order, each an array of row indices; every row is in exactly one.

    `lengths` holds one array `[num_rows]` for each side (one or two), each length counted with the token that is
    added to the sentence. In each batch, rows × the longest sequence of either side is at most `tokens_per_batch`,
    and there are at most `max_rows` rows; a row that is longer than the budget is a batch of its own.

    Rows are sorted by length inside blocks of `block_rows` shuffled rows, which bounds the memory of a large corpus.
    """
    random = Philox(key=np.array([seed, epoch], dtype=np.uint64))
    order = _shuffled(len(lengths[0]), random)
    batches: list[NDArray[np.int64]] = []
    for start in range(0, len(order), block_rows):
        rows = order[start : start + block_rows]
        sides = [side[rows].astype(np.int64) for side in lengths]
        longest = np.maximum(sides[0], sides[-1])
        alike = _alike_first(longest, sides[0] - sides[-1])
        rows, longest = rows[alike], longest[alike]
        sizes = _cut(longest, tokens_per_batch, max_rows or len(rows), _uniform(random))
        batches.extend(rows[begin:end] for begin, end in sizes)
    return [batches[i] for i in _shuffled(len(batches), random)]


def padding_share(batches: Sequence[NDArray[np.int64]], lengths: Sequence[NDArray[np.integer]]) -> float:
    """The share of positions that are padding, 0 to 1, over all the sides given: one side alone, or both together."""
    real = sum(int(side[rows].sum()) for rows in batches for side in lengths)
    positions = sum(len(rows) * int(side[rows].max()) for rows in batches for side in lengths)
    return 1 - real / positions if positions else 0.0


def _shuffled(n: int, random: Philox) -> NDArray[np.int64]:
    """The numbers below `n` in random order."""
    return np.argsort(random.random_raw(n), kind="stable").astype(np.int64, copy=False)


def _uniform(random: Philox) -> float:
    """A random number in [0, 1)."""
    return float(random.random_raw() >> 11) / 2**53


def _alike_first(longest: NDArray[np.int64], difference: NDArray[np.int64]) -> NDArray[np.int64]:
    """The order that keeps rows of like lengths together; stable, so that equal rows stay shuffled."""
    snake = np.where(longest % 2 == 0, difference, -difference)
    return np.lexsort((snake, longest)).astype(np.int64, copy=False)


def _cut(
    longest: NDArray[np.int64], tokens_per_batch: int, max_rows: int, first_share: float
) -> Iterator[tuple[int, int]]:
    """Cuts rows of ascending length into batches as large as the budget allows: (begin, end) of each.

    The first batch is made smaller, to between half and all of that, unless all rows fit into it.
    """
    begin, num_rows = 0, len(longest)
    while begin < num_rows:
        # No batch from here has more rows than one in which all are as short as the first.
        reach = min(max(tokens_per_batch // int(longest[begin]), 1), max_rows)
        candidates = longest[begin : begin + reach]
        area = candidates * np.arange(1, len(candidates) + 1)
        size = max(1, int(np.searchsorted(area, tokens_per_batch, side="right")))
        if begin == 0 and size < num_rows:
            size = max(1, round(size * (1 + first_share) / 2))
        yield begin, begin + size
        begin += size
