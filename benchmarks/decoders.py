"""Speed of several translators by PyTorch's search, in turns, as ratios to the first.

    python benchmarks/decoders.py runs/self-attention runs/ssru runs/average --src val.en.gz
    python benchmarks/decoders.py runs/1 --src test.en.gz --old ../heed-before

Each run translates the same lines greedily and with a beam, one at a time and in batches, by heed's own loop and not by
CTranslate2, which has no SSRU. With `--old`, each run is also translated by another checkout of heed, which comes
first, and the outputs are compared: their texts, and the largest difference of two scores. Every translator has a
process of its own with one thread. Seconds are those of the processor, which other programs change less than time: the
best of `--repeats` turns for the speeds, the median over the turns for the ratios. As outputs differ in length, tokens
a second are printed too. Prints, never asserts.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from peers import ROOT, Side

import heed
from heed.text.readers import read_text

SINGLE_LINES = 50
Job = tuple[int, bool]
"""(beam, whether each line comes alone)."""
Found = list[tuple[str, int, float]]
"""(text, number of tokens with the end, score) of each line."""


def translator(folder: Path, lines: Sequence[str]) -> Callable[[Job], tuple[float, Found]]:
    """Seconds of the processor for the lines, and the outputs, in this process."""
    torch.set_num_threads(1)
    predictor: Any = heed.load(folder, engine="torch")

    def translate(job: Job) -> tuple[float, Found]:
        beam, alone = job
        options = predictor.run.recipe.decoding.model_copy(update={"beam_size": beam})
        chunks = [[line] for line in lines[:SINGLE_LINES]] if alone else [list(lines)]
        begin = time.process_time()
        found = [best for chunk in chunks for best in predictor.hypotheses(chunk, options)]
        seconds = time.process_time() - begin
        return seconds, [(best.text, len(best.ids) + 1, best.score) for best in found]

    return translate


def side_of(checkout: Path, folder: Path, lines: Sequence[str]) -> Side:
    """A process that imports heed from a checkout."""
    sys.path.insert(0, str(checkout.resolve() / "src"))  # a new process starts with the same path
    try:
        return Side(translator, folder, lines)
    finally:
        sys.path.pop(0)


def differences(ours: Found, theirs: Found) -> str:
    """How many texts are equal, and the largest difference of two scores."""
    same = sum(a[0] == b[0] for a, b in zip(ours, theirs, strict=True))
    most = max(abs(a[2] - b[2]) for a, b in zip(ours, theirs, strict=True))
    return f"{same:,} of {len(ours):,}; {most:.0e}"


def main() -> None:
    """Measure and print."""
    from experiments import machine_line, markdown  # the other checkout need not have what they import

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", type=Path, nargs="+", help="run folders; the first is what others are compared with")
    parser.add_argument("--src", type=Path, required=True, help="lines to translate")
    parser.add_argument("--lines", type=int, default=500)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--beam", type=int, default=5)
    parser.add_argument("--old", type=Path, help="another checkout of heed, which translates first")
    given = parser.parse_args()
    lines = list(read_text(given.src))[: given.lines]
    checkouts = {"": ROOT} if given.old is None else {"old ": given.old, "": ROOT}
    sides = {
        f"{name}{folder.name}": side_of(checkout, folder, lines)
        for name, checkout in checkouts.items() for folder in given.runs
    }  # fmt: skip
    print(machine_line(1) + "\n", flush=True)
    rows = []
    for beam in (1, given.beam):
        for alone in (True, False):
            turns = [{name: side.run((beam, alone)) for name, side in sides.items()} for _ in range(given.repeats)]
            first = next(iter(sides))
            for name in sides:
                found, seconds = turns[0][name][1], [turn[name][0] for turn in turns]
                tokens = sum(length for _, length, _ in found)
                ratio = statistics.median(turn[first][0] / turn[name][0] for turn in turns)
                per_token = ratio * tokens / sum(length for _, length, _ in turns[0][first][1])
                rows.append([
                    f"beam {beam}, {'one line at a time' if alone else 'batches'}", name,
                    f"{len(found) / min(seconds):.1f}", f"{tokens / min(seconds):.0f}", f"{ratio:.2f}",
                    f"{per_token:.2f}", differences(found, turns[0][first][1]),
                ])  # fmt: skip
    header = ["search", "run", "lines/s", "tokens/s", "lines, ratio", "tokens, ratio", "same text; scores differ by"]
    print(markdown(header, rows))


if __name__ == "__main__":
    main()
