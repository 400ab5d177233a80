"""The quality of translators and their speed, as a table and a picture: which are on the Pareto front?

    python benchmarks/quality_speed.py TEACHER STUDENT ... --src val.en.gz --ref val.de.gz --plot front.png

Each run translates the test set with each beam and in each number format. Each run and format has a process of its own,
with a loaded model, one worker for each CPU and heed's limits and output checks; they take turns. Speed is lines a
second relative to the first run with the widest beam in the first number format, which the paired tests compare with,
too.
Nothing is both better and faster than a translator on the front. `--measured FILE` reads and keeps the results, so that
several pictures can be drawn of them.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import peers

from heed.core.environment import num_cpus
from heed.evaluation.evaluation import Evaluation
from heed.evaluation.outputs import System, evaluate_outputs
from heed.evaluation.test_set import read_parallel

COLOURS = ("#1f6f8b", "#c8553d", "#588157", "#8d6a9f", "#b08900")
Job = tuple[int, Sequence[str]]
"""A beam size and lines."""


@dataclass(frozen=True)
class Point:
    """A translator with one beam and number format."""

    run: str
    beam: int
    precision: str
    bleu: float
    interval: tuple[float | None, float | None]
    p: float | None
    """Of the difference from the first in BLEU, by approximate randomisation."""
    speed: float
    """Relative to the first."""
    lines_per_second: float

    def is_beaten_by(self, other: Point) -> bool:
        """Whether another is at least as good and as fast, and better in one of both."""
        at_least = other.bleu >= self.bleu and other.speed >= self.speed
        return at_least and (other.bleu, other.speed) != (self.bleu, self.speed)


def side(run: Path, precision: str) -> Callable[[Job], tuple[float, list[str]]]:
    """A function that translates lines with a beam, and returns the seconds and the outputs."""
    import heed

    predictor = heed.load(run, precision=precision)

    def do(job: Job) -> tuple[float, list[str]]:
        beam, lines = job
        options = predictor.run.recipe.decoding.model_copy(update={"beam_size": beam})
        begin = time.perf_counter()
        outputs = predictor.translate(lines, options)
        return time.perf_counter() - begin, [str(text) for text in outputs]

    return do


def measure(
    runs: Sequence[Path], src: Path, ref: Path, beams: Sequence[int], precisions: Sequence[str], turns: int
) -> list[Point]:
    """All combinations, the first run with the widest beam in float32 first."""
    test = read_parallel(src, ref)
    lines = list(test.sources)
    sides = {(run, precision): peers.Side(side, run, precision) for run in runs for precision in precisions}
    keys = [(run, beam, precision) for run in runs for beam in sorted(beams, reverse=True) for precision in precisions]
    seconds: dict[tuple[Path, int, str], list[float]] = {key: [] for key in keys}
    outputs: dict[tuple[Path, int, str], list[str]] = {}
    for turn in range(turns + 1):  # the first warms up
        for run, beam, precision in keys:
            taken, found = sides[run, precision].run((beam, lines))
            outputs[run, beam, precision] = found
            if turn:
                seconds[run, beam, precision].append(taken)
    systems = [System(f"{run.name} {beam} {precision}", outputs[run, beam, precision]) for run, beam, precision in keys]
    evaluations = evaluate_outputs(test, systems, metrics=("bleu",))
    return [point(key, each, seconds[keys[0]], seconds[key]) for key, each in zip(keys, evaluations, strict=True)]


def point(key: tuple[Path, int, str], found: Evaluation, first: Sequence[float], own: Sequence[float]) -> Point:
    """The result of one combination. `first`, `own`: seconds of each turn, of the first one and of this."""
    score, compared = found.scores["bleu"], found.against_first.get("bleu")
    return Point(
        key[0].name, key[1], key[2], score.value, (score.low, score.high),
        None if compared is None else compared.p_randomisation,
        statistics.median(a / b for a, b in zip(first, own, strict=True)), found.num_rows / statistics.median(own),
    )  # fmt: skip


def front(points: Sequence[Point]) -> list[Point]:
    """Those that no other beats, the slowest first."""
    best = [each for each in points if not any(each.is_beaten_by(other) for other in points)]
    return sorted(best, key=lambda each: each.speed)


def table(points: Sequence[Point]) -> str:
    """A row for each translator; those on the front are bold."""
    best = front(points)
    rows = []
    for each in points:
        name = f"{each.run}, beam {each.beam}, {each.precision}"
        p = "" if each.p is None else f", p {each.p:.3f}"
        rows.append([
            f"**{name}**" if each in best else name,
            f"{each.bleu:.2f} ({each.interval[0] or 0:.2f}–{each.interval[1] or 0:.2f}){p}",
            f"{each.speed:.2f}", f"{each.lines_per_second:,.0f}",
        ])  # fmt: skip
    return peers.table(["", "BLEU", "speed", "lines/s"], rows)


def draw(path: Path, sets: Sequence[tuple[str, Sequence[Point]]]) -> None:
    """BLEU over speed, one part for each test set."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(4.2 * len(sets), 4.0), layout="constrained")
    parts = figure.subplots(1, len(sets), squeeze=False)[0]
    for axes, (title, points) in zip(parts, sets, strict=True):
        line = front(points)
        axes.plot([each.speed for each in line], [each.bleu for each in line], color="#999999", lw=1, zorder=1)
        for run, colour in zip(dict.fromkeys(each.run for each in points), COLOURS, strict=False):
            for precision, fill in (("float32", colour), ("int8", "white")):
                for beam, marker in ((1, "o"), (0, "s")):
                    some = [
                        each
                        for each in points
                        if (each.run, each.precision) == (run, precision) and (each.beam == 1) == (beam == 1)
                    ]
                    axes.scatter(
                        [each.speed for each in some], [each.bleu for each in some], marker=marker, s=46,
                        edgecolors=colour, c=fill, zorder=2,
                        label=run if (precision, beam) == ("float32", 1) and some else None,
                    )  # fmt: skip
        axes.set_title(title, fontsize=10)
        axes.set_xscale("log")
        ticks = [tick for tick in (0.25, 0.5, 1, 2, 4, 8, 16) if tick <= 1.4 * max(each.speed for each in points)]
        axes.set_xticks(ticks, [f"{tick:g}x" for tick in ticks])
        axes.minorticks_off()
        axes.set_xlabel("speed, relative to the first with its beam")
        axes.grid(alpha=0.3)
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(frameon=False, fontsize=8, loc="lower left")
    parts[0].set_ylabel("BLEU   (squares: beam, circles: greedy, empty: int8)")
    FigureCanvasAgg(figure)
    figure.savefig(path, dpi=120, format="png")


