"""Reading processors, memory and variables."""

from __future__ import annotations

import io
import os
import platform
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

from heed.core import environment
from heed.core.environment import Distributed
from heed.core.errors import UsageError


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine of 16 GB and 8 processors whose files are made up."""
    monkeypatch.setattr(environment, "_ROOT", tmp_path)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)), raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: 8)
    write(tmp_path, "proc/meminfo", "MemTotal:       16000000 kB\nMemFree: 1 kB\nMemAvailable:   12000000 kB\n")
    return tmp_path


def write(root: Path, name: str, text: str) -> None:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def test_without_control_groups_the_machine_sets_the_limits(root: Path) -> None:
    assert environment.num_cpus() == 8
    assert environment.memory_bytes() == 16_000_000 * 1024
    assert environment.available_memory_bytes() == 12_000_000 * 1024


def test_version_2_quotas_of_the_group_and_of_those_around_it_apply(root: Path) -> None:
    write(root, "proc/self/cgroup", "0::/outer/inner\n")
    write(root, "sys/fs/cgroup/outer/inner/cpu.max", "max 100000\n")
    write(root, "sys/fs/cgroup/outer/cpu.max", "250000 100000\n")
    write(root, "sys/fs/cgroup/outer/memory.max", "8000\n")
    write(root, "sys/fs/cgroup/outer/memory.current", "5000\n")
    write(root, "sys/fs/cgroup/outer/memory.stat", "anon 2\ninactive_file 3000\n")
    write(root, "sys/fs/cgroup/outer/inner/memory.max", "max\n")
    assert environment.num_cpus() == 3  # two and a half processors keep three threads busy
    assert environment.memory_bytes() == 8000
    assert environment.available_memory_bytes() == 8000 - (5000 - 3000)


def test_version_1_quotas_apply_and_its_huge_number_means_no_limit(root: Path) -> None:
    write(root, "proc/self/cgroup", "9:name=systemd:/\n4:memory:/job\n3:cpu,cpuacct:/job\n0::/\n")
    write(root, "sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_quota_us", "200000\n")
    write(root, "sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_period_us", "100000\n")
    write(root, "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "-1\n")
    write(root, "sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n")
    write(root, "sys/fs/cgroup/memory/job/memory.limit_in_bytes", "9000\n")
    write(root, "sys/fs/cgroup/memory/job/memory.usage_in_bytes", "1000\n")
    assert environment.num_cpus() == 2
    assert environment.memory_bytes() == 9000
    assert environment.available_memory_bytes() == 8000


def test_a_group_whose_path_is_not_visible_inside_the_container_is_read_at_the_mount_point(root: Path) -> None:
    write(root, "proc/self/cgroup", "3:cpu,cpuacct:/docker/0123\n2:memory:/docker/0123\n")
    write(root, "sys/fs/cgroup/cpu/cpu.cfs_quota_us", "50000\n")
    write(root, "sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n")
    write(root, "sys/fs/cgroup/memory/memory.limit_in_bytes", "7000\n")
    assert environment.num_cpus() == 1
    assert environment.memory_bytes() == 7000


def test_without_meminfo_the_system_calls_are_used(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (root / "proc/meminfo").unlink()
    monkeypatch.setattr(environment, "_vm_stat_available", lambda: 0)
    total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    assert environment.memory_bytes() == total
    assert environment.available_memory_bytes() == total // 2


def test_vm_stat_of_macos_is_understood() -> None:
    text = (
        "Mach Virtual Memory Statistics: (page size of 16384 bytes)\n"
        "Pages free:                               100.\n"
        "Pages active:                             900.\n"
        "Pages inactive:                            20.\n"
        "Pages speculative:                          3.\n"
    )
    assert environment._parse_vm_stat(text) == 123 * 16384
    assert environment._parse_vm_stat("") == 0


def test_this_machine_has_processors_and_memory() -> None:
    assert 1 <= environment.num_cpus() <= (os.cpu_count() or 1)
    assert 0 < environment.available_memory_bytes() <= environment.memory_bytes()


def test_the_data_folder_is_the_variable_s_or_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEED_DATA", "some/folder")
    assert environment.data_dir() == Path("some/folder")
    monkeypatch.setenv("HEED_DATA", "")
    assert environment.data_dir() is None
    monkeypatch.delenv("HEED_DATA")
    assert environment.data_dir() is None


def test_one_process_is_the_default_and_torchrun_s_variables_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK"):
        monkeypatch.delenv(name, raising=False)
    assert environment.distributed() == Distributed(rank=0, world_size=1, local_rank=0)
    monkeypatch.setenv("RANK", "5")
    monkeypatch.setenv("WORLD_SIZE", "8")
    monkeypatch.setenv("LOCAL_RANK", "1")
    assert environment.distributed() == Distributed(rank=5, world_size=8, local_rank=1)


@pytest.mark.parametrize(
    ("rank", "world_size", "message"),
    [
        ("x", "2", "the variable RANK must be a whole number, got 'x'"),
        ("-1", "2", "the variable RANK must be a whole number, got '-1'"),
        ("2", "2", "RANK must be from 0 to WORLD_SIZE - 1, got RANK=2 and WORLD_SIZE=2"),
    ],
)
def test_invalid_values_from_a_launcher_are_refused(
    monkeypatch: pytest.MonkeyPatch, rank: str, world_size: str, message: str
) -> None:
    monkeypatch.setenv("RANK", rank)
    monkeypatch.setenv("WORLD_SIZE", world_size)
    with pytest.raises(UsageError, match=message):
        environment.distributed()


@pytest.mark.parametrize(
    ("stream", "term", "no_color", "terminal", "colour"),
    [
        (io.StringIO(), "xterm", "", False, False),
        (Terminal(), "xterm", "", True, True),
        (Terminal(), "xterm", "1", True, False),
        (Terminal(), "dumb", "", False, False),
    ],
)
def test_colour_needs_a_terminal_and_no_no_color(
    monkeypatch: pytest.MonkeyPatch, stream: io.StringIO, term: str, no_color: str, terminal: bool, colour: bool
) -> None:
    monkeypatch.setenv("TERM", term)
    monkeypatch.setenv("NO_COLOR", no_color)
    assert environment.is_terminal(stream) is terminal
    assert environment.colour_allowed(stream) is colour


def test_versions_are_read_from_the_installed_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    versions = environment.library_versions()
    assert list(versions) == ["heed", "python", "torch"]
    assert versions["python"] == platform.python_version()
    assert versions["torch"] == metadata.version("torch")

    def none_installed(name: str) -> str:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "version", none_installed)
    assert environment.library_versions()["torch"] == "not installed"


def test_the_core_imports_no_heavy_library() -> None:
    program = (
        "import sys; import heed.core.config, heed.core.files, heed.core.environment, heed.core.progress; "
        "heed.core.environment.library_versions(); "
        "print(*{'torch', 'numpy', 'sacrebleu', 'rich', 'tomlkit'} & set(sys.modules))"
    )
    folder = str(Path(environment.__file__).parents[2])
    result = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, env={"PYTHONPATH": folder}
    )
    assert result.stdout.split() == []


@pytest.mark.parametrize(
    ("variables", "spins"),
    [({}, str(environment.SPINS)), ({"GOMP_SPINCOUNT": "7"}, "7"), ({"OMP_WAIT_POLICY": "active"}, None)],
    ids=["nothing", "spins", "policy"],
)
def test_waiting_threads_sleep_soon_unless_the_user_chose_otherwise(
    variables: dict[str, str], spins: str | None
) -> None:
    """In a separate process: the variable must be set before PyTorch is imported, so when `heed` starts."""
    program = (
        "import os, sys, heed.cli.main as m\n"
        "m.command_line = lambda: lambda **_: print(os.environ.get('GOMP_SPINCOUNT'), 'torch' in sys.modules)\n"
        "m.main()\n"
    )
    clean = {name: text for name, text in os.environ.items() if name not in ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY")}
    result = subprocess.run(
        [sys.executable, "-c", program], env={**clean, **variables}, capture_output=True, text=True, check=True
    )
    assert result.stdout.split() == [str(spins), "False"]


def test_a_page_is_found_in_a_checkout_and_where_heed_is_installed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert environment.guide("results.md") == "docs/results.md"
    monkeypatch.setattr(environment, "__file__", str(tmp_path / "lib" / "heed" / "core" / "environment.py"))
    assert environment.guide("results.md") == f"{sys.prefix}/share/doc/heed/results.md"
