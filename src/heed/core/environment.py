"""The machine's resources and the environment variables.

No other module reads the environment; all are given what they need. The limits of a container (control groups,
version 1 and 2) count as the machine's.
"""

from __future__ import annotations

import math
import os
import platform
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import TextIO

from heed.core.errors import UsageError

_ROOT = Path("/")

SPINS = 20_000
"""How often a waiting OpenMP thread checks for work before it sleeps: about 140 cycles each on recent processors."""


def data_dir() -> Path | None:
    """The folder that the data paths of a recipe are relative to: HEED_DATA; None when it is not set."""
    value = os.environ.get("HEED_DATA")
    return Path(value) if value else None


LISTENER = "HEED_LISTENER"
"""Variable that only `heed train --nproc` sets."""


@dataclass(frozen=True)
class Distributed:
    """The place of this process among those that train together, as `torchrun` sets it."""

    rank: int = 0
    world_size: int = 1
    local_rank: int = 0
    local_world_size: int = 1
    """Number of them on this machine."""
    host: str = "127.0.0.1"
    """Where the first can be reached."""


def distributed() -> Distributed:
    """Read the variables of `torchrun`; without them there is one process. Raises UsageError for invalid values."""
    rank, world_size, local_rank = _integer("RANK", 0), _integer("WORLD_SIZE", 1), _integer("LOCAL_RANK", 0)
    if not 0 <= rank < world_size:
        raise UsageError(f"RANK must be from 0 to WORLD_SIZE - 1, got RANK={rank} and WORLD_SIZE={world_size}.")
    host = os.environ.get("MASTER_ADDR") or "127.0.0.1"
    return Distributed(rank, world_size, local_rank, max(1, _integer("LOCAL_WORLD_SIZE", 1)), host)


def take_listener() -> int | None:
    """Take over the inherited socket on which this process answers the other ranks; None if it has none."""
    descriptor = os.environ.pop(LISTENER, None)
    return None if descriptor is None else int(descriptor)


def variables_of_rank(rank: int, world_size: int, listener: socket.socket) -> dict[str, str]:
    """Environment of one of several training processes on this machine, with the variables that `torchrun` would set.

    Rank 0 inherits the socket `listener` and answers on it.
    """
    _, port = listener.getsockname()
    return {
        **os.environ,
        "RANK": str(rank),
        "LOCAL_RANK": str(rank),
        "WORLD_SIZE": str(world_size),
        "LOCAL_WORLD_SIZE": str(world_size),
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
        **({LISTENER: str(listener.fileno())} if rank == 0 else {}),
    }


def _integer(name: str, default: int) -> int:
    text = os.environ.get(name) or str(default)
    if not text.isascii() or not text.isdigit():
        raise UsageError(f"the variable {name} must be a whole number, got {text!r}. Unset it, or start with torchrun.")
    return int(text)


def is_terminal(stream: TextIO) -> bool:
    """Whether a stream is a terminal on which a line can be redrawn."""
    return stream.isatty() and os.environ.get("TERM") != "dumb"


def colour_allowed(stream: TextIO) -> bool:
    """Whether to write colours to a stream: it is a terminal, and NO_COLOR is not set."""
    return is_terminal(stream) and not os.environ.get("NO_COLOR")


def guide(name: str) -> str:
    """The path of a page of the documentation, such as "more-data.md": in the checkout, or where heed is installed."""
    in_checkout = Path(__file__).parents[3] / "docs" / name
    return f"docs/{name}" if in_checkout.is_file() else str(Path(sys.prefix) / "share" / "doc" / "heed" / name)


def library_versions() -> dict[str, str]:
    """The versions of heed, Python and torch, read without importing torch."""
    versions = {"heed": "not installed", "python": platform.python_version(), "torch": "not installed"}
    for name in ("heed", "torch"):
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return versions


def limit_kernel_caches(capacity: int) -> None:
    """Set the number of compiled kernels that oneDNN, and PyTorch's layer over it, keep, unless the user has set it.

    They are read when the first kernel is compiled.
    """
    os.environ.setdefault("ONEDNN_PRIMITIVE_CACHE_CAPACITY", str(capacity))
    os.environ.setdefault("LRU_CACHE_CAPACITY", str(capacity))


