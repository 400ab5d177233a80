"""Hashes of texts, and a compact set of them, to recognise repeated texts without keeping them.

A text is identified by 64 bits of its BLAKE2b hash, the same on every machine and in every process. Among ten million
texts the probability of any collision is about 3 in a million.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from hashlib import blake2b
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # translating reads the settings of the filter, and starts without NumPy
    import numpy as np
    from numpy.typing import NDArray

_AT_ONCE = 1 << 16
"""Slots and hashes processed at once."""


def hash_text(text: str) -> int:
    """A 64-bit hash of a text without the white space at its ends."""
    data = text.strip().encode("utf-8", "surrogatepass")
    return int.from_bytes(blake2b(data, digest_size=8).digest(), "little")


def hash_pair(src: str, tgt: str) -> int:
    """A 64-bit hash of a sentence pair without the white space at its ends."""
    src = src.strip()
    return hash_text(f"{len(src)} {src}{tgt.strip()}")  # the length keeps ("ab", "c") and ("a", "bc") apart


class HashSet:
    """A set of 64-bit hashes at 11 to 15 bytes each, where Python's set takes 60 to 90.

    Open addressing with linear probing. Hashes are already evenly distributed, so hash h belongs in slot h·n / 2^64 of
    n (computed from its upper half, so that the product fits 64 bits). Slots are then in the order of the hashes, so a
    larger table is filled in one sweep: it grows by a quarter, and the old table is freed before the new one is made.
    """

    def __init__(self) -> None:
        self._slots = _empty(1 << 10)
        self._count = 0
        self._most = 700

    def __len__(self) -> int:
        return self._count

    def add(self, key: int) -> bool:
        """Add a hash to the set; True if it is new."""
        if self._count >= self._most:
            self._grow()
        key = key or 1  # 0 marks a free slot
        slots = self._slots
        size = len(slots)
        place = ((key >> 32) * size >> 32) - size  # negative, so that probing wraps around
        while (occupant := slots[place]) != 0:
            if occupant == key:
                return False
            place += 1
        slots[place] = key
        self._count += 1
        return True

    def _grow(self) -> None:
        import numpy as np

        size = len(self._slots) * 5 // 4
        self._most = size * 7 // 10
        keys = self._sorted()
        self._slots = _empty(1)  # free it first
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
        """All hashes, ascending; copied in blocks, because NumPy allocates as much again for each operation."""
        import numpy as np

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
    """Zeros in memory that returns to the system when freed, which the C library does not guarantee."""
    return memoryview(mmap.mmap(-1, 8 * size, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)).cast("Q")


def _placed(keys: NDArray[np.uint64], size: int) -> Iterator[tuple[NDArray[np.uint64], NDArray[np.int64]]]:
    """Sorted hashes with their slots, each its own or the one after that of the hash before."""
    import numpy as np

    last = -1
    for begin in range(0, len(keys), _AT_ONCE):
        part = keys[begin : begin + _AT_ONCE]
        half = np.uint64(32)
        own = ((part >> half) * np.uint64(size) >> half).astype(np.int64)
        steps = np.arange(len(part))
        places = np.maximum.accumulate(np.maximum(own - steps, last + 1)) + steps
        last = int(places[-1])
        yield part, places
