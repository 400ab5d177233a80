"""Choice of device, threads and precision, and settings of the memory allocator."""

from __future__ import annotations

import ctypes
import math
import sys
import time
from collections.abc import Sequence

import torch

from heed.core import environment
from heed.core.errors import UsageError

KERNELS_KEPT = 128
"""Shapes of a few updates: enough for the layers of one model to share theirs."""

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD, _M_ARENA_MAX = -1, -3, -8


def choose_device(name: str) -> torch.device:
    """The device called "cpu", "cuda" or "cuda:1"; "auto" takes a GPU where there is one.

    Of several processes on a machine each takes a GPU of its own.
    """
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    if name.split(":")[0] not in ("cpu", "cuda"):
        raise UsageError(f"--device is auto, cpu, cuda or cuda:N, got {name!r}.")
    if name.startswith("cuda") and not torch.cuda.is_available():
        raise UsageError(f"--device {name}: PyTorch sees no CUDA device here. Use --device cpu.")
    if name == "cuda":
        name = f"cuda:{environment.distributed().local_rank}"
    device = torch.device(name)
    if device.type == "cuda" and (device.index or 0) >= (number := torch.cuda.device_count()):
        raise UsageError(
            f"there is no {device}: PyTorch sees {number} CUDA device{'s' * (number > 1)} here, numbered from 0, and "
            "each process on a machine takes one."
        )
    return device


def set_threads(threads: int) -> None:
    """How many CPU threads compute; and how memory is kept, before the first product is taken.

    By default the C library gives every large block back to the system and faults it in again, which can cost more
    than the arithmetic on it. And oneDNN keeps a compiled kernel for each shape of a bfloat16 product it has met, up to
    thousands of them: batches of ever new shapes then take gigabytes, and no shape comes back soon.
    """
    torch.set_num_threads(threads)
    environment.limit_kernel_caches(KERNELS_KEPT)
    if library := _c_library():
        library.mallopt(_M_MMAP_THRESHOLD, 1 << 30)
        library.mallopt(_M_TRIM_THRESHOLD, (1 << 31) - 1)


CLEARLY_FASTER = 1.2
"""How many times faster several threads must be than one to be worth it."""


def faster_threads(model: torch.nn.Module, available: int, rows: int = 32, seconds: float = 0.02) -> int:
    """Number of CPU threads for decoding with a model: `available` if they are clearly faster than one, else one.

    Measured for about so many seconds with products of `rows` vectors and the model's median matrix.
    """
    shapes = sorted((tuple(p.shape) for p in model.parameters() if p.dim() == 2), key=math.prod)
    if available == 1 or not shapes:
        return available
    num_out, num_in = shapes[len(shapes) // 2]
    features, weight = torch.ones(rows, num_in), torch.ones(num_out, num_in)
    fastest = {1: math.inf, available: math.inf}
    deadline = time.perf_counter() + seconds
    while time.perf_counter() < deadline:
        for threads in fastest:
            torch.set_num_threads(threads)
            features @ weight.T  # the first one wakes the threads
            begin = time.perf_counter()
            features @ weight.T
            fastest[threads] = min(fastest[threads], time.perf_counter() - begin)
    return available if fastest[1] > CLEARLY_FASTER * fastest[available] else 1


def share_one_heap() -> None:
    """All threads that are started from now on allocate in one place, where one can use what another has freed.

    By default each of the first sixteen threads or so keeps a heap of its own, and a server has many threads.
    """
    if library := _c_library():
        library.mallopt(_M_ARENA_MAX, 1)


def give_memory_back() -> None:
    """Return what was freed to the system: between stages of work that need much of it for different things."""
    if library := _c_library():
        library.malloc_trim(0)


def _c_library() -> ctypes.CDLL | None:
    """GNU's C library; None where there is another one."""
    if sys.platform != "linux":
        return None
    try:
        library = ctypes.CDLL(None)
        return library if library.mallopt and library.malloc_trim else None
    except (OSError, AttributeError):
        return None


def arithmetic(device: torch.device) -> dict[str, str]:
    """What numbers may depend on in their last bits: the same training with the same of these gives the same bits.

    On a CPU: sums of a GPU's threads come in any order.
    """
    processes = environment.distributed().world_size
    found = {"torch": torch.__version__, "threads": str(torch.get_num_threads()), "processes": str(processes)}
    if device.type == "cuda":
        return found | {"device": torch.cuda.get_device_name(device)}
    return found | {"device": device.type, "instructions": torch.backends.cpu.get_cpu_capability()}


def is_out_of_memory(error: BaseException) -> bool:
    """Whether memory did not suffice, on whichever device; PyTorch's allocator for CPUs tells it in words alone."""
    if isinstance(error, MemoryError | torch.cuda.OutOfMemoryError):
        return True
    return isinstance(error, RuntimeError) and "DefaultCPUAllocator" in str(error)


def matmul_rates(dtypes: Sequence[torch.dtype], device: torch.device, size: int, repeats: int = 20) -> list[float]:
    """Measured floating-point operations per second of a square matrix product in each type: the fastest of several.

    The types take turns, so that other work on the machine slows none of them alone.
    """
    matrices = [torch.randn(size, size, device=device).to(dtype) for dtype in dtypes]
    fastest = [float("inf")] * len(dtypes)
    for _ in range(repeats):
        for number, a in enumerate(matrices):
            begin = time.perf_counter()
            a @ a
            _synchronise(device)
            fastest[number] = min(fastest[number], time.perf_counter() - begin)
    return [2 * size**3 / seconds for seconds in fastest]


def _synchronise(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def best_precision(device: torch.device) -> tuple[str, float]:
    """("bfloat16" or "float32", how many times faster bfloat16 is): bfloat16 where it gains at least a third.

    Small matrices are tried first: a processor that emulates bfloat16 needs seconds for large ones.
    """
    gain = _gain_of_bfloat16(device, size=128)
    if gain > 1 / 2:
        gain = _gain_of_bfloat16(device, size=512)
    return ("bfloat16" if gain > 4 / 3 else "float32"), gain


def _gain_of_bfloat16(device: torch.device, size: int) -> float:
    of_bfloat16, of_float32 = matmul_rates((torch.bfloat16, torch.float32), device, size)
    return of_bfloat16 / of_float32
