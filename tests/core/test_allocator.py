"""Settings of the C library's memory allocator."""

from __future__ import annotations

import platform
import subprocess
import sys

import pytest

COUNT = """
import resource
from heed.core.allocator import keep_freed_memory
if {kept}:
    keep_freed_memory()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(10):
    block = bytearray(b"a") * (40 << 20)
    del block
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""

RETURN = """
from pathlib import Path
from heed.core.allocator import give_memory_back, keep_freed_memory

def resident():
    return int(Path("/proc/self/statm").read_text().split()[1])

keep_freed_memory()
before = resident()
held = [bytes(50_000) for _ in range(2000)]  # 100 MB in blocks that the C library keeps
taken = resident() - before
del held
kept = resident() - before
give_memory_back()
print(taken, kept, resident() - before)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only the GNU C library has these settings")
def test_large_blocks_that_are_freed_are_kept_for_the_next_ones() -> None:
    """Each block of 40 MB is faulted in again unless freed memory is kept."""
    script = f"import ctypes; print(ctypes.CDLL(None).mallopt(-3, {1 << 30}))"
    if subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout == "0\n":
        pytest.skip("this version of the C library keeps no blocks of more than 32 MB")
    faults = {}
    for kept in (False, True):
        words = [sys.executable, "-c", COUNT.format(kept=kept)]
        faults[kept] = int(subprocess.run(words, capture_output=True, text=True, check=True).stdout)
    assert faults[True] < faults[False] / 4


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only the GNU C library has these settings")
def test_freed_memory_is_returned_to_the_system() -> None:
    """In a process of its own: threads of others may take memory meanwhile."""
    words = [sys.executable, "-c", RETURN]
    taken, kept, left = map(int, subprocess.run(words, capture_output=True, text=True, check=True).stdout.split())
    assert left < taken / 2 < kept
