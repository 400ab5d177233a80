"""How is a text recognised when it comes again, without keeping it?

A text is known by 64 bits of its BLAKE2b hash, the same on every machine and in every process. Among ten million
texts the chance that any two are taken for one is about 3 in a million.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

_AT_ONCE = 1 << 16
"""Slots and hashes that are gone through in one go."""


def hash_text(text: str) -> int:
    """64 bits that stand for the text; white space at its ends does not count."""
    data = text.strip().encode("utf-8", "surrogatepass")
    return int.from_bytes(blake2b(data, digest_size=8).digest(), "little")


def hash_pair(src: str, tgt: str) -> int:
    """64 bits that stand for a sentence pair; white space at the ends does not count."""
    src = src.strip()
    return hash_text(f"{len(src)} {src}{tgt.strip()}")  # the length keeps ("ab", "c") and ("a", "bc") apart


class HashSet:
    """A set of 64-bit hashes in 11 to 15 bytes each, where Python's takes 60 to 90.

    Open addressing with linear probing. Hashes are evenly spread already, so the place of hash h among n slots is
    h·n / 2^64 (of its upper half, so that the product fits 64 bits). Places are in the order of the hashes then, which
    fills a larger table in one sweep: it grows by a quarter at a time, and the old one is gone before the new is made.
    """

    def __init__(self) -> None:
        self._slots = _empty(1 << 10)
        self._count = 0
        self._most = 700

    def __len__(self) -> int:
        return self._count

    def add(self, key: int) -> bool:
        """Put a hash into the set; True when it was not there yet."""
        if self._count >= self._most:
            self._grow()
        key = key or 1  # 0 marks a free slot
        slots = self._slots
        size = len(slots)
        place = ((key >> 32) * size >> 32) - size  # counted from the end, so that the walk goes on at the beginning
        while (found := slots[place]) != 0:
            if found == key:
                return False
            place += 1
        slots[place] = key
        self._count += 1
        return True

    def _grow(self) -> None:
        size = len(self._slots) * 5 // 4
        self._most = size * 7 // 10
        keys = self._sorted()
        self._slots = _empty(1)  # let go of it first
        self._slots = _empty(size)
        slots = np.frombuffer(self._slots, np.uint64)
        beyond_end: list[int] = []
        for part, places in _placed(keys, size):
            fits = places < size
            slots[places[fits]] = part[fits]
            beyond_end += part[~fits].tolist()
        self._count -= len(beyond_end)
        for key in beyond_end:
            self.add(key)

    def _sorted(self) -> NDArray[np.uint64]:
        """All hashes, ascending; copied in blocks, since NumPy needs as much again for what it does at once."""
        slots, keys = np.frombuffer(self._slots, np.uint64), np.frombuffer(_empty(self._count), np.uint64)
        count = 0
        for begin in range(0, len(slots), _AT_ONCE):
            block = slots[begin : begin + _AT_ONCE]
            block = block[block != 0]
            keys[count : count + len(block)] = block
            count += len(block)
        keys.sort()
        return keys


def _empty(size: int) -> memoryview[int]:
    """Zeros in memory that goes back to the system when it is let go; what the C library frees it may keep."""
    return memoryview(mmap.mmap(-1, 8 * size, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)).cast("Q")


def _placed(keys: NDArray[np.uint64], size: int) -> Iterator[tuple[NDArray[np.uint64], NDArray[np.int64]]]:
    """Sorted hashes with the slots that they get, each its own place or the next behind the hash before it."""
    last = -1
    for begin in range(0, len(keys), _AT_ONCE):
        part = keys[begin : begin + _AT_ONCE]
        half = np.uint64(32)
        own = ((part >> half) * np.uint64(size) >> half).astype(np.int64)
        steps = np.arange(len(part))
        places = np.maximum.accumulate(np.maximum(own - steps, last + 1)) + steps
        last = int(places[-1])
        yield part, places
