"""Forced prefixes: CTranslate2's outputs compared with those of PyTorch's loop, and the time of both.

    python benchmarks/prefixes.py RUN --src val.en.gz --ref val.de.gz

Each source is translated after a prefix of its reference: from one word up to the whole line, a fifth of them cut at
any character. The counts are the lines that CTranslate2 searches itself, and those of them with the same tokens as
PyTorch's loop. Then both engines, one thread each, search half of the lines in turns, in batches and one at a time.
Times are those of the processor, medians with the range of the ratios.
"""

from __future__ import annotations

import argparse
import random
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import heed
from heed.decoding.options import Constraints, Request
from heed.evaluation.test_set import read_parallel
from heed.inference.ctranslate2_engine import searcher_with_fallback
from heed.nn.device import set_threads

INSIDE = 0.2
"""Share of the prefixes that may end inside a word."""


def prefix_of(line: str, rng: random.Random) -> str:
    """A prefix of a reference."""
    words = line.split()
    if rng.random() < INSIDE:
        return line[: rng.randint(1, len(line))]
    return " ".join(words[: rng.randint(1, len(words))])


def processor_time(work: Callable[[], Any]) -> float:
    """Seconds of the processor."""
    begin = time.process_time()
    work()
    return time.process_time() - begin


def search(batches: Sequence[Sequence[Request]], options: Any, how: Callable[..., Any]) -> None:
    """Search all batches."""
    for batch in batches:
        how(batch, options)


def count(requests: Sequence[Request], options: Any, oracle: Any, engine: Any) -> str:
    """How many lines the engine searches itself, and how many of these outputs are the oracle's."""
    expected = oracle.search_in_batches(requests, options)
    found = engine.search(requests, options, False)
    equal = sum(hypotheses[0].ids == expected[request].ids for request, hypotheses in found.items())
    return f"{len(found):,} of {len(requests):,} lines searched, {equal:,} with the same tokens"


def main() -> None:
    """Count and time."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path)
    parser.add_argument("--src", type=Path, required=True)
    parser.add_argument("--ref", type=Path, required=True)
    parser.add_argument("--beams", default="1,5")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--single", type=int, default=100, help="lines that are translated one at a time")
    given = parser.parse_args()
    set_threads(1)
    oracle: Any = heed.load(given.run, engine="torch")
    converted: Any = heed.load(given.run, num_workers=1)
    translator, engine = oracle.translator, converted.engine
    test = read_parallel(given.src, given.ref)
    rng = random.Random(1)
    constraints = [Constraints(prefix=prefix_of(line, rng)) for line in test.references]
    requests = list(dict.fromkeys(translator.requests(test.sources, constraints)))
    half = requests[::2]
    print("beam  lines            PyTorch  CTranslate2  ratio")
    for beam in map(int, given.beams.split(",")):
        options = oracle.decoding.model_copy(update={"beam_size": beam, "nbest": 1})
        print(f"beam {beam}: {count(requests, options, translator, engine)}", flush=True)
        both = searcher_with_fallback(engine, translator.best_of, translator.search_in_batches, False)
        groups = {"batches": [half], "one at a time": [[request] for request in half[: given.single]]}
        for name, batches in groups.items():
            works = [partial(search, batches, options, how) for how in (translator.search_in_batches, both)]
            turns = [[processor_time(work) for work in works] for _ in range(given.repeat)]
            ratios = sorted(torch / own for torch, own in turns)
            times = [median(each) for each in zip(*turns, strict=True)]
            print(
                f"{beam:4}  {name:13}  {times[0]:8.2f} s  {times[1]:9.2f} s  "
                f"{median(ratios):.2f} ({ratios[0]:.2f}-{ratios[-1]:.2f})",
                flush=True,
            )


if __name__ == "__main__":
    main()
