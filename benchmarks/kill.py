"""Does a training that is killed at any moment go on as if nothing had been?

    python benchmarks/kill.py --kills 100

Small trainings on the built-in corpus, their settings drawn at random, are killed outright (SIGKILL) at random moments,
a part of them while a checkpoint is being written, and gone on with until they end. Each is compared with the same
training that ran straight through: every checkpoint that a killed one leaves, every loss and score it logs, and its
last weights, bit for bit; and nothing half-written may be left. Prints what was seen; exits with 0 only when all held.

This process has imported everything and computes nothing; it forks the processes that train, so that a kill costs
tenths of a second.
"""

from __future__ import annotations

import argparse
import importlib
import json
import math
import os
import random
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from heed import api
from heed.core.config import Document
from heed.core.errors import HeedError
from heed.core.files import is_debris
from heed.text.synthetic import build_corpus, write_corpus
from heed.training.checkpoints import FILES, list_checkpoints
from heed.training.manifest import checked_manifest

KILLS_OF_ONE = 10
"""Of one training at most; then the next settings are drawn."""
MAX_STEPS = 60
BEGIN_SECONDS, SAVE_SECONDS = 0.4, 0.015
"""A training takes about so long to begin, and to save."""
TIMES = ("seconds", "tokens_per_second")
"""What differs between two equal trainings."""

SMALL: dict[str, Any] = {
    "task": "translation", "data.src": "train.en", "data.tgt": "train.de", "data.valid_src": "valid.en",
    "data.valid_tgt": "valid.de", "data.synthetic": True, "tokenizer.vocab_size": 400, "model.d_model": 16,
    "training.tokens_per_batch": 256, "training.max_steps": MAX_STEPS, "training.eval_every": 20,
    "training.log_every": 1, "training.warmup_steps": 10, "training.lr": 5e-3, "training.patience": 0,
    "training.keep_checkpoints": 2,
}  # fmt: skip
MODELS: dict[str, dict[str, Any]] = {
    "transformer": {"model.d_ff": 32, "model.num_heads": 2, "model.num_encoder_layers": 1,
                    "model.num_decoder_layers": 1, "model.attention_dropout": 0.1},
    "rnn_attention": {"model.hidden_size": 16, "model.attention_size": 16},
}  # fmt: skip
DRAWN: dict[str, tuple[Any, ...]] = {
    "model.kind": tuple(MODELS), "model.dropout": (0.0, 0.2), "tokenizer.dropout": (0.0, 0.2),
    "training.accumulate": (1, 3), "training.precision": ("float32", "bfloat16"),
    "training.average": ("none", "ema", "last"), "training.save_every": (1, 2, 3, 5),
}  # fmt: skip
"""What is drawn at random, each value as often as the others of its key."""


class BrokenError(Exception):
    """A promise was broken."""


@dataclass
class Seen:
    """What happened, added up."""

    kills: int = 0
    in_a_save: int = 0
    in_other_files: int = 0
    before_any_checkpoint: int = 0
    checkpoints: int = 0
    losses: int = 0
    replayed: int = 0
    validations: int = 0
    settings: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Wanted:
    """How often is killed, and with what luck."""

    kills: int
    in_a_save: int
    dice: random.Random

    def satisfied(self, seen: Seen) -> bool:
        """Whether there were enough kills of both sorts."""
        return seen.kills >= self.kills and seen.in_a_save >= self.in_a_save


# --- processes ------------------------------------------------------------------------------------------


def start(work: Callable[[], object], log: Path) -> int:
    """The number of a new process that does the work and ends with 0; what it prints goes to the log."""
    sys.stdout.flush()
    pid = os.fork()
    if pid:
        return pid
    try:
        descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        os.dup2(descriptor, 1)
        os.dup2(descriptor, 2)
        work()
        os._exit(0)
    except BaseException:
        traceback.print_exc()
        sys.stderr.flush()
        os._exit(1)


def require_success(status: int, log: Path) -> None:
    """Raise BrokenError unless a process has ended with 0."""
    if status != 0:
        raise BrokenError(f"a training ended with {status}:\n{log.read_text(encoding='utf-8')[-3000:]}")


def train(folder: Path, keys: dict[str, Any]) -> None:
    """Begin a training, or go on from its last checkpoint, refusing any damage."""
    options = api.TrainOptions(folder, overwrite=True, device="cpu", threads=1, quiet=True)
    if list_checkpoints(folder / "checkpoints"):
        api.resume(options, strict=True)
    else:  # it was killed before its first checkpoint
        api.execute(api.Planner(Document(), keys, options).plan(), options)


def train_straight(folder: Path, keys: dict[str, Any], imported: Path) -> None:
    """The training that nobody kills, with every checkpoint kept; and what it has imported on its way."""
    train(folder, {**keys, "training.keep_checkpoints": MAX_STEPS + 1})
    imported.write_text("\n".join(sys.modules), encoding="utf-8")


