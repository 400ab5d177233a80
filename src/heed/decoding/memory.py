"""What happens when memory does not suffice for a batch? It is done in two halves, and told once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import TypeVar

from heed.core.errors import HeedError
from heed.core.progress import warn
from heed.nn.device import is_out_of_memory

Item = TypeVar("Item")
Result = TypeVar("Result")


def in_parts_that_fit(items: Sequence[Item], work: Callable[[Sequence[Item]], Sequence[Result]]) -> list[Result]:
    """`work(items)`, or of smaller and smaller parts of them; a result must not depend on the items beside it.

    Raises HeedError when memory does not suffice for one item.
    """
    try:
        return list(work(items))
    except (RuntimeError, MemoryError) as error:
        if not is_out_of_memory(error):
            raise
        if len(items) == 1:
            raise HeedError("memory does not suffice for one line of this length: cut it into sentences.") from error
    tell()  # here, where the error has let go of what it held
    middle = len(items) // 2
    return in_parts_that_fit(items[:middle], work) + in_parts_that_fit(items[middle:], work)


@cache
def tell() -> None:
    """Say so, once in a process."""
    warn("memory does not suffice for a whole batch: it is computed in parts, with the same result.")
