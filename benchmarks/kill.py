"""Kill test: trainings that are killed at random moments and resumed must equal uninterrupted ones.

    python benchmarks/kill.py --kills 100
    python benchmarks/kill.py --kills 20 --ranks 2

Small trainings on the built-in corpus (translators, and a language model that carries its state) with randomly drawn
settings are killed outright (SIGKILL) at random moments, some of them while a checkpoint is being written, and resumed
until they end. Each is compared bit for bit with the same training that was never killed: every checkpoint left by a
kill, every logged loss and score, and the final weights. Nothing half-written may remain. With several ranks, one is
killed, and the others must end by themselves with one sentence. Prints the measurements; exits with 0 only if
every comparison held.

This process imports everything and computes nothing. It forks the processes that train, so that a kill costs tenths of
a second.
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
import socket
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
from same_training import BrokenError, Seen, compare_checkpoint, compare_end, is_behind, unfinished

from heed.cli.launch import supervise
from heed.core.config import Document
from heed.core.environment import variables_of_rank
from heed.core.errors import HeedError
from heed.core.files import is_debris
from heed.execute import execute, follow, resume
from heed.nn.device import set_threads
from heed.planner import Planner, TrainOptions
from heed.text.synthetic import build_corpus, write_corpus
from heed.training.checkpoints import list_checkpoints
from heed.training.ranks import joined

KILLS_OF_ONE = 10
"""Kills per training at most (half as many with several ranks); then the next settings are drawn."""
LOST = "another process of this training was lost"
"""The message of a rank after another one was killed."""
JOINED = "has joined"
MAX_STEPS = 60
BEGIN_SECONDS, SAVE_SECONDS = 0.4, 0.015
"""Approximate seconds that a training takes to start, and to save."""

SMALL: dict[str, Any] = {
    "data.synthetic": True, "tokenizer.vocab_size": 400, "model.d_model": 16,
    "training.max_steps": MAX_STEPS, "training.eval_every": 20,
    "training.log_every": 1, "training.warmup_steps": 10, "training.lr": 5e-3, "training.patience": 0,
    "training.keep_checkpoints": 2,
}  # fmt: skip
PAIRS: dict[str, Any] = {
    "task": "translation", "data.src": "train.en", "data.tgt": "train.de", "data.valid_src": "valid.en",
    "data.valid_tgt": "valid.de", "training.tokens_per_batch": 256,
}  # fmt: skip
MODELS: dict[str, dict[str, Any]] = {
    "transformer": {**PAIRS, "model.d_ff": 32, "model.num_heads": 2, "model.num_encoder_layers": 1,
                    "model.num_decoder_layers": 1, "model.attention_dropout": 0.1},
    "rnn_attention": {**PAIRS, "model.hidden_size": 16, "model.attention_size": 16},
    "rnn": {"task": "language-model", "data.text": "train.de", "data.valid_text": "valid.de",
            "data.text_as": "stream", "tokenizer.kind": "bpe", "tokenizer.dropout": 0.0,
            "model.hidden_size": 16, "training.num_streams": 8, "training.context": 12,
            "training.random_context": True, "training.stop_metric": "perplexity"},
}  # fmt: skip
DRAWN: dict[str, tuple[Any, ...]] = {
    "model.kind": tuple(MODELS), "model.dropout": (0.0, 0.2), "tokenizer.dropout": (0.0, 0.2),
    "training.accumulate": (1, 3), "training.precision": ("float32", "bfloat16"),
    "training.average": ("none", "ema", "last"), "training.save_every": (1, 2, 3, 5),
    "training.loader_workers": (0, 0, 0, 1),
}  # fmt: skip
"""Settings to draw from; the values of a key are equally frequent."""


@dataclass(frozen=True)
class Wanted:
    """Number of kills, seed, and number of ranks that train together."""

    kills: int
    in_a_save: int
    dice: random.Random
    num_ranks: int

    def satisfied(self, seen: Seen) -> bool:
        """Whether there were enough kills of both kinds, and one that left updates to repeat after a checkpoint."""
        return seen.kills >= self.kills and seen.in_a_save >= self.in_a_save and seen.behind > 0


# --- processes ------------------------------------------------------------------------------------------


def start(work: Callable[[], int | None], log: Path) -> int:
    """Fork a process that does the work and exits with its return value; its output goes to the log. Returns its id."""
    sys.stdout.flush()
    pid = os.fork()
    if pid:
        return pid
    try:
        descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        os.dup2(descriptor, 1)
        os.dup2(descriptor, 2)
        os._exit(work() or 0)
    except BaseException:
        traceback.print_exc()
        sys.stderr.flush()
        os._exit(1)


def train(folder: Path, keys: dict[str, Any]) -> int:
    """Start a training, or resume it from its last checkpoint, refusing any damage. Returns its exit code."""
    options = TrainOptions(folder, overwrite=True, device="cpu", quiet=True)
    set_threads(1)  # such small models gain nothing from more, and threads of several trainings wait for each other
    try:
        with joined(torch.device("cpu")) as ranks:
            print(f"rank {ranks.rank} {JOINED}", flush=True)
            if list_checkpoints(folder / "checkpoints"):
                resume(options, strict=True, ranks=ranks)
            elif ranks.is_first:  # it was killed before its first checkpoint
                execute(Planner(Document(), keys, options).plan(), options, ranks)
            else:
                follow(options, ranks)
    except HeedError as error:
        print(error, flush=True)
        return error.exit_code
    return 0


def train_straight(folder: Path, keys: dict[str, Any], imported: Path) -> int:
    """The training that is never killed, with every checkpoint kept, and the modules that it imported."""
    code = train(folder, {**keys, "training.keep_checkpoints": MAX_STEPS + 1})
    imported.write_text("\n".join(sys.modules), encoding="utf-8")
    return code


@dataclass
class Member:
    """One rank, as the launcher sees it."""

    pid: int
    code: int | None = None

    def poll(self) -> int | None:
        """The exit code, or minus the signal that ended the process; None while it runs."""
        if self.code is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            self.code = os.waitstatus_to_exitcode(status) if pid else None
        return self.code

    def send_signal(self, number: int) -> None:
        """Pass a signal on."""
        os.kill(self.pid, number)

    def kill(self) -> None:
        """Kill the process."""
        os.kill(self.pid, signal.SIGKILL)


@dataclass(frozen=True)
class Training:
    """The processes of one training."""

    pid: int
    """The process that ends when all have ended."""
    members: list[int]
    """The processes that compute, one of which is killed."""
    logs: list[Path]
    """Their logs."""

    def printed(self, member: int) -> str:
        """The output of one of them."""
        return self.logs[member].read_text(encoding="utf-8", errors="replace") if self.logs[member].exists() else ""

    def require_success(self) -> None:
        """Wait for the end. Raises BrokenError if the training failed."""
        if code := os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1]):
            said = "\n".join(self.printed(member)[-3000:] for member in range(len(self.members)))
            raise BrokenError(f"a training ended with {code}:\n{said}")


def begin(work: Callable[[], int], log: Path, num_ranks: int) -> Training:
    """Start the work in one process, or in several ranks under the launcher."""
    logs = [log.with_name(f"{log.name}-{rank}.log") for rank in range(num_ranks)]
    for path in logs:
        path.unlink(missing_ok=True)
    if num_ranks == 1:
        pid = start(work, logs[0])
        return Training(pid, [pid], logs)
    reader, writer = os.pipe()

    def launched() -> int:
        with socket.create_server(("127.0.0.1", 0)) as listener:
            members = [
                Member(start(partial(_as_rank, work, rank, num_ranks, listener), logs[rank]))
                for rank in range(num_ranks)
            ]
        os.write(writer, json.dumps([member.pid for member in members]).encode())
        return supervise(members)

    pid = start(launched, log.with_name(f"{log.name}.log"))
    members = json.loads(os.read(reader, 4096))
    os.close(reader)
    os.close(writer)
    return Training(pid, members, logs)


def _as_rank(work: Callable[[], int], rank: int, num_ranks: int, listener: socket.socket) -> int:
    os.environ.update(variables_of_rank(rank, num_ranks, listener))
    if rank:
        listener.close()  # the first answers
    return work()


def import_the_same(imported: Path) -> None:
    """Import the modules that a training imports late, so that forked processes need not."""
    for name in imported.read_text(encoding="utf-8").split("\n"):
        with suppress(ImportError):
            importlib.import_module(name)


def wait_until(pid: int, reached: Callable[[], bool]) -> bool:
    """Poll until a condition holds. Returns False if the process ends first; its exit code remains available."""
    while not reached():
        if os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT):
            return False
        time.sleep(0.0002)
    return True


class SaveWatch:
    """A condition that becomes true when the n-th save from now begins, detected by the folder being written."""

    def __init__(self, checkpoints: Path, number: int) -> None:
        self.folder, self.number = checkpoints, number
        self.stale = unfinished(checkpoints)
        self.seen: set[Path] = set()

    def __call__(self) -> bool:
        with suppress(FileNotFoundError):
            self.seen |= {path for path in self.folder.iterdir() if is_debris(path)} - self.stale
        return len(self.seen) >= self.number


# --- killing --------------------------------------------------------------------------------------------


def look_after_kill(folder: Path, straight: Path, stale: set[Path], seen: Seen) -> None:
    """Count what this killed process left behind, not an earlier one, and compare its checkpoints."""
    seen.kills += 1
    parents = {path.parent.name for path in unfinished(folder) - stale}
    seen.in_a_save += "checkpoints" in parents
    seen.in_other_files += bool(parents - {"checkpoints"})
    checkpoints = list_checkpoints(folder / "checkpoints")
    seen.before_any_checkpoint += not checkpoints
    seen.behind += is_behind(folder)
    for path in checkpoints:
        compare_checkpoint(path, straight)
        seen.checkpoints += 1


def kill(training: Training, member: int, seen: Seen) -> bool:
    """Kill one process and wait for the end of all. Returns False if the training had already ended."""
    with suppress(ProcessLookupError):
        os.kill(training.members[member], signal.SIGKILL)
    begun = time.perf_counter()
    code = os.waitstatus_to_exitcode(os.waitpid(training.pid, 0)[1])
    if code == 0:
        return False
    if len(training.members) == 1 and code != -signal.SIGKILL:
        raise BrokenError(f"a training ended with {code}:\n{training.printed(0)[-3000:]}")
    seen.slowest_end = max(seen.slowest_end, time.perf_counter() - begun)
    for other in set(range(len(training.members))) - {member}:
        look_at_survivor(training.printed(other), other, seen)
    return True


def look_at_survivor(said: str, rank: int, seen: Seen) -> None:
    """Check the message of a rank whose peer was killed: that it was lost, unless the rank was still waiting to join.

    Nothing that was killed can print an error, so no message may refer to one.
    """
    if LOST in said and "which it printed" not in said and "Traceback" not in said:
        seen.survivors += 1
    elif JOINED in said or "Traceback" in said:
        raise BrokenError(f"rank {rank}, whose neighbour was killed, did not say so:\n{said[-3000:]}")
    else:
        seen.not_joined += 1


def kill_and_go_on(folder: Path, keys: dict[str, Any], straight: Path, wanted: Wanted, seen: Seen) -> None:
    """Kill a training repeatedly, then let it end, and compare."""
    dice, work = wanted.dice, partial(begin, partial(train, folder, keys), folder, wanted.num_ranks)
    newest = list_checkpoints(straight / "checkpoints")[-1]
    seconds = BEGIN_SECONDS + json.loads((newest / "state.json").read_bytes())["seconds"] / 2
    for number in range(KILLS_OF_ONE if wanted.num_ranks == 1 else KILLS_OF_ONE // 2):
        if wanted.satisfied(seen):
            break
        stale, watch = unfinished(folder), SaveWatch(folder / "checkpoints", dice.randint(1, 3))
        training = work()
        if number == 0:
            time.sleep(dice.random() * BEGIN_SECONDS)
        elif number % 2:
            wait_until(training.pid, watch)
            time.sleep(dice.random() * SAVE_SECONDS)
        else:
            time.sleep(dice.random() * seconds)
        if not kill(training, dice.randrange(wanted.num_ranks), seen):
            break
        look_after_kill(folder, straight, stale, seen)
    work().require_success()
    compare_end(folder, straight, SMALL["training.keep_checkpoints"], seen)


def shuffled(values: tuple[Any, ...], dice: random.Random) -> Iterator[Any]:
    """An endless stream of the values, each time in random order."""
    while True:
        yield from dice.sample(values, len(values))


def draw(dice: random.Random) -> Iterator[dict[str, Any]]:
    """An endless stream of settings, as recipe keys."""
    values = {name: shuffled(choices, dice) for name, choices in DRAWN.items()}
    while True:
        drawn = {name: next(endless) for name, endless in values.items()}
        yield {**drawn, **MODELS[drawn["model.kind"]], "seed": dice.randrange(1000)}


def killed_often(folder: Path, wanted: Wanted) -> Seen:
    """Train and kill until there were enough kills of both kinds."""
    seen, settings = Seen(), draw(wanted.dice)
    imported = folder / "imported"
    while not wanted.satisfied(seen):
        number = len(seen.settings)
        if number > 10 + wanted.kills:
            raise BrokenError(
                f"of {seen.kills} kills {seen.in_a_save} met a save, {seen.behind} left updates to repeat"
            )
        drawn = next(settings)
        keys = {**SMALL, **drawn, "data.dir": str(folder / "corpus")}
        straight, killed = (folder / f"{number}-{name}" for name in ("straight", "killed"))
        begin(partial(train_straight, straight, keys, imported), straight, wanted.num_ranks).require_success()
        import_the_same(imported)
        kill_and_go_on(killed, keys, straight, wanted, seen)
        seen.settings.append(", ".join(f"{name} {drawn[name]}" for name in DRAWN))
        for path in (straight, killed):
            shutil.rmtree(path)
    return seen


def report(seen: Seen, seconds: float) -> str:
    """The results as a table."""
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
    if seen.survivors or seen.not_joined:
        rows["ranks that a killed one left alone, and that said so in one sentence and ended"] = seen.survivors
        rows["... that were still waiting to join, and were ended by the launcher"] = seen.not_joined
        rows["seconds from a kill to the end of all ranks, at most"] = math.ceil(seen.slowest_end)
    lines = ["| seen | number |", "| --- | ---: |", *(f"| {name} | {number:,} |" for name, number in rows.items())]
    return "\n".join([*lines, "", "Settings:", *(f"- {described}" for described in seen.settings)])


def main() -> None:
    """Kill, compare, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=100, help="SIGKILLs altogether, at least (default 100)")
    parser.add_argument(
        "--during-save", type=int, help="of them during a save, at least (default: a quarter; a tenth of several ranks)"
    )
    parser.add_argument("--ranks", type=int, default=1, help="processes that train together, of which one is killed")
    parser.add_argument("--seed", type=int, default=1, help="of settings and moments (default 1)")
    given = parser.parse_args()
    share = 4 if given.ranks == 1 else 10  # only the first rank saves
    in_saves = math.ceil(given.kills / share) if given.during_save is None else given.during_save
    begin = time.perf_counter()
    folder = Path(tempfile.mkdtemp(prefix="heed-kill-"))
    write_corpus(folder / "corpus", build_corpus(num_train=400, num_valid=4, num_test=0))
    try:
        seen = killed_often(folder, Wanted(given.kills, in_saves, random.Random(given.seed), given.ranks))
    except BrokenError as broken:
        print(f"BROKEN: {broken}\nEverything is left in {folder}.")
        sys.exit(1)
    print(report(seen, time.perf_counter() - begin))
    shutil.rmtree(folder)


if __name__ == "__main__":
    main()