def main() -> None:
    """Measure, print, draw."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", type=Path, nargs="*", help="the full model, and others")
    parser.add_argument("--src", type=Path, help="a test set")
    parser.add_argument("--ref", type=Path, help="its references")
    parser.add_argument("--beams", type=int, nargs="+", default=[5, 1])
    parser.add_argument("--precisions", nargs="+", default=["float32", "int8"])
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--title", default="", help="of the test set, in the picture")
    parser.add_argument("--measured", type=Path, help="a JSON file of results: new ones are added")
    parser.add_argument("--plot", type=Path, help="write a PNG of all results of --measured")
    given = parser.parse_args()
    kept = json.loads(given.measured.read_text()) if given.measured and given.measured.exists() else {}
    sets = {title: [Point(**{**each, "interval": tuple(each["interval"])}) for each in kept[title]] for title in kept}
    if given.runs and not (given.src and given.ref):
        parser.error("give the test set with --src and --ref")
    if given.runs:
        title = given.title or given.src.name
        sets[title] = measure(given.runs, given.src, given.ref, given.beams, given.precisions, given.turns)
        print(peers.machine_line(num_cpus(), ["ctranslate2"] if peers.installed("ctranslate2") else []))
        print(f"\n{table(sets[title])}")
    if given.measured:
        given.measured.write_text(json.dumps({title: [*map(asdict, points)] for title, points in sets.items()}))
    if given.plot:
        draw(given.plot, [*sets.items()])


if __name__ == "__main__":
    main()
