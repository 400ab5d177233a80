"""Whether validation data should choose each run's length penalty and beam, and what minimum Bayes risk gains.

    python benchmarks/length_penalty.py runs/en-de runs/en-fr runs/ja-en --outputs outputs.json --threads 1

The length penalty only ranks hypotheses that have ended, so the n-best list of one search is ranked by every penalty;
real searches show how far that is from the truth. The setting with the highest BLEU on the validation lines with even
numbers translates the others, and the reverse, so that no line is scored by a choice that it had a part in. All lines
together are compared with the default. The last row of a table is the mean over corpora, each the mean of its runs, and
its bootstrap draws the same lines for all runs of a corpus. Times are processor times, measured in turns. `--outputs`
keeps what is translated, so that an interrupted measurement goes on. Only the validation lines in the run folders are
read.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property, partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from peers import ratio, table

from heed.api import load
from heed.core.environment import num_cpus
from heed.data.validation import read_valid
from heed.decoding.hypothesis import Hypothesis
from heed.decoding.options import SearchOptions
from heed.decoding.ranking import LengthPenalty
from heed.inference.line_translator import LineTranslator
from heed.metrics import output_statistics
from heed.metrics.metric import SentenceStatistics
from heed.metrics.significance import BOOTSTRAP_DRAWS, resampled_totals, shifted_p_value, values
from heed.metrics.translation import length_ratio
from heed.nn.device import set_threads

ALPHAS = [0.25 * n for n in range(2, 13)]
SEARCHED = (1.0, 1.5, 2.0, 2.5)
"""Length penalties of real searches."""
BEAMS = (5, 10)
DEFAULT, SEARCH, MBR = "beam 5, α = 1.5", "search with ", "minimum Bayes risk by chrF over 20 candidates"
SPLITS = 100
"""Random halves over which the gain of choosing is averaged."""
TURNS, TIMED = 3, 200
"""Times that each search is timed, and lines of each time."""

Lines = NDArray[np.bool_]
Ways = Mapping[str, SentenceStatistics]
Pair = tuple[SentenceStatistics, SentenceStatistics]
"""The default, and what is compared with it."""


@dataclass(frozen=True)
class Measured:
    """The outputs of a run for its validation lines, and the processor time of searches."""

    name: str
    references: list[str]
    language: str | None
    outputs: dict[str, list[str]]
    seconds: dict[str, list[float]]

    @cached_property
    def bleu(self) -> Ways:
        """The counts of each way to search."""
        return self._statistics("bleu")

    @cached_property
    def chrf(self) -> Ways:
        """Likewise."""
        return self._statistics("chrf")

    def _statistics(self, metric: str) -> Ways:
        score = partial(output_statistics, references=self.references, language=self.language, names=[metric])
        return {way: score(outputs)[metric] for way, outputs in self.outputs.items()}

    def length_ratio(self, way: str) -> str:
        """Words of the outputs per word of the references."""
        return f"{length_ratio(self.outputs[way], self.references, self.language):.2f}"

    def against_default(self, way: str) -> Pair:
        """The BLEU of both."""
        return self.bleu[DEFAULT], self.bleu[way]


def way_of(beam: int, alpha: float) -> str:
    """The name of a way to search."""
    return f"beam {beam}, α = {alpha:g}"


# --- searching ------------------------------------------------------------------------------------------


def measure(path: Path, num_lines: int, threads: int) -> Measured:
    """Search in each way. `num_lines`: of the validation data, at most."""
    predictor = load(path, num_workers=threads)
    rows = read_valid(path)[:num_lines]
    sources, references = [row[0] for row in rows], [row[-1] for row in rows]
    options = predictor.run.recipe.decoding.model_copy(update={"length_norm": "mean", "length_penalty": 1.5})
    ways = {way_of(beam, 1.5): options.model_copy(update={"beam_size": beam}) for beam in BEAMS}
    ways[MBR] = options.model_copy(update={"beam_size": 5, "mbr": "chrf", "candidates": 20})
    translator: LineTranslator = predictor.line_translator(with_tokens=False)
    outputs: dict[str, list[str]] = {}
    for beam in BEAMS:
        outputs |= rescored(translator, sources, options.model_copy(update={"beam_size": beam, "nbest": beam}))
    searches = {SEARCH + way_of(5, a): ways[DEFAULT].model_copy(update={"length_penalty": a}) for a in SEARCHED}
    for way, search in {**searches, MBR: ways[MBR]}.items():
        outputs[way] = [each.text for each in translator.translate(sources, search)]
    seconds: dict[str, list[float]] = {way: [] for way in ways}
    for _ in range(TURNS):
        for way, search in ways.items():
            begin = time.process_time()
            translator.translate(sources[:TIMED], search)
            seconds[way].append(time.process_time() - begin)
    name = "/".join(path.parts[-2:])
    return Measured(name, references, predictor.run.predictor.languages[1] or None, outputs, seconds)


def rescored(translator: LineTranslator, sources: Sequence[str], options: SearchOptions) -> dict[str, list[str]]:
    """The best output of each line's n-best list by each length penalty; flagged ones are replaced, as in a search."""
    found = translator.translate(sources, options)
    lists = [[replace(best, alternatives=()), *best.alternatives] for best in found]
    pairs = [(source, each) for source, own in zip(sources, lists, strict=True) for each in own]
    flags = iter(translator.flags([source for source, _ in pairs], [each for _, each in pairs]))
    usable = [[each for each in own if not next(flags) and each.finished] for own in lists]

    def best_of(own: Sequence[Hypothesis], found: Hypothesis, penalty: LengthPenalty) -> str:
        return max(own or [found], key=lambda each: each.log_prob / penalty.divisor(len(each.ids) + 1)).text

    return {
        way_of(options.beam_size, alpha): [
            best_of(own, best, LengthPenalty(alpha, "mean")) for own, best in zip(usable, found, strict=True)
        ]
        for alpha in ALPHAS
    }


