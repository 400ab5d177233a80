"""Time to count, estimate, write, read and score n-grams, compared with KenLM's `lmplz` if given.

    python benchmarks/ngram.py --train ptb.train.txt.xz --test ptb.test.txt.xz --order 5 --lmplz kenlm/build/bin/lmplz

Modified Kneser-Ney on words separated by spaces, as lmplz needs it: no blank lines, and `<unk>` is a word like others.
One process, one thread. The two take turns; times are of the processor (other programs do not count), medians, and
ratios the median over pairs (smallest to largest).
lmplz reads a plain file and writes an ARPA file, so both are timed for that. The time heed needs to have a model in
memory is shown separately. Prints Markdown tables and the perplexity, never asserts.
"""

from __future__ import annotations

import argparse
import math
import os
import platform
import statistics
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import numpy as np

from heed.core.environment import num_cpus
from heed.statistical.arpa import read_arpa, write_arpa
from heed.statistical.backoff import BackoffModel
from heed.statistical.estimation import estimate, open_vocabulary
from heed.statistical.ngram_counts import NgramCounts
from heed.statistical.smoothing import SmoothingConfig
from heed.text.readers import read_lines
from heed.text.vocabulary import SPECIAL_PIECES, Vocabulary

PAD, BOS, EOS, UNK = range(4)
MILLION = 1_000_000

T = TypeVar("T")


def processor_time() -> float:
    """Seconds that this process and the ones it has waited for have used."""
    return sum(os.times()[:4])


@dataclass
class Times:
    """Seconds of processor time of each step, one number per repetition."""

    steps: dict[str, list[float]] = field(default_factory=dict)

    def measure(self, step: str, work: Callable[..., T], *arguments: object) -> T:
        """Run a step and record its time."""
        begin = processor_time()
        result = work(*arguments)
        self.steps.setdefault(step, []).append(processor_time() - begin)
        return result

    def total(self, *steps: str) -> list[float]:
        """The sum of some steps, for each repetition."""
        return [sum(parts) for parts in zip(*(self.steps[step] for step in steps), strict=True)]


def write_plain(path: Path, out: Path) -> Path:
    """The text as lmplz expects it: unpacked, `<unk>` renamed, without blank lines."""
    lines = (line.replace("<unk>", "<rare>") for line in read_lines(path))
    out.write_text("".join(f"{line}\n" for line in lines if line.strip()), encoding="utf-8")
    return out


def read_numbered(path: Path) -> tuple[list[list[int]], Vocabulary]:
    """Lines as ids; words are numbered in order of appearance."""
    ids: dict[str, int] = {}
    lines = [
        [ids.setdefault(word, len(ids) + len(SPECIAL_PIECES)) for word in line.split()]
        for line in path.read_text(encoding="utf-8").splitlines()
    ]
    return lines, Vocabulary(ids)


def train(plain: Path, order: int, arpa: Path, times: Times) -> tuple[BackoffModel, Vocabulary]:
    """Go from a text to an ARPA file, timing each step."""
    lines, vocabulary = times.measure("read the text", read_numbered, plain)
    size = len(vocabulary)
    counts = times.measure("count", NgramCounts.of, lines, order, size, BOS, EOS, PAD)
    model = times.measure("estimate", estimate, counts, SmoothingConfig(), open_vocabulary(counts, UNK))
    times.measure("write ARPA", write_arpa, arpa, model, vocabulary.pieces)
    return model, vocabulary


def run_lmplz(program: Path, plain: Path, order: int, arpa: Path) -> None:
    """Run lmplz in its own process, with as much memory as for its reference figures."""
    words = [str(program), "-o", str(order), "-S", "1G", "-T", str(arpa.parent)]
    with plain.open("rb") as text, arpa.open("wb") as out:
        subprocess.run(words, stdin=text, stdout=out, stderr=subprocess.DEVNULL, check=True)


def log_probs(model: BackoffModel, lines: Sequence[Sequence[int]]) -> np.ndarray:
    """log p (nats) of every word and end of a text."""
    read = np.array([[id for line in lines for id in (BOS, *line)]])
    wanted = np.array([id for line in lines for id in (*line, EOS)])
    return model.log_prob(model.follow(model.start[None], read)[0], wanted)


def report(times: Times, peer: list[float], num_words: int) -> None:
    """Print the tables."""
    print("| step | seconds |\n| --- | ---: |")
    for step, seconds in times.steps.items():
        print(f"| {step} | {statistics.median(seconds):.2f} |")
    in_memory = times.total("read the text", "count", "estimate")
    whole = times.total("read the text", "count", "estimate", "write ARPA")
    print(f"| text to model in memory | {statistics.median(in_memory):.2f} |")
    print(f"| text to ARPA file | {statistics.median(whole):.2f} |")
    if peer:
        print(f"| lmplz, text to ARPA file | {statistics.median(peer):.2f} |\n")
        for name, ours in (("text to ARPA file", whole), ("text to model in memory", in_memory)):
            ratios = sorted(a / b for a, b in zip(ours, peer, strict=True))
            spread = f"({ratios[0]:.2f}-{ratios[-1]:.2f})"
            print(f"heed's {name} / lmplz's text to ARPA file: {statistics.median(ratios):.2f}x {spread}")
    rate = num_words / statistics.median(times.steps["score"])
    print(f"\nscoring: {rate:,.0f} words/s, so a million words take {MILLION / rate:.1f} s")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--train", type=Path, required=True, help="text to count")
    parser.add_argument("--test", type=Path, required=True, help="text to score")
    parser.add_argument("--order", type=int, default=5)
    parser.add_argument("--lmplz", type=Path, help="KenLM's program, to compare with")
    parser.add_argument("--repeats", type=int, default=3)
    given = parser.parse_args()
    times, peer = Times(), Times()
    print(f"{platform.machine()}, {num_cpus()} CPU cores, Python {platform.python_version()}, NumPy {np.__version__}\n")
    with tempfile.TemporaryDirectory() as place:
        plain = write_plain(given.train, Path(place) / "train")
        test = write_plain(given.test, Path(place) / "test")
        for _ in range(given.repeats):
            if given.lmplz:
                arpa = Path(place) / "lmplz.arpa"
                peer.measure("lmplz", run_lmplz, given.lmplz, plain, given.order, arpa)
            model, vocabulary = train(plain, given.order, Path(place) / "heed.arpa", times)
            times.measure("prepare to score", getattr, model, "suffixes")
            lines = [[vocabulary.id(word) for word in line.split()] for line in test.read_text("utf-8").splitlines()]
            found = times.measure("score", log_probs, model, lines)
        times.measure("read ARPA", read_arpa, Path(place) / "heed.arpa")
    report(times, peer.steps.get("lmplz", []), len(found))
    ngrams = ", ".join(f"{number:,}" for number in model.num_ngrams)
    print(f"n-grams of 1, 2, ... words: {ngrams}")
    print(f"perplexity of the test text: {math.exp(-found.mean()):.3f} over {len(found):,} words with ends")


if __name__ == "__main__":
    main()
