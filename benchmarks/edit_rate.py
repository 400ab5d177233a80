"""Speed of TER's edit counts compared with sacreBLEU, and a check that the counts are equal.

    python benchmarks/edit_rate.py --hyp out.de --ref val.de.gz

Both count the same lines in turns: the lines of the files unchanged; neighbouring lines joined to a given number of
words; and random lines of Chinese characters with two in five replaced and three runs moved. Every count is compared.
"""

from __future__ import annotations

import argparse
import random
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median

from sacrebleu.metrics.lib_ter import translation_edit_rate as by_sacrebleu

from heed.metrics.edit_rate import translation_edit_rate
from heed.text.readers import read_lines

Pair = tuple[list[str], list[str]]
"""The words of a translation and of its reference."""


def main() -> None:
    """Count, compare, print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hyp", type=Path, required=True, help="translations, one per line")
    parser.add_argument("--ref", type=Path, required=True)
    parser.add_argument("--lines", type=int, default=300)
    given = parser.parse_args()
    lines = [[line.split() for line in read_lines(path)] for path in (given.hyp, given.ref)]
    pairs = list(zip(*lines, strict=True))[: given.lines]
    print("| | lines | words | sacreBLEU, ms per line | heed | times as fast (median of lines) |")
    print("| --- | ---: | ---: | ---: | ---: | ---: |")
    tell("unchanged", pairs)
    for words, count in ((100, 8), (200, 3), (350, 2)):
        tell(f"joined to {words} words", joined(pairs, words)[:count])
    for characters in (100, 150):
        tell(f"{characters} characters", [damaged(characters, seed) for seed in range(3)])


def tell(name: str, pairs: Sequence[Pair]) -> None:
    """One row of the table."""
    times: list[tuple[float, float]] = []
    for hypothesis, reference in pairs:
        began = time.perf_counter()
        theirs = by_sacrebleu(hypothesis, reference)
        between = time.perf_counter()
        ours = translation_edit_rate(hypothesis, reference)
        times.append((between - began, time.perf_counter() - between))
        if ours != theirs:
            raise SystemExit(f"{ours}, and {theirs} by sacreBLEU: {hypothesis} {reference}")
    words = sum(len(reference) for _, reference in pairs) / len(pairs)
    sums = [1000 * sum(column) / len(pairs) for column in zip(*times, strict=True)]
    ratio = median(one / other for one, other in times)
    figures = f"{sums[0]:.2f} | {sums[1]:.2f} | {sums[0] / sums[1]:.1f} ({ratio:.1f})"
    print(f"| {name} | {len(pairs)} | {words:.0f} | {figures} |", flush=True)


def joined(pairs: Sequence[Pair], words: int) -> list[Pair]:
    """Join neighbouring lines until the reference has the given number of words."""
    together: list[Pair] = [([], [])]
    for hypothesis, reference in pairs:
        if len(together[-1][1]) >= words:
            together.append(([], []))
        together[-1][0].extend(hypothesis)
        together[-1][1].extend(reference)
    return together[:-1]


def damaged(length: int, seed: int) -> Pair:
    """Random characters, and a copy with some replaced and runs moved."""
    rng = random.Random(seed)
    reference = [chr(rng.randrange(0x4E00, 0x4E00 + 400)) for _ in range(length)]
    hypothesis = [chr(rng.randrange(0x4E00, 0x4E00 + 400)) if rng.random() < 0.4 else word for word in reference]
    for _ in range(3):
        start, target = rng.randrange(length - 8), rng.randrange(length - 8)
        run, rest = hypothesis[start : start + 8], hypothesis[:start] + hypothesis[start + 8 :]
        hypothesis = rest[:target] + run + rest[target:]
    return hypothesis, reference


if __name__ == "__main__":
    main()
