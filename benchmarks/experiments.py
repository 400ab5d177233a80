"""Named experiments, trained under one budget and compared on validation data only.

Each experiment is a run of `heed train` in its own process and in a folder named after it. Finished experiments are not
trained again and interrupted ones are resumed, so a table can be made in slices of time. Runs are compared on the
validation lines that each keeps in its folder. No other file is read, so no test set is touched.
"""

from __future__ import annotations

import argparse
import shlex
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from heed.api import load
from heed.core.environment import num_cpus, processor_name
from heed.core.errors import UsageError
from heed.data.validation import read_valid
from heed.evaluation.evaluation import Evaluation
from heed.evaluation.outputs import System, evaluate_outputs, translated, translated_by_ensemble
from heed.evaluation.test_set import HeldOut
from heed.metrics.significance import Comparison
from heed.nn.device import set_threads
from heed.run import Run
from heed.training.checkpoints import list_checkpoints
from heed.training.metrics_log import read_metrics

Flags = Sequence[str]
"""Arguments of `heed train`."""


@dataclass(frozen=True)
class Experiment:
    """A named experiment and the flags that it changes."""

    name: str
    flags: Flags


@dataclass(frozen=True)
class Budget:
    """The budget of each experiment; early stopping is off, so that all of them use it up."""

    minutes: float
    updates: int

    @property
    def flags(self) -> Flags:
        """As `heed train` takes it."""
        limit = [f"--training.max_steps={self.updates}"] if self.updates else []
        return [*limit, f"--training.max_minutes={self.minutes:g}", "--training.patience=0"]


def add_arguments(parser: argparse.ArgumentParser, out: str) -> None:
    """The arguments that all tables of experiments share."""
    parser.add_argument("--out", type=Path, default=Path(out), help=f"folder of the runs (default {out})")
    parser.add_argument("--minutes", type=float, default=0.0, help="minutes of training for each experiment")
    parser.add_argument("--updates", type=int, default=0, help="updates for each experiment")
    parser.add_argument("--threads", type=int, default=num_cpus(), help="CPU threads (default: all cores)")
    parser.add_argument("--only", default="", help="comma-separated names; NAME+NAME applies both")
    parser.add_argument("--table", action="store_true", help="train nothing, compare the finished runs")
    parser.add_argument("train", nargs="*", metavar="-- FLAGS", help="data and other arguments for `heed train`")


def budget_of(given: argparse.Namespace) -> Budget:
    """The budget given on the command line."""
    if not given.table and not (given.minutes or given.updates):
        sys.exit("error: give the budget of each experiment: --minutes M or --updates N.")
    if not given.table and not given.train:
        sys.exit("error: after --, give the training data: -- --src F --tgt F, or a recipe.")
    return Budget(given.minutes, given.updates)


def chosen(table: Mapping[str, Flags], only: str, always: str, own: Sequence[str] = ()) -> list[Experiment]:
    """The requested experiments and the user's own, after the one that the others are compared with."""
    names = [name.strip() for name in only.split(",") if name.strip()]
    names = [*names, *own] if names else list(table)
    parts = {name: name.split("+") for name in dict.fromkeys([always, *names])}
    if unknown := sorted({part for of_one in parts.values() for part in of_one} - {*table}):
        sys.exit(f"error: no experiment is called {', '.join(unknown)}. There are: {', '.join(table)}.")
    return [Experiment(name, [flag for part in of_one for flag in table[part]]) for name, of_one in parts.items()]


def require_comparable(experiments: Sequence[Experiment], flags: Flags) -> None:
    """Refuse two seeds without validation files: the seed draws the held-out lines, so the runs differ in them."""
    has_files = any(word.startswith(("--valid", "--data.valid")) for word in flags) or not flags[0].startswith("-")
    seeds = [it.name for it in experiments if any(flag.startswith("--seed") for flag in it.flags)]
    if seeds and not has_files:
        sys.exit(f"error: {', '.join(seeds)} would hold out other lines than the first: pass validation files.")


def train(experiments: Sequence[Experiment], out: Path, threads: int, flags: Flags) -> None:
    """Train the unfinished experiments one after the other; all share `flags`. A signal ends this process too."""
    for number, experiment in enumerate(experiments, start=1):
        folder = out / folder_name(experiment.name)
        _require_same(folder, shlex.join([*flags, *experiment.flags]))
        if has_ended(folder):
            continue
        words = ["--resume", str(folder)] if list_checkpoints(folder / "checkpoints") else [
            *flags, *experiment.flags, "--out", str(folder), "--overwrite",
        ]  # fmt: skip
        command = [sys.executable, "-m", "heed", "train", *words, "--threads", str(threads)]
        told = shlex.join(["heed", *command[3:]])
        print(f"[{number} of {len(experiments)}] {experiment.name}: {told}", file=sys.stderr, flush=True)
        code = _run(command)
        if code and (code < 0 or code > 128):
            sys.exit(f"error: {experiment.name} ended with {code}. The same command again resumes it.")
        if code and number == 1:
            sys.exit(f"error: {experiment.name} ended with {code}, and the others need it.")
        if code:
            told = f"error: {experiment.name} ended with {code} and has no row"
            print(f"{told}; the same command again retries it.", file=sys.stderr, flush=True)