# --- choosing -------------------------------------------------------------------------------------------


def total(statistics: SentenceStatistics, lines: Lines | None = None) -> float:
    """The score of these lines, or of all."""
    rows = statistics.rows if lines is None else statistics.rows[lines]
    return statistics.value(rows.sum(axis=0))


def choose(ways: Ways, among: Sequence[str], half: Lines) -> tuple[str, str]:
    """The ways with the highest score on a half of the lines and on the other one."""
    first, second = (max(among, key=lambda way: total(ways[way], lines)) for lines in (half, ~half))
    return first, second


def crossed(ways: Ways, chosen: tuple[str, str], half: Lines) -> Pair:
    """The default, and each half of the lines by the way that was chosen on the other one."""
    first, second = (ways[way] for way in chosen)
    return ways[DEFAULT], replace(first, rows=np.where(half[:, None], second.rows, first.rows))


def mean_gain(ways: Ways, among: Sequence[str]) -> float:
    """The mean gain of choosing, over random halves."""
    random, num_lines = np.random.default_rng(1), len(ways[DEFAULT].rows)
    splits = [random.permutation(num_lines) % 2 == 0 for _ in range(SPLITS)]
    pairs = [crossed(ways, choose(ways, among, half), half) for half in splits]
    return statistics.mean(total(chosen) - total(default) for default, chosen in pairs)


def gain(runs: Sequence[Measured], pairs: Sequence[Pair]) -> str:
    """The mean over corpora of the runs' differences to the default, and its p by paired bootstrap."""
    weights = np.array([1 / sum(other.references == run.references for other in runs) for run in runs])
    shares = weights / weights.sum()
    delta = float(shares @ [total(other) - total(default) for default, other in pairs])
    draws = [[values(each, resampled_totals(each.rows, BOOTSTRAP_DRAWS)) for each in pair] for pair in pairs]
    differences = shares @ np.array([other - default for default, other in draws])
    return f"{delta:+.2f} (p {shifted_p_value(differences, delta):.3f})"


# --- tables ---------------------------------------------------------------------------------------------


def penalties(runs: Sequence[Measured], beam: int) -> str:
    """BLEU by each length penalty."""
    rows = [
        [
            way,
            *(f"{total(run.bleu[way]):.2f} ({run.length_ratio(way)})" for run in runs),
            gain(runs, [run.against_default(way) for run in runs]),
        ]
        for way in (way_of(beam, alpha) for alpha in ALPHAS)
    ]
    return table(["", *(run.name for run in runs), "mean gain"], rows)


