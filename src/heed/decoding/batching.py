"""Batch sizes: bounds on one batch, and smaller batches where memory runs out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import TypeVar

from heed.core.errors import HeedError
from heed.core.progress import warn
from heed.nn.device import is_out_of_memory

MAX_POSITIONS = 64_000
"""Rows × longest row of one search: long lines come in smaller batches."""
MAX_SCORED_POSITIONS = 16_000
"""The same for a batch that is scored, where each position has a distribution of its own."""
MAX_SCORED_ROWS = 64
MAX_SCORED_TOKENS = 10_000
"""Tokens of the longest text that is scored at once: attention is quadratic. Count-based models take any length."""

Item = TypeVar("Item")
Result = TypeVar("Result")


def batches(lengths: Sequence[int], max_rows: int, max_positions: int) -> Iterator[slice]:
    """Slices of rows sorted from the longest to the shortest, bounded in rows and in positions, padding included."""
    begin = 0
    while begin < len(lengths):
        end = begin + max(1, min(max_rows, max_positions // lengths[begin]))
        yield slice(begin, end)
        begin = end


def halve_on_oom(items: Sequence[Item], work: Callable[[Sequence[Item]], Sequence[Result]]) -> list[Result]:
    """`work(items)`; where memory runs out, the same in halves. A result must not depend on its neighbours.

    Raises HeedError where memory does not suffice for a single item.
    """
    try:
        return list(work(items))
    except (RuntimeError, MemoryError) as error:
        if not is_out_of_memory(error):
            raise
        if len(items) == 1:
            raise HeedError("out of memory for a single line of this length: split it into sentences.") from error
    warn_of_halving()  # outside of the handler, so that the error has released its memory
    middle = len(items) // 2
    return halve_on_oom(items[:middle], work) + halve_on_oom(items[middle:], work)


@cache
def warn_of_halving() -> None:
    """Warn once in a process."""
    warn("out of memory for a whole batch; it is computed in parts, with the same result.")


def in_length_order(
    lengths: Sequence[int], ties: Sequence[int], max_rows: int, max_positions: int,
    work: Callable[[Sequence[int]], Sequence[Result]],
) -> list[Result]:  # fmt: skip
    """`work` on the indices of all rows, in batches from the longest to the shortest; results in the rows' order.

    `ties` orders rows of equal length.
    """
    order = sorted(range(len(lengths)), key=lambda i: (-lengths[i], ties[i]))
    results: dict[int, Result] = {}
    for part in batches([lengths[i] for i in order], max_rows, max_positions):
        results.update(zip(order[part], halve_on_oom(order[part], work), strict=True))
    return [results[i] for i in range(len(lengths))]
