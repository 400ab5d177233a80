"""BLEU and length ratio by beam size, with and without length normalisation.

    python benchmarks/beam_curse.py runs/en-de --src val.en.gz --ref val.de.gz --plot beam_curse.png

The beam search curse (Koehn & Knowles 2017, section 3.6; Murray & Chiang 2018): a wider beam finds more likely outputs,
which are shorter, so BLEU falls. Dividing by the length removes most of the effect. Output checks are off, so that only
the search is measured. Choose a beam on validation data, not on a test set. Prints a Markdown table, never asserts.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from heed.api import load
from heed.core.environment import num_cpus
from heed.evaluation.test_set import read_parallel
from heed.metrics import output_metric
from heed.metrics.translation import length_ratio
from heed.nn.device import set_threads
from heed.tasks.predictor import Predictor

NORMS: dict[str, dict[str, Any]] = {
    "log-probability": {"length_penalty": 0.0},
    "GNMT, α = 0.6": {"length_penalty": 0.6, "length_norm": "gnmt"},
    "mean per token": {"length_penalty": 1.0, "length_norm": "mean"},
}
"""Ways to compare hypotheses of different lengths."""

COLOURS = ("#b5432a", "#33658a", "#4f7a4a")


@dataclass(frozen=True)
class Point:
    """The result of one search over the whole test set."""

    norm: str
    beam_size: int
    bleu: float
    length_ratio: float
    empty: int
    """Empty outputs for non-empty sources."""
    seconds: float


def measure(loaded: Predictor, sources: Sequence[str], references: Sequence[str], norm: str, beam_size: int) -> Point:
    """Translate and score."""
    within_limits = loaded.run.recipe.decoding.greedy()
    options = within_limits.model_copy(update={"beam_size": beam_size, "guard": False, **NORMS[norm]})
    language, tokenised = loaded.run.predictor.languages[1] or None, loaded.run.recipe.data.tokenised
    begin = time.perf_counter()
    outputs = loaded.translate(sources, options)
    seconds = time.perf_counter() - begin
    bleu = output_metric("bleu", language, tokenised).score(outputs, references).value
    empty = sum(not output.strip() and bool(source.strip()) for source, output in zip(sources, outputs, strict=True))
    return Point(
        norm, beam_size, bleu, length_ratio(outputs, references, language, tokenised=tokenised), empty, seconds
    )


def table(points: Sequence[Point]) -> str:
    """A row for each beam size and, for each way to compare, BLEU (length ratio)."""
    rows = [
        "| beam | " + " | ".join(NORMS) + " | seconds |",
        "| ---: |" + " ---: |" * (len(NORMS) + 1),
    ]
    for beam_size in dict.fromkeys(point.beam_size for point in points):
        found = {point.norm: point for point in points if point.beam_size == beam_size}
        cells = [_cell(found[norm]) for norm in NORMS]
        seconds = sum(point.seconds for point in found.values()) / len(found)
        rows.append(f"| {beam_size} | {' | '.join(cells)} | {seconds:.1f} |")
    return "\n".join(rows)


def _cell(point: Point) -> str:
    empty = f", {point.empty} empty" if point.empty else ""
    return f"{point.bleu:.2f} ({point.length_ratio:.3f}{empty})"


def draw(path: Path, points: Sequence[Point]) -> None:
    """BLEU and the length ratio over the beam size."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 3.8), layout="constrained")
    bleu, ratio = figure.subplots(1, 2)
    for norm, colour in zip(NORMS, COLOURS, strict=True):
        line = [point for point in points if point.norm == norm]
        sizes = [point.beam_size for point in line]
        bleu.plot(sizes, [point.bleu for point in line], color=colour, marker=".", label=norm)
        ratio.plot(sizes, [point.length_ratio for point in line], color=colour, marker=".", label=norm)
    bleu.set_title("BLEU")
    ratio.set_title("words per word of the reference")
    for axes in (bleu, ratio):
        axes.set_xscale("log")
        sizes = sorted({point.beam_size for point in points})
        axes.set_xticks(sizes, [str(size) for size in sizes])
        axes.minorticks_off()
        axes.set_xlabel("beam size")
        axes.grid(alpha=0.3)
        axes.spines[["top", "right"]].set_visible(False)
    bleu.legend(frameon=False)
    FigureCanvasAgg(figure)
    figure.savefig(path, dpi=120, format="png")


def main() -> None:
    """Read the arguments, search, print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("run", type=Path)
    parser.add_argument("--src", type=Path, required=True)
    parser.add_argument("--ref", type=Path, required=True)
    parser.add_argument("--beams", type=int, nargs="+", default=[1, 2, 5, 10, 20, 50, 100])
    parser.add_argument("--lines", type=int, default=0, help="only the first N lines (0: all)")
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--plot", type=Path, help="write a PNG")
    given = parser.parse_args()
    set_threads(given.threads or num_cpus())
    loaded = load(given.run)
    rows = read_parallel(given.src, given.ref).rows[: given.lines or None]
    sources, references = [row[0] for row in rows], [row[-1] for row in rows]
    points = []
    for beam_size in given.beams:
        points += [measure(loaded, sources, references, norm, beam_size) for norm in NORMS]
        print("  ".join(f"{p.norm}: {_cell(p)}" for p in points[-len(NORMS) :]), flush=True)
    print(f"\nBLEU (length ratio), {len(sources):,} lines of {given.src.name}; seconds: mean of the three searches\n")
    print(table(points))
    if given.plot:
        draw(given.plot, points)


if __name__ == "__main__":
    main()