def searches(runs: Sequence[Measured]) -> str:
    """How far n-best lists are from real searches."""

    def cell(run: Measured, way: str) -> str:
        differ = sum(a != b for a, b in zip(run.outputs[way], run.outputs[SEARCH + way], strict=True))
        return f"{differ} ({total(run.bleu[SEARCH + way]) - total(run.bleu[way]):+.2f})"

    ways = [way_of(5, alpha) for alpha in SEARCHED]
    return table(["", *(run.name for run in runs)], [[way, *(cell(run, way) for run in runs)] for way in ways])


def choices(runs: Sequence[Measured], among: Sequence[str]) -> str:
    """What choosing among these ways gains on lines that it has not seen."""
    rows, pairs = [], []
    for run in runs:
        half = np.arange(len(run.references)) % 2 == 0
        chosen = choose(run.bleu, among, half)
        pairs.append([crossed(ways, chosen, half) for ways in (run.bleu, run.chrf)])
        best = max(among, key=lambda way: total(run.bleu[way]))
        seen = f"{total(run.bleu[best]) - total(run.bleu[DEFAULT]):+.2f} ({best})"
        gains = [gain([run], [pair]) for pair in pairs[-1]]
        rows.append([run.name, "; ".join(chosen), *gains, f"{mean_gain(run.bleu, among):+.2f}", seen])
    rows.append(["mean of the corpora", "", *(gain(runs, each) for each in zip(*pairs, strict=True)), "", ""])
    return table(["", "chosen", "BLEU", "chrF2", "BLEU, random halves", "BLEU, not held out"], rows)


def minimum_bayes_risk(runs: Sequence[Measured]) -> str:
    """What it gains, and its time."""
    rows, pairs = [], [[(ways[DEFAULT], ways[MBR]) for ways in (run.bleu, run.chrf)] for run in runs]
    for run, own in zip(runs, pairs, strict=True):
        ratios = [ratio(run.seconds[way], run.seconds[DEFAULT]) for way in (way_of(BEAMS[-1], 1.5), MBR)]
        lengths = f"{run.length_ratio(DEFAULT)} → {run.length_ratio(MBR)}"
        rows.append([run.name, *(gain([run], [pair]) for pair in own), lengths, *ratios])
    rows.append(["mean of the corpora", *(gain(runs, each) for each in zip(*pairs, strict=True)), "", "", ""])
    return table(["", "BLEU", "chrF2", "length ratio", f"time of beam {BEAMS[-1]}", "its time"], rows)


def main() -> None:
    """Search with each run, or read what was kept, and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", type=Path, nargs="+")
    parser.add_argument("--outputs", type=Path, required=True, help="a JSON file of outputs: new ones are added")
    parser.add_argument("--lines", type=int, default=1000, help="validation lines of each run, at most (default 1,000)")
    parser.add_argument("--threads", type=int, default=0, help="CPU threads (default: all cores)")
    given = parser.parse_args()
    threads = given.threads or num_cpus()
    set_threads(threads)
    kept = json.loads(given.outputs.read_text(encoding="utf-8")) if given.outputs.exists() else {}
    keys = [f"{path}, {given.lines} lines" for path in given.runs]
    for path, key in zip(given.runs, keys, strict=True):
        if key not in kept:
            kept[key] = asdict(measure(path, given.lines, threads))
            given.outputs.write_text(json.dumps(kept, ensure_ascii=False), encoding="utf-8")
    runs = [Measured(**kept[key]) for key in keys]
    for beam in BEAMS:
        print(f"\nBLEU (length ratio) of n-best lists:\n\n{penalties(runs, beam)}")
    print(f"\nLines that a search translates differently (its BLEU less that of the list):\n\n{searches(runs)}")
    for title, beams in (("α", BEAMS[:1]), ("α and beam", BEAMS)):
        among = [way_of(beam, alpha) for beam in beams for alpha in ALPHAS]
        print(f"\nGain by choosing {title}, on lines that had no part in the choice:\n\n{choices(runs, among)}")
    print(f"\nGain by {MBR}, and processor time as a ratio to beam 5:\n\n{minimum_bayes_risk(runs)}")


if __name__ == "__main__":
    main()
