"""Several models that differ in their seed, trained at once on this machine (`heed train --seeds`), for an ensemble.

Each is a training of its own with a share of the processors, in a process and a run folder of its own. Two trainings
use two cores better than two threads of one.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import IO

from heed.cli.launch import STOPPED, supervise
from heed.core.environment import num_cpus
from heed.core.errors import UsageError
from heed.core.progress import BestEffort, message, warn
from heed.core.run_files import RECIPE, resume_command


def new_runs(number: int, folder: Path, recipe: Path | None, keys: Mapping[str, object]) -> list[Path]:
    """The run folders to create: one for each seed, from that of the recipe or the flags on.

    Raises UsageError where each seed would hold out validation data of its own, or for a folder that is a run.
    """
    from heed.core.config import read_toml
    from heed.tasks import TASKS, task_type

    table = read_toml(recipe).values if recipe else {}
    task, seed = (keys.get(name, table.get(name)) for name in ("task", "seed"))
    seed = seed if isinstance(seed, int) else 1  # each training checks its recipe
    data = table.get("data", {}) if isinstance(table.get("data"), dict) else {}
    data |= {key.removeprefix("data."): value for key, value in keys.items() if key.startswith("data.")}
    if task in TASKS and task_type(str(task)).Data.model_construct(**data).holds_out:
        raise UsageError(
            "--seeds needs validation data, such as --valid-src F --valid-tgt F. Without it, each seed would hold out "
            "different rows, and train on those that the others hold out."
        )
    if folder.is_file() or (folder / RECIPE).exists():
        raise UsageError(f"{folder} is a file or a run already. --seeds needs a folder that the runs are created in.")
    return [folder / f"seed-{seed}" for seed in range(seed, seed + number)]


def old_runs(number: int, folder: Path) -> list[Path]:
    """The run folders to continue. Raises UsageError if there are more or fewer."""
    runs = sorted(folder.glob("seed-*"), key=lambda run: (len(run.name), run.name))
    if len(runs) != number:
        raise UsageError(f"--seeds {number} differs from the number of runs (seed-*) in {folder}: {len(runs)}.")
    return runs


def train_seeds(runs: Sequence[Path], is_resumed: bool, threads: int, arguments: Sequence[str], quiet: bool) -> int:
    """Run `heed ARGUMENTS` for each of the run folders, whose names end in their seeds; return the first exit code that
    is not 0, or 0. A training that fails does not end the others.

    `threads` is the number for all seeds together (0: one for each processor).
    """
    verb, *common = without(arguments, ("--seeds", "--seed", "--out", "--resume", "--threads"))
    each = str(max(1, (threads or num_cpus()) // len(runs)))
    processes: list[subprocess.Popen[bytes]] = []
    try:
        for run in runs:
            seed = run.name.removeprefix("seed-")
            own = ["--resume", str(run)] if is_resumed else ["--out", str(run), "--seed", seed]
            command = [sys.executable, "-m", "heed", verb, *own, "--threads", each, *common]
            processes.append(subprocess.Popen(command, stderr=subprocess.PIPE, start_new_session=True))
    except BaseException:
        for process in processes:
            process.terminate()
        raise
    with ThreadPoolExecutor(len(runs)) as pool:
        for run, process in zip(runs, processes, strict=True):
            assert process.stderr is not None
            pool.submit(_relay, process.stderr, f"{run.name}: ")
        code = supervise(processes, grace=float("inf"), names=[run.name for run in runs])
    if code == 0:
        if not is_resumed:
            _warn_about_counts(runs[0], quiet)
        message(f"runs: {' '.join(map(str, runs))}", quiet)
    elif code in STOPPED:
        _say_how_to_continue(runs, is_resumed, arguments, quiet)
    return code


def _say_how_to_continue(runs: Sequence[Path], is_resumed: bool, arguments: Sequence[str], quiet: bool) -> None:
    """Name the command that goes on: nothing is left of a run whose data was still being prepared."""
    from heed.execute import can_continue

    begun = [run for run in runs if can_continue(run)]
    if len(begun) == len(runs):
        message(f"continue all of them with: {resume_command(runs[0].parent)} --seeds {len(runs)}", quiet)
    elif not is_resumed:
        instead = " instead of --overwrite" if "--overwrite" in arguments else ""
        how = "the same command" + (f" with --restartable{instead}" if "--restartable" not in arguments else "")
        message(f"some cannot be continued. To start these, and continue the others, give {how}", quiet)
    elif begun:
        message(f"continue with: {'; '.join(map(resume_command, begun))}", quiet)


def _warn_about_counts(run: Path, quiet: bool) -> None:
    """Warn about models that are estimated from counts, which heed chooses for little data."""
    from heed.models import MODELS
    from heed.run import Run

    if MODELS[Run(run).recipe.model.kind].count_based:
        warn(
            "models that are estimated from counts hardly depend on the seed, and phrases cannot score each other: "
            "choose another model.kind.", quiet,
        )  # fmt: skip


def _relay(lines: IO[bytes], prefix: str) -> None:
    """Copy the lines of a process to standard error, each after a prefix."""
    stream = BestEffort()
    with lines:
        for line in lines:
            stream.write(prefix + line.decode(errors="replace"))
            stream.flush()


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