def import_the_same(imported: Path) -> None:
    """Import here what a training imports late, so that none after it has to."""
    for name in imported.read_text(encoding="utf-8").split("\n"):
        with suppress(ImportError):
            importlib.import_module(name)


def wait_until(pid: int, reached: Callable[[], bool]) -> bool:
    """Look again and again until something is reached; False when the process ends, and stays to be asked how."""
    while not reached():
        if os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT):
            return False
        time.sleep(0.0002)
    return True


def unfinished(folder: Path) -> set[Path]:
    """What is in a folder or below it and not whole yet."""
    return {path for path in folder.rglob(".heed-*") if is_debris(path)} if folder.exists() else set()


class SaveWatch:
    """Tells when the n-th save from now begins, by the folder that is being written."""

    def __init__(self, checkpoints: Path, number: int) -> None:
        self.folder, self.number = checkpoints, number
        self.stale = unfinished(checkpoints)
        self.seen: set[Path] = set()

    def __call__(self) -> bool:
        with suppress(FileNotFoundError):
            self.seen |= {path for path in self.folder.iterdir() if is_debris(path)} - self.stale
        return len(self.seen) >= self.number


# --- comparing ------------------------------------------------------------------------------------------


def without_times(value: Any) -> Any:
    """The same without what a clock says."""
    if isinstance(value, dict):
        return {name: without_times(inner) for name, inner in value.items() if name not in TIMES}
    return value


def compare_checkpoint(path: Path, straight: Path) -> None:
    """Whole, and equal bit for bit to the straight run's checkpoint of that update."""
    try:
        checked_manifest(path, FILES)
    except HeedError as error:
        raise BrokenError(f"{path} is damaged: {error}") from error
    other = straight / "checkpoints" / path.name
    for name in FILES:
        one, two = (path / name).read_bytes(), (other / name).read_bytes()
        if name.endswith(".json"):
            one, two = (without_times(json.loads(text)) for text in (one, two))
        if one != two:
            raise BrokenError(f"{path / name} is not what the straight run had")


def events(folder: Path) -> Iterator[tuple[tuple[str, int], Any]]:
    """The lines of the log by kind and update; a kill may have cut one off."""
    for line in (folder / "metrics.jsonl").read_text(encoding="utf-8", errors="replace").split("\n"):
        try:
            event = json.loads(line)
        except json.JSONDecodeError:
            continue
        if event["event"] != "end":
            yield (event["event"], event["step"]), without_times(event)


def compare_log(folder: Path, straight: Path, seen: Seen) -> None:
    """Every line that was written, however often, is the straight run's, and none is missing."""
    expected = dict(events(straight))
    found: set[tuple[str, int]] = set()
    for key, event in events(folder):
        if event != expected.get(key):
            raise BrokenError(f"{folder}: {key} was logged as {event}, the straight run has {expected.get(key)}")
        seen.replayed += key in found and key[0] == "train"
        seen.losses += key[0] == "train"
        seen.validations += key[0] == "validation"
        found.add(key)
    if missing := expected.keys() - found:
        raise BrokenError(f"{folder}: never logged: {sorted(missing)[0]}")


def compare_end(folder: Path, straight: Path, seen: Seen) -> None:
    """The training has ended as the straight one, and left nothing half-written."""
    compare_log(folder, straight, seen)
    if (folder / "model.safetensors").read_bytes() != (straight / "model.safetensors").read_bytes():
        raise BrokenError(f"{folder}: the weights are not those of the straight run")
    checkpoints = list_checkpoints(folder / "checkpoints")
    if checkpoints[-1].name != f"step-{MAX_STEPS:07d}" or len(checkpoints) > SMALL["training.keep_checkpoints"]:
        raise BrokenError(f"{folder} has the checkpoints {[path.name for path in checkpoints]}")
    for path in checkpoints:
        compare_checkpoint(path, straight)
    there = {path.relative_to(folder).parts[0] for path in folder.rglob("*")}
    expected = {path.relative_to(straight).parts[0] for path in straight.rglob("*")}
    if there != expected or unfinished(folder):
        raise BrokenError(f"{folder} holds {sorted(there)}, unfinished: {sorted(map(str, unfinished(folder)))}")


# --- killing --------------------------------------------------------------------------------------------


def look_after_kill(folder: Path, straight: Path, stale: set[Path], seen: Seen) -> None:
    """What the dead process has left, and not one before it: count it, and compare the checkpoints."""
    seen.kills += 1
    parents = {path.parent.name for path in unfinished(folder) - stale}
    seen.in_a_save += "checkpoints" in parents
    seen.in_other_files += bool(parents - {"checkpoints"})
    checkpoints = list_checkpoints(folder / "checkpoints")
    seen.before_any_checkpoint += not checkpoints
    for path in checkpoints:
        compare_checkpoint(path, straight)
        seen.checkpoints += 1


