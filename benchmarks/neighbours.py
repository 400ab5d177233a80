"""Slowdown of two trainings on the same processors, by OpenMP's spin count.

    python benchmarks/neighbours.py --seconds 25 -- --src train.en --tgt train.de --valid-src val.en --valid-tgt val.de

Runs one training alone and two at once, each with all processors, in turns, with heed's spin count for OpenMP's threads
(`heed.core.environment.SPINS`) and with others. Prints the updates that each made in that time. Run nothing else on the
processors.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from heed.core.environment import SPINS

LOOKS = (3_000, SPINS, 300_000)
"""How often a thread spins before it sleeps (GOMP_SPINCOUNT)."""


def main() -> None:
    """Train, count, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=25)
    parser.add_argument("--repeat", type=int, default=2)
    parser.add_argument("flags", nargs="*", help="arguments of `heed train`")
    given = parser.parse_args()
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


if __name__ == "__main__":
    main()