def keep_ray_private(is_local: bool) -> None:
    """Keep Ray from reporting its use, and a local cluster from other networks than loopback.

    The second variable also allows clusters on other systems, hence its name; Ray reads both when it is imported.
    """
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    if is_local:
        os.environ["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"


def let_waiting_threads_sleep() -> None:
    """Let OpenMP's threads wait about a millisecond for work before they sleep, unless the user has chosen otherwise.

    GNU's runtime, which comes with PyTorch on Linux, lets them wait far longer. On a busy machine they then occupy the
    processors that the thread they wait for needs (measured in docs/reliability.md). The variable is read when PyTorch
    is imported, so this must be called before.
    """
    if "OMP_WAIT_POLICY" not in os.environ:
        os.environ.setdefault("GOMP_SPINCOUNT", str(SPINS))


def processor_name() -> str:
    """The name of the processor, for display."""
    match = re.search(r"^model name\s*: (.+)$", _read(_ROOT / "proc/cpuinfo"), re.MULTILINE)
    return match[1].strip() if match else platform.processor() or platform.machine()


def num_cpus() -> int:
    """Number of processors this process may use: its affinity, and the quota of its container rounded up."""
    num = len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1
    return max(1, math.ceil(min(num, _cpu_quota())))


def num_threads() -> int:
    """Default number of compute threads: this process's share of the processors."""
    return max(1, num_cpus() // distributed().local_world_size)


def memory_bytes() -> int:
    """Memory of the machine or of the container, whichever is less."""
    return int(min(_meminfo().get("MemTotal", _physical_memory()), *(limit for limit, _ in _memory_limits()), math.inf))


def available_memory_bytes() -> int:
    """Memory that could be allocated now without swapping; the system's file cache counts as free."""
    free = _meminfo().get("MemAvailable")
    if free is None:
        free = _vm_stat_available() or _physical_memory() // 2
    return int(max(0, min(free, *(room for _, room in _memory_limits()), math.inf)))


def _physical_memory() -> int:
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def _meminfo() -> dict[str, int]:
    """/proc/meminfo in bytes; empty if it does not exist (macOS)."""
    rows = re.findall(r"^(\w+):\s+(\d+) kB", _read(_ROOT / "proc/meminfo"), re.MULTILINE)
    return {name: int(kilobytes) * 1024 for name, kilobytes in rows}


def _vm_stat_available() -> int:
    """Free and reclaimable memory on macOS; 0 where its `vm_stat` is missing."""
    try:
        text = subprocess.run(["vm_stat"], capture_output=True, text=True, check=True, timeout=5).stdout
    except (OSError, subprocess.SubprocessError):
        return 0
    return _parse_vm_stat(text)


def _parse_vm_stat(text: str) -> int:
    size = re.search(r"page size of (\d+) bytes", text)
    pages = re.findall(r"^Pages (?:free|inactive|speculative|purgeable):\s+(\d+)", text, re.MULTILINE)
    return int(size[1]) * sum(map(int, pages)) if size else 0


def _cpu_quota() -> float:
    """Processors that the control groups allow; infinity without a limit."""
    quotas = [math.inf]
    for group in _groups(""):
        match = re.match(r"(\d+) (\d+)", _read(group / "cpu.max"))  # "max 100000" without a limit
        if match:
            quotas.append(int(match[1]) / int(match[2]))
    for group in _groups("cpu"):
        quota, period = _number(group / "cpu.cfs_quota_us"), _number(group / "cpu.cfs_period_us")
        if quota > 0 and math.isfinite(quota) and math.isfinite(period):
            quotas.append(quota / period)
    return min(quotas)


_MEMORY_FILES = (  # for each version: controller, limit, usage, and the part of the usage that is file cache
    ("", "memory.max", "memory.current", "inactive_file"),
    ("memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
)


def _memory_limits() -> Iterator[tuple[float, float]]:
    """The limit of each control group with a memory limit, and the memory left within it, in bytes."""
    for controller, limit_file, usage_file, cache_row in _MEMORY_FILES:
        for group in _groups(controller):
            limit = _number(group / limit_file)
            if limit < 1 << 60:  # version 1 writes a huge number for "no limit"
                usage = _number(group / usage_file)
                cache = re.search(rf"^{cache_row} (\d+)", _read(group / "memory.stat"), re.MULTILINE)
                yield limit, limit - (usage - int(cache[1] if cache else 0) if math.isfinite(usage) else 0)


def _groups(controller: str) -> Iterator[Path]:
    """Folders of this process's control group and of the groups around it, any of which may set a limit.

    `controller` is `cpu` or `memory` for version 1, empty for version 2. Inside a container the path of the group may
    not be visible; then the mount point itself is the container's group.
    """
    for line in _read(_ROOT / "proc/self/cgroup").splitlines():
        _, controllers, path = line.split(":", 2)
        if controller in controllers.split(","):
            mount = _ROOT / "sys/fs/cgroup" / controllers
            if controller and not mount.exists():
                mount = _ROOT / "sys/fs/cgroup" / controller
            group = mount / path.strip("/")
            yield from (place for place in (group, *group.parents) if place.is_relative_to(mount))


def _number(path: Path) -> float:
    """The number in a file; infinity without one."""
    text = _read(path).strip()
    return int(text) if re.fullmatch(r"-?\d+", text) else math.inf


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