def _require_same(folder: Path, said: str) -> None:
    """Refuse an existing run that was made with other flags or another budget."""
    note = folder.with_name(f"{folder.name}.flags")
    if folder.is_dir() and not note.exists():
        sys.exit(f"error: {folder} was not made by this script, so its flags are unknown: choose another --out.")
    if folder.is_dir() and note.read_text(encoding="utf-8") != said:
        sys.exit(f"error: {folder} was made with other flags ({note}): remove it, or choose another --out.")
    note.parent.mkdir(parents=True, exist_ok=True)
    note.write_text(said, encoding="utf-8")


def _run(command: Sequence[str]) -> int:
    """Run a command. An interrupt reaches the training too, which saves before it ends; SIGTERM is passed on."""
    with subprocess.Popen(command) as process:
        before = signal.signal(signal.SIGTERM, lambda number, _: process.send_signal(number))
        try:
            while True:
                try:
                    return process.wait()
                except KeyboardInterrupt:
                    continue
        finally:
            signal.signal(signal.SIGTERM, before)


def folder_name(name: str) -> str:
    """A name such as `vocabulary 2,000` as the name of a folder."""
    return "".join(char if char.isalnum() or char in "+.-" else "-" for char in name)


def has_ended(folder: Path) -> bool:
    """Whether a training ended by itself."""
    ends = [event for event in read_metrics(folder) if event["event"] == "end"] if folder.is_dir() else []
    return bool(ends) and not str(ends[-1]["reason"]).startswith("stopped by")


@dataclass(frozen=True)
class Row:
    """One experiment's row of the table."""

    name: str
    flags: Flags
    evaluation: Evaluation
    updates: int | None
    minutes: float | None


def compare(
    experiments: Sequence[Experiment], out: Path, threads: int, num_common: int = 50_000,
    ensembles: Sequence[Sequence[str]] = (),
) -> list[Row]:  # fmt: skip
    """Finished runs, scored on their common validation lines and tested against the first.

    `ensembles`: names of experiments whose runs together make one more row.
    """
    ended = [experiment for experiment in experiments if has_ended(out / folder_name(experiment.name))]
    if not ended:
        sys.exit("error: no experiment has finished yet.")
    set_threads(threads)
    runs = {it.name: load(out / folder_name(it.name)).run.predictor.of_validation() for it in ended}
    first = runs[ended[0].name]
    test = _common_validation(runs)
    systems = [_named(name, translated(run, test, run.recipe.decoding, quiet=True)) for name, run in runs.items()]
    for names in ensembles:
        if missing := {*names} - runs.keys():
            print(f"no ensemble of {', '.join(names)}: {', '.join(missing)} has not finished", file=sys.stderr)
            continue
        try:
            joint = translated_by_ensemble([runs[name] for name in names], test, first.recipe.decoding, quiet=True)
        except UsageError as error:
            print(f"no ensemble of {', '.join(names)}: {error}", file=sys.stderr)
            continue
        systems.append(_named(f"ensemble of {', '.join(names)}", joint))
    how: dict[str, Any] = {"tokenised": first.recipe.data.tokenised, "num_common": num_common}
    found = evaluate_outputs(test, systems, first.predictor.languages[1] or None, **how)
    flags = {it.name: it.flags for it in ended}
    return [Row(it.system, flags.get(it.system, ()), it, *_spent(runs.get(it.system))) for it in found]


def _common_validation(runs: Mapping[str, Run]) -> HeldOut:
    lines = {name: read_valid(run.folder) for name, run in runs.items()}
    first = next(iter(lines.values()))
    if others := [name for name, rows in lines.items() if rows != first]:
        sys.exit(f"error: {', '.join(others)} validated on other lines than the first: pass validation files.")
    return HeldOut(("validation source", "validation target"), first)


def _named(name: str, system: System) -> System:
    return System(name, system.outputs, system.run, system.options)


def _spent(run: Run | None) -> tuple[int | None, float | None]:
    return spent(run.folder) if run is not None else (None, None)


def spent(folder: Path) -> tuple[int | None, float | None]:
    """Updates and minutes of a training."""
    events = read_metrics(folder)
    if not events:
        return None, None
    return int(events[-1]["step"]), max(event.get("seconds", 0.0) for event in events) / 60


def machine_line(threads: int) -> str:
    """A description of the machine."""
    return f"{threads} threads of {num_cpus()} CPU cores ({processor_name()})"


def cells(row: Row, metric: str) -> list[str]:
    """A score with its interval, and its difference to the first row with its p-value.

    The test is a paired bootstrap; with fewer than 20 lines, approximate randomisation.
    """
    return [row.evaluation.scores[metric].numbers, _difference(row.evaluation.against_first.get(metric))]


def _difference(comparison: Comparison | None) -> str:
    if comparison is None:
        return ""
    p = comparison.p_randomisation if comparison.p_bootstrap is None else comparison.p_bootstrap
    return f"{comparison.difference:+.2f} (p {p:.2g})"


def markdown(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table."""
    marks = ["---", *["---:"] * (len(heads) - 1)]
    return "\n".join("| " + " | ".join(row) + " |" for row in [heads, marks, *rows])