def kill_and_go_on(folder: Path, keys: dict[str, Any], straight: Path, wanted: Wanted, seen: Seen) -> None:
    """Kill a training again and again; let it end at last, and compare."""
    log, dice = folder.with_name(f"{folder.name}.log"), wanted.dice
    newest = list_checkpoints(straight / "checkpoints")[-1]
    seconds = BEGIN_SECONDS + json.loads((newest / "state.json").read_bytes())["seconds"] / 2
    for number in range(KILLS_OF_ONE):
        if wanted.satisfied(seen):
            break
        stale, watch = unfinished(folder), SaveWatch(folder / "checkpoints", dice.randint(1, 3))
        pid = start(partial(train, folder, keys), log)
        if number == 0:
            time.sleep(dice.random() * BEGIN_SECONDS)
        elif number % 2:
            wait_until(pid, watch)
            time.sleep(dice.random() * SAVE_SECONDS)
        else:
            time.sleep(dice.random() * seconds)
        os.kill(pid, signal.SIGKILL)
        status = os.waitpid(pid, 0)[1]
        if not os.WIFSIGNALED(status):
            require_success(status, log)
            break
        look_after_kill(folder, straight, stale, seen)
    require_success(os.waitpid(start(partial(train, folder, keys), log), 0)[1], log)
    compare_end(folder, straight, seen)


def shuffled(values: tuple[Any, ...], dice: random.Random) -> Iterator[Any]:
    """The values in random order, and again, without end."""
    while True:
        yield from dice.sample(values, len(values))


def draw(dice: random.Random) -> Iterator[dict[str, Any]]:
    """Settings without end, as recipe keys."""
    values = {name: shuffled(choices, dice) for name, choices in DRAWN.items()}
    while True:
        drawn = {name: next(endless) for name, endless in values.items()}
        yield {**drawn, **MODELS[drawn["model.kind"]], "seed": dice.randrange(1000)}


def killed_often(folder: Path, wanted: Wanted) -> Seen:
    """Train and kill until there were enough kills of both sorts."""
    seen, settings = Seen(), draw(wanted.dice)
    imported = folder / "imported"
    while not wanted.satisfied(seen):
        number = len(seen.settings)
        if number > 10 + wanted.kills:
            raise BrokenError(f"only {seen.in_a_save} of {seen.kills} kills met a save")
        drawn = next(settings)
        keys = {**SMALL, **drawn, "data.dir": str(folder / "corpus")}
        straight, killed, log = (folder / f"{number}-{name}" for name in ("straight", "killed", "straight.log"))
        pid = start(partial(train_straight, straight, keys, imported), log)
        require_success(os.waitpid(pid, 0)[1], log)
        import_the_same(imported)
        kill_and_go_on(killed, keys, straight, wanted, seen)
        seen.settings.append(", ".join(f"{name} {drawn[name]}" for name in DRAWN))
        for path in (straight, killed):
            shutil.rmtree(path)
    return seen


def report(seen: Seen, seconds: float) -> str:
    """The table."""
    rows = {
        "kills": seen.kills,
        "... during a save, leaving a half-written or half-removed checkpoint": seen.in_a_save,
        "... that left another half-written file": seen.in_other_files,
        "... before the first checkpoint": seen.before_any_checkpoint,
        "checkpoints left by kills, equal to the straight run's bit for bit": seen.checkpoints,
        "logged losses, equal to the straight run's": seen.losses,
        "... of which written again after a kill": seen.replayed,
        "validations, equal to the straight run's": seen.validations,
        "trainings, final weights equal to the straight run's bit for bit": len(seen.settings),
        "seconds": round(seconds),
    }
    lines = ["| seen | number |", "| --- | ---: |", *(f"| {name} | {number:,} |" for name, number in rows.items())]
    return "\n".join([*lines, "", "Settings:", *(f"- {described}" for described in seen.settings)])


def main() -> None:
    """Kill, compare, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=100, help="SIGKILLs altogether, at least (default 100)")
    parser.add_argument("--during-save", type=int, help="of them during a save, at least (default: a quarter)")
    parser.add_argument("--seed", type=int, default=1, help="of settings and moments (default 1)")
    given = parser.parse_args()
    in_saves = math.ceil(given.kills / 4) if given.during_save is None else given.during_save
    begin = time.perf_counter()
    folder = Path(tempfile.mkdtemp(prefix="heed-kill-"))
    write_corpus(folder / "corpus", build_corpus(num_train=400, num_valid=4, num_test=0))
    try:
        seen = killed_often(folder, Wanted(given.kills, in_saves, random.Random(given.seed)))
    except BrokenError as broken:
        print(f"BROKEN: {broken}\nEverything is left in {folder}.")
        sys.exit(1)
    print(report(seen, time.perf_counter() - begin))
    shutil.rmtree(folder)


if __name__ == "__main__":
    main()
