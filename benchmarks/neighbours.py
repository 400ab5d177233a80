"""Speed of trainings, translating and serving while other programs use the same processors.

    python benchmarks/neighbours.py --seconds 25 -- --src train.en --tgt train.de --valid-src val.en --valid-tgt val.de
    python benchmarks/neighbours.py --run RUN --seconds 5 --repeat 5

The first form runs one training alone and two at once, each with all processors, in turns, with heed's spin count for
OpenMP's threads (`heed.core.environment.SPINS`) and with others. It prints the updates that each made in that time.

The second form translates the run's validation data with each engine, and serves it to 16 clients, alone and beside as
many busy processes as there are processors, in turns. The system divides the processors equally among running threads,
so the fair share of a program with as many threads is half of its speed alone. "Share" is the speed that is left,
relative to half of the speed alone. The row "counting" is a program that never waits. Run nothing else on the
processors.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack, contextmanager
from functools import partial
from itertools import cycle, takewhile
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import peers
from serving import Server, ask, sentences, serving

from heed.cli.options import Compute
from heed.core.environment import SPINS, num_cpus, processor_name

LOOKS = (3_000, SPINS, 300_000)
"""How often a thread spins before it sleeps (GOMP_SPINCOUNT)."""
CLIENTS = 16
LINES = 512
"""Lines that are translated at once."""
Rate = Callable[[float], float]
"""Measures for the given seconds how much is done in one."""


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=25, help="of each measurement")
    parser.add_argument("--repeat", type=int, default=2)
    parser.add_argument("--run", type=Path, help="a translation run: measure translating and serving")
    parser.add_argument("flags", nargs="*", help="arguments of `heed train`")
    given = parser.parse_args()
    if given.run is not None:
        shares(given.run, given.seconds, given.repeat)
        return
    for turn in range(given.repeat):
        for spins in LOOKS:
            alone = updates(1, spins, given.seconds, given.flags)
            both = updates(2, spins, given.seconds, given.flags)
            print(
                f"turn {turn + 1}, {spins:,} looks: alone {alone[0]} updates, two at once {both[0]} and {both[1]}",
                flush=True,
            )


def updates(num: int, spins: int, seconds: float, flags: list[str]) -> list[int]:
    """Updates that each of `num` simultaneous trainings made in the given seconds."""
    with tempfile.TemporaryDirectory() as folder:
        runs = [Path(folder) / str(index) for index in range(num)]
        limits = [f"--training.max_minutes={seconds / 60}", "--training.log_every=1", "--training.eval_every=1000000"]
        command = [sys.executable, "-m", "heed", "train", "--task", "translation", "--quiet", *limits, *flags, "--out"]
        env = {**os.environ, "GOMP_SPINCOUNT": str(spins)}
        started = [subprocess.Popen([*command, str(run)], env=env, stderr=subprocess.DEVNULL) for run in runs]
        for process in started:
            process.wait()
        return [_last_update(run / "metrics.jsonl") for run in runs]


def _last_update(metrics: Path) -> int:
    return max(json.loads(line).get("step", 0) for line in metrics.read_text().splitlines())


# --- translating and serving ----------------------------------------------------------------------------


def shares(run: Path, seconds: float, repeat: int) -> None:
    """Measure each program alone and next to busy ones, and print a table."""
    texts = sentences(run)
    with ExitStack() as stack:
        pools = [stack.enter_context(_pool(1)) for _ in ("auto", "torch")]
        rates: dict[str, Rate] = {"counting": partial(_all, stack.enter_context(_pool(num_cpus())), num_cpus(), _count)}
        for pool, engine in zip(pools, ("auto", "torch"), strict=True):
            pool.submit(_open, run, engine).result()
            rates[f"translating, --engine {engine}"] = partial(_all, pool, 1, _translate, texts)
        server = stack.enter_context(serving(run, num_cpus()))
        rates[f"serving {CLIENTS} clients"] = partial(_serve, server, texts)
        alone: dict[str, list[float]] = {name: [] for name in rates}
        beside: dict[str, list[float]] = {name: [] for name in rates}
        for rate in rates.values():
            rate(1.0)  # warm-up
        for _ in range(repeat):
            for name, rate in rates.items():
                alone[name].append(rate(seconds))
                with busy(num_cpus()):
                    beside[name].append(rate(seconds))
    rows = []
    for name in rates:
        found = [2 * b / a for a, b in zip(alone[name], beside[name], strict=True)]
        rows.append([
            name, f"{statistics.median(alone[name]):,.0f}", f"{statistics.median(beside[name]):,.0f}",
            f"{statistics.median(found):.2f} ({min(found):.2f} to {max(found):.2f})",
        ])  # fmt: skip
    print(f"{processor_name()}, {num_cpus()} cores, {repeat} turns of {seconds:g} s, {num_cpus()} busy processes")
    print(peers.table(["", "alone, a second", "next to busy processes", "share"], rows))


@contextmanager
def busy(number: int) -> Iterator[None]:
    """Processes that do nothing but use a processor each."""
    started = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(number)]
    try:
        time.sleep(0.5)
        yield
    finally:
        for process in started:
            process.kill()
            process.wait()


def _pool(processes: int) -> ProcessPoolExecutor:
    return ProcessPoolExecutor(processes, get_context("spawn"))


def _all(pool: ProcessPoolExecutor, processes: int, work: Callable[..., float], *given: Any) -> float:
    """The sum of what all processes of a pool do in a second."""
    started = [pool.submit(work, *given) for _ in range(processes)]
    return sum([each.result() for each in started])


def _count(seconds: float) -> float:
    number, end = 0, time.perf_counter() + seconds
    while time.perf_counter() < end:
        number += 1
    return number / seconds


def _open(run: Path, engine: str) -> None:
    """Open the run of this process as the command line does."""
    global _opened
    _opened = Compute().load(run, engine=engine)


def _translate(texts: Sequence[str], seconds: float) -> float:
    done, begin, parts = 0, time.perf_counter(), cycle(range(0, len(texts), LINES))
    while (now := time.perf_counter()) < begin + seconds:
        first = next(parts)
        done += len(_opened.translate(texts[first : first + LINES]))
    return done / (now - begin)


def _serve(server: Server, texts: Sequence[str], seconds: float) -> float:
    begin = time.perf_counter()
    until = takewhile(lambda _: time.perf_counter() < begin + seconds, cycle(texts))
    return len(ask(server, until, CLIENTS).seconds) / (time.perf_counter() - begin)


_opened: Any = None

if __name__ == "__main__":
    main()
