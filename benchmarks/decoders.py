"""Speed of several translators by PyTorch's search, in turns, as ratios to the first.

    python benchmarks/decoders.py runs/self-attention runs/ssru runs/average --src val.en.gz

Each run translates the same lines greedily and with a beam, one at a time and in batches, by heed's own loop and not by
CTranslate2, which has no SSRU. One thread; the best of `--repeats` turns, in seconds of the processor, which other
programs change less than time. As outputs differ in length, tokens a second are printed too. Prints, never asserts.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from pathlib import Path

import torch
from experiments import machine_line, markdown

import heed
from heed.tasks.predictor import Predictor
from heed.text.readers import read_text

SINGLE_LINES = 50


def measured(run: Predictor, lines: Sequence[str], beam: int, alone: bool) -> tuple[float, float]:
    """Lines and tokens a second of processor time."""
    options = run.run.recipe.decoding.model_copy(update={"beam_size": beam})
    chunks = [[line] for line in lines[:SINGLE_LINES]] if alone else [list(lines)]
    begin = time.process_time()
    found = [best for chunk in chunks for best in run.hypotheses(chunk, options)]  # type: ignore[attr-defined]
    seconds = time.process_time() - begin
    return len(found) / seconds, sum(len(best.ids) + 1 for best in found) / seconds


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", type=Path, nargs="+", help="run folders; the first is what others are compared with")
    parser.add_argument("--src", type=Path, required=True, help="lines to translate")
    parser.add_argument("--lines", type=int, default=500)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--beam", type=int, default=5)
    given = parser.parse_args()
    lines = list(read_text(given.src))[: given.lines]
    torch.set_num_threads(1)
    runs = {folder.name: heed.load(folder, engine="torch") for folder in given.runs}
    print(machine_line(1) + "\n")
    rows = []
    for beam in (1, given.beam):
        for alone in (True, False):
            turns = [
                {name: measured(run, lines, beam, alone) for name, run in runs.items()} for _ in range(given.repeats)
            ]
            best = {name: tuple(map(max, zip(*(turn[name] for turn in turns), strict=True))) for name in runs}
            first = next(iter(best.values()))
            for name, (per_line, per_token) in best.items():
                how = f"beam {beam}, {'one line at a time' if alone else 'batches'}"
                ratios = [f"{per_line / first[0]:.2f}", f"{per_token / first[1]:.2f}"]
                rows.append([how, name, f"{per_line:.1f}", f"{per_token:.0f}", *ratios])
    print(markdown(["search", "run", "lines/s", "tokens/s", "lines, ratio", "tokens, ratio"], rows))


if __name__ == "__main__":
    main()
