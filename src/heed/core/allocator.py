"""Settings of the C library's memory allocator."""

from __future__ import annotations

import ctypes
import sys

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD, _M_ARENA_MAX = -1, -3, -8


def keep_freed_memory() -> None:
    """Keep large blocks that are freed, for the next ones; call it before the first of them.

    By default the C library returns every large block to the system and faults it in again, which can cost more than
    the arithmetic on it. Only the command line sets this; the library does not.
    """
    if library := _c_library():
        if not library.mallopt(_M_MMAP_THRESHOLD, 1 << 30):
            library.mallopt(_M_MMAP_THRESHOLD, 32 << 20)  # the most that older versions allow
        library.mallopt(_M_TRIM_THRESHOLD, (1 << 31) - 1)


def share_one_heap() -> None:
    """Make threads that start from now on share one heap, so that each can use memory that another has freed.

    By default each of about the first sixteen threads has its own heap, and a server has many threads.
    """
    if library := _c_library():
        library.mallopt(_M_ARENA_MAX, 1)


def give_memory_back() -> None:
    """Return freed memory to the system, between stages of work that need much memory."""
    if library := _c_library():
        library.malloc_trim(0)


def _c_library() -> ctypes.CDLL | None:
    """The GNU C library; None if the system uses another one."""
    if sys.platform != "linux":
        return None
    try:
        library = ctypes.CDLL(None)
        return library if library.mallopt and library.malloc_trim else None
    except (OSError, AttributeError):
        return None
