"""Several models that differ in their seed, trained at once on this machine (`heed train --seeds`), for an ensemble.

Each is a training of its own with a share of the processors, in a process and a run folder of its own. Two trainings
use two cores better than two threads of one.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import IO

from heed.cli.launch import supervise
from heed.core.environment import distributed, num_cpus
from heed.core.errors import UsageError
from heed.core.progress import message


def check_seeds(
    resumed: Path | None, out: Path | None, recipe: Path | None, keys: Iterable[str], num_processes: int
) -> None:
    """Raise UsageError for several seeds that cannot be trained at once, or that would not become an ensemble."""
    if num_processes > 1 or distributed().world_size > 1:
        raise UsageError("--seeds trains each model in a process of its own: leave out --nproc and torchrun.")
    if resumed is not None:
        return
    if out is None:
        raise UsageError("--seeds needs --out: name the folder of the runs, such as --out runs/en-de.")
    from heed.core.config import read_toml

    data = read_toml(recipe).values.get("data") if recipe else None
    own = [f"data.{key}" for key in data] if isinstance(data, dict) else []
    if not any(key.startswith("data.valid_") for key in (*keys, *own)):
        raise UsageError(
            "--seeds needs validation data, such as --valid-src F --valid-tgt F. Without it, each seed would hold out "
            "other rows, and train on those that the others hold out."
        )


def train_seeds(
    number: int, first: int, folder: Path, is_resumed: bool, threads: int, arguments: Sequence[str], quiet: bool
) -> int:
    """Run `heed ARGUMENTS` with `number` seeds from `first` on, and the runs in `folder`; return the first exit code
    that is not 0, or 0. One that fails does not end the others.

    `threads` are those of all together (0: one for each processor).
    """
    common = without(arguments, ("--seeds", "--seed", "--out", "--resume", "--threads"))
    each = max(1, (threads or num_cpus()) // number)
    runs = [folder / f"seed-{seed}" for seed in range(first, first + number)]
    processes = []
    for seed, run in enumerate(runs, start=first):
        place = ["--resume", str(run)] if is_resumed else ["--out", str(run), "--seed", str(seed)]
        command = [sys.executable, "-m", "heed", *common, *place, "--threads", str(each)]
        processes.append(subprocess.Popen(command, stderr=subprocess.PIPE, start_new_session=True))
    with ThreadPoolExecutor(number) as pool:
        for run, process in zip(runs, processes, strict=True):
            assert process.stderr is not None
            pool.submit(_relay, process.stderr, f"{run.name}: ")
        code = supervise(processes, grace=float("inf"))
    if code == 0:
        message(f"runs: {' '.join(map(str, runs))}", quiet)
    return code


def _relay(lines: IO[bytes], prefix: str) -> None:
    """Copy the lines of a process to standard error, each after a prefix."""
    with lines:
        for line in lines:
            sys.stderr.write(prefix + line.decode(errors="replace"))
            sys.stderr.flush()


def without(arguments: Sequence[str], flags: Sequence[str]) -> list[str]:
    """The arguments without the given flags and their values, which are separate words or follow a `=`."""
    kept = []
    rest = iter(arguments)
    for word in rest:
        if word in flags:
            next(rest, None)
        elif not word.startswith(tuple(f"{flag}=" for flag in flags)):
            kept.append(word)
    return kept
