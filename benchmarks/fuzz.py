"""Fuzzing: the properties of tests/properties.py, with thousands of cases.

Exits with 0 if all of them hold, and with 1 and the smallest failing case otherwise. A case that takes longer than a
minute fails too.
"""

from __future__ import annotations

import argparse
import random
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import wraps
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from command import call
from properties import PROPERTIES, Subjects
from toy import TINY, flags, pairs, write_lines, write_pairs

SECONDS_PER_CASE = 60


@contextmanager
def in_time() -> Iterator[None]:
    """Raise TimeoutError if the work hangs."""

    def stop(*_: object) -> None:
        raise TimeoutError(f"a case took more than {SECONDS_PER_CASE} seconds")

    signal.signal(signal.SIGALRM, stop)
    signal.alarm(SECONDS_PER_CASE)
    try:
        yield
    finally:
        signal.alarm(0)


def limited(check: Callable[..., None]) -> Callable[..., None]:
    """The same check with a time limit."""

    @wraps(check)
    def work(*arguments: object, **case: object) -> None:
        with in_time():
            check(*arguments, **case)

    return work


def make_subjects(folder: Path) -> Subjects:
    """Create a tiny translator, a counting language model and a test set in the folder where the commands run."""
    src, tgt = write_pairs(folder)
    text = write_lines(folder / "text", [source for source, _ in pairs(300)])
    made = [
        call("train", "--task", "translation", "--src", src, "--tgt", tgt, "--out", folder / "translator", "--quiet",
             *flags({**TINY, "training.max_steps": 30})),
        call("train", "--text", text, "--model.kind=bigram", "--out", folder / "bigram", "--quiet"),
    ]  # fmt: skip
    for result in made:
        if result.code:
            raise SystemExit(result.err)
    work = folder / "work"
    work.mkdir()
    write_pairs(work, "test", 40, seed=1)
    (work / "test.csv").write_text("".join(f"{source};{target}\n" for source, target in pairs(20)), encoding="utf-8")
    return Subjects(work, folder / "translator", folder / "bigram")


def main() -> int:
    """Check every property and print a row for each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=10_000, help="of all properties together")
    parser.add_argument("--seed", type=int, default=None, help="the same seed gives the same cases (default: random)")
    arguments = parser.parse_args()
    seed = arguments.seed if arguments.seed is not None else random.SystemRandom().randrange(1 << 30)
    folder = Path(tempfile.mkdtemp(prefix="heed-fuzz-"))
    num_broken = total = 0
    try:
        subjects = make_subjects(folder)
        print(f"seed {seed}\n\n| property | cases | seconds | |\n| --- | ---: | ---: | --- |")
        for name, found in PROPERTIES.items():
            begin, verdict, tried = time.monotonic(), "held", 0
            try:
                cases = max(1, arguments.cases * found.share // 100)
                tried = replace(found, check=limited(found.check)).hold(subjects, cases, seed)
            except Exception:
                verdict, num_broken = "BROKEN", num_broken + 1
                traceback.print_exc()
            total += tried
            print(f"| {name} | {tried:,} | {time.monotonic() - begin:.1f} | {verdict} |", flush=True)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    print(f"\n{total:,} cases, {num_broken} properties broken")
    return 1 if num_broken else 0


if __name__ == "__main__":
    sys.exit(main())
