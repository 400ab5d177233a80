"""Choice of device, threads and precision."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch

from heed.core import environment
from heed.core.allocator import keep_freed_memory
from heed.core.errors import UsageError

KERNELS_KEPT = 128
"""Number of compiled kernels that oneDNN keeps: the shapes of a few updates of one model."""


def choose_device(name: str) -> torch.device:
    """The device named "cpu", "cuda" or "cuda:1"; "auto" is a GPU if PyTorch sees one.

    With "cuda" and "auto", each of several processes on a machine uses its own GPU.
    """
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    if not isinstance(name, str) or re.fullmatch(r"cpu|cuda(:(0|[1-9]\d?))?", name, re.ASCII) is None:
        raise UsageError(f"--device must be auto, cpu, cuda or cuda:N, got {name!r}.")
    if name.startswith("cuda") and not torch.cuda.is_available():
        raise UsageError(f"--device {name}: PyTorch sees no CUDA device here. Use --device cpu.")
    if name == "cuda":
        name = f"cuda:{environment.distributed().local_rank}"
    device = torch.device(name)
    if device.type == "cuda" and (device.index or 0) >= (number := torch.cuda.device_count()):
        raise UsageError(
            f"{device} does not exist: PyTorch sees {number} CUDA device{'s' * (number > 1)} here, numbered from 0, "
            "and each process on a machine uses one."
        )
    if device.type == "cuda":
        _use_gpu(device)
    return device


def _use_gpu(device: torch.device) -> None:
    """Select the GPU for this process, turn off TF32, and avoid attention kernels that are compiled for each shape.

    By default cuDNN rounds the products of recurrent layers and convolutions to 10 bits (TF32), and compiles an
    attention kernel for each new shape of a batch, which takes much longer than the attention itself.
    """
    torch.cuda.set_device(device)
    torch.backends.cudnn.allow_tf32 = False
    torch.backends.cuda.enable_cudnn_sdp(False)


def set_threads(threads: int) -> None:
    """Set the number of CPU threads and configure the memory allocator; call it before the first matrix product.

    By default oneDNN keeps a compiled kernel for each shape of a bfloat16 product, up to thousands of them: batches of
    ever new shapes then take gigabytes.
    """
    torch.set_num_threads(threads)
    environment.limit_kernel_caches(KERNELS_KEPT)
    keep_freed_memory()


@contextmanager
def products_by(threads: int) -> Iterator[None]:
    """In this thread, divide operations among so many threads for a while."""
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        yield
    finally:
        torch.set_num_threads(before)


CLEARLY_FASTER = 1.2
"""Minimum speedup of several threads over one to use them."""
SHORT = 1e-4
"""Seconds of a product that is too short to be divided: one thread that comes late costs more than is gained."""


def faster_threads(model: torch.nn.Module, available: int, rows: int = 32, seconds: float = 0.02) -> int:
    """Number of CPU threads for decoding with a model: `available` if they are clearly faster than one, else one.

    One for a small model, whatever the times.

    Measured for about `seconds` with products of `rows` vectors and the model's median matrix.
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
            features @ weight.T  # the first product wakes the threads
            begin = time.perf_counter()
            features @ weight.T
            fastest[threads] = min(fastest[threads], time.perf_counter() - begin)
    return available if fastest[1] > max(SHORT, CLEARLY_FASTER * fastest[available]) else 1


def arithmetic(device: torch.device) -> dict[str, str]:
    """Properties of software and hardware that the last bits of results depend on.

    On a CPU, equal properties give bit-identical training. On a GPU, the order of sums varies.
    """
    processes = environment.distributed().world_size
    facts = {"torch": torch.__version__, "threads": str(torch.get_num_threads()), "processes": str(processes)}
    if device.type == "cuda":
        return facts | {"device": torch.cuda.get_device_name(device)}
    return facts | {"device": device.type, "instructions": torch.backends.cpu.get_cpu_capability()}


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an error means that memory ran out; for PyTorch's CPU allocator, only the message shows it."""
    if isinstance(error, MemoryError | torch.cuda.OutOfMemoryError):
        return True
    return isinstance(error, RuntimeError) and "DefaultCPUAllocator" in str(error)


def matmul_rates(dtypes: Sequence[torch.dtype], device: torch.device, size: int) -> list[float]:
    """Floating-point operations per second of a square matrix product in each type: the fastest of 20 products.

    The types alternate, so that other work on the machine affects all of them.
    """
    dice = torch.Generator(device).manual_seed(0)  # preserves the caller's random state
    matrices = [torch.randn(size, size, generator=dice, device=device).to(dtype) for dtype in dtypes]
    fastest = [float("inf")] * len(dtypes)
    for _ in range(20):
        for number, a in enumerate(matrices):
            begin = time.perf_counter()
            a @ a
            synchronise(device)
            fastest[number] = min(fastest[number], time.perf_counter() - begin)
    return [2 * size**3 / seconds for seconds in fastest]


def synchronise(device: torch.device) -> None:
    """Wait until a GPU has finished its work."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def best_precision(device: torch.device) -> tuple[str, float]:
    """("bfloat16" or "float32", speedup of bfloat16): bfloat16 if it is at least a third faster.

    On a CPU small matrices are measured first: one that emulates bfloat16 needs seconds for large ones. A GPU is busy
    only with large ones.
    """
    gain = _gain_of_bfloat16(device, size=128 if device.type == "cpu" else 4096)
    if gain > 1 / 2 and device.type == "cpu":
        gain = _gain_of_bfloat16(device, size=512)
    return ("bfloat16" if gain > 4 / 3 else "float32"), gain


def _gain_of_bfloat16(device: torch.device, size: int) -> float:
    bfloat16_rate, float32_rate = matmul_rates((torch.bfloat16, torch.float32), device, size)
    return bfloat16_rate / float32_rate
