"""The law of linear time: what takes eight times as much input takes eight times as long, and not 64 times.

Time is that of the thread, which does not count others' work, and only long times are compared.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")
SIZES = (125, 1000, 8000)
LONG = 0.03
"""Seconds."""
MOST = 24
"""Times as long as for an eighth of the input: linear work takes eight times as long, quadratic work 64 times."""


def seconds_of(work: Callable[[T], object], made: T) -> float:
    """The time that this thread works, without collections of garbage, whose time grows with all objects there are."""
    gc.disable()
    try:
        begin = time.thread_time()
        work(made)
        return time.thread_time() - begin
    finally:
        gc.enable()


def require_linear_time(work: Callable[[T], object], make: Callable[[int], T]) -> None:
    """Do work on what is made in growing sizes, until it takes long.

    Work that is quadratic only up to a size, such as that of a bounded look-ahead, is compared again above it.
    """
    work(make(2))  # what is compiled or imported once
    before = longer = seconds_of(work, make(SIZES[0]))
    for size in SIZES[1:]:
        before, large = longer, make(size)
        longer = seconds_of(work, large)
        for _ in range(2):
            if longer > max(LONG, MOST * before):  # other programs may have taken the processor's cache
                longer = min(longer, seconds_of(work, large))
        if LONG < longer <= MOST * before:
            return
    assert longer <= max(LONG, MOST * before), f"{longer:.3f} s for {SIZES[-1]:,} parts, {before:.3f} s for an eighth"
