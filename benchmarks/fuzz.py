"""Fuzzing: the properties of tests/properties.py with thousands of cases, and the parsers of tests/parsers.py.

    python benchmarks/fuzz.py --cases 10000
    python benchmarks/fuzz.py --cases 0 --seconds 300

Exits with 0 if all properties hold, and with 1 and the smallest failing case otherwise. A case that takes longer than a
minute fails too. Where atheris is installed, each parser of bytes from strangers is then fuzzed for `--seconds`, guided
by the code that an input reaches; the inputs are kept in .fuzz/, for the next time. One that is neither read nor
refused, takes too long, too much memory or too many calls, fails. Mend its cause, and keep it in tests/fixtures/nasty.
"""

from __future__ import annotations

import argparse
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import wraps
from importlib.util import find_spec
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from command import call
from parsers import KEPT, PARSERS, grown, most_calls, parser_of
from properties import PROPERTIES, Subjects
from toy import TINY, flags, pairs, write_lines, write_pairs

SECONDS_PER_CASE = 60
CORPUS = Path(".fuzz")
GUIDED = Path(__file__).with_name("guided.py")


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


def check_properties(cases: int, seed: int) -> int:
    """Check every property and print a row for each. Returns how many are broken."""
    folder = Path(tempfile.mkdtemp(prefix="heed-fuzz-"))
    num_broken = total = 0
    try:
        subjects = make_subjects(folder)
        print(f"seed {seed}\n\n| property | cases | seconds | |\n| --- | ---: | ---: | --- |")
        for name, found in PROPERTIES.items():
            begin, verdict, tried = time.monotonic(), "held", 0
            try:
                some = max(1, cases * found.share // 100)
                tried = replace(found, check=limited(found.check)).hold(subjects, some, seed)
            except Exception:
                verdict, num_broken = "BROKEN", num_broken + 1
                traceback.print_exc()
            total += tried
            print(f"| {name} | {tried:,} | {time.monotonic() - begin:.1f} | {verdict} |", flush=True)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    print(f"\n{total:,} cases, {num_broken} properties broken")
    return num_broken


def fuzz_parsers(seconds: int) -> int:
    """Fuzz every parser, guided by coverage, and print a row for each. Returns how many are broken."""
    if find_spec("atheris") is None:
        print("\natheris is not installed, so no parser is fuzzed with guidance. It needs Linux: pip install atheris")
        return 0
    num_broken = 0
    print(f"\n| parser, {seconds} s each | inputs | kept | |\n| --- | ---: | ---: | --- |")
    for name in PARSERS:
        corpus = seeded(name)
        result = subprocess.run(
            [sys.executable, GUIDED, name, corpus, f"-max_total_time={seconds}"], capture_output=True, text=True,
            errors="replace", check=False,
        )  # fmt: skip
        tried = result.stderr.partition("number_of_executed_units: ")[2].split("\n")[0]
        slow = [path for path in sorted(corpus.iterdir()) if calls_too_often(name, path)]
        print(
            f"| {name} | {tried} | {len([*corpus.iterdir()])} | {'BROKEN' if result.returncode or slow else 'held'} |"
        )
        if result.returncode:
            print(result.stdout[-3000:], result.stderr[-3000:], sep="\n")
        for path in slow:
            print(f"{path}: too many calls")
        num_broken += bool(result.returncode or slow)
    return num_broken


def seeded(name: str) -> Path:
    """The folder with the corpus of a parser, and in it the inputs to begin with."""
    corpus = CORPUS / name.replace(" ", "_")
    corpus.mkdir(parents=True, exist_ok=True)
    for number, sample in enumerate(PARSERS[name].grows):
        (corpus / f"seed-{number}").write_bytes(grown(name, sample, 3))
    for path in KEPT:
        if parser_of(path) == name:
            shutil.copy(path, corpus)
    return corpus


def calls_too_often(name: str, path: Path) -> bool:
    """Whether a parser makes more calls for an input than it may."""
    data = path.read_bytes()
    with tempfile.TemporaryDirectory(prefix="heed-fuzz-") as folder:
        return PARSERS[name].calls(Path(folder), data) > most_calls(data)


def main() -> int:
    """Check the properties, then the parsers."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=10_000, help="of all properties together (0: none)")
    parser.add_argument("--seed", type=int, default=None, help="the same seed gives the same cases (default: random)")
    parser.add_argument("--seconds", type=int, default=30, help="for each parser, with atheris (0: none)")
    given = parser.parse_args()
    seed = given.seed if given.seed is not None else random.SystemRandom().randrange(1 << 30)
    num_broken = check_properties(given.cases, seed) if given.cases else 0
    num_broken += fuzz_parsers(given.seconds) if given.seconds else 0
    return 1 if num_broken else 0


if __name__ == "__main__":
    sys.exit(main())
