"""Systems of the lineage of machine translation on Multi30k, English to German, in one table.

    python benchmarks/lineage.py --data FOLDER --minutes 15 --threads 1 --seeds 1,2,3 --plot docs/pictures/lineage.png

FOLDER holds the files of Multi30k that the recipes name. Each system is a recipe, some with flags, of about two million
parameters and with the same tokenizer, and is trained for `--minutes`, or for `--updates`, which do not depend on the
machine: one number, or a file with a line `system<TAB>number` for each, such as those that a core makes in the minutes.
Finished runs are not trained again and interrupted ones are resumed, so
`timeout -s TERM 1h python benchmarks/lineage.py ...` does an hour of the work; translations are kept next to the runs.

The table has BLEU and chrF on validation data, or with `--test` on test_2016_flickr, parameters, minutes of training,
sentences a second (in one batch, by the recipe's search), and BLEU by the length of the source; numbers are means over
the seeds. `--plot` draws the last of these: what attention does for long sentences. `--direction de-en` exchanges the
languages.
`--device cuda` trains on a GPU, in float32.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

from experiments import Budget, Experiment, Flags, folder_name, has_ended, machine_line, markdown, train

from heed.api import load
from heed.core.environment import num_cpus
from heed.evaluation.evaluation import Evaluation
from heed.evaluation.outputs import System, evaluate_outputs
from heed.evaluation.test_set import HeldOut, read_parallel
from heed.nn.device import set_threads
from heed.training.metrics_log import read_metrics

RECIPES = Path(__file__).resolve().parent.parent / "recipes" / "translation"
SCORES = ("dot", "scaled_dot", "bilinear", "additive", "two_networks", "local_monotonic", "local_predictive")

LADDER = ("dot", "scaled_dot", "projected", "projected_heads", "multi_head")
"""Self-attention of the encoder, from none of its weights to the Transformer's."""


def _recipe(name: str, *flags: str) -> Flags:
    return [str(RECIPES / f"multi30k-en-de-{name}.toml"), *flags]


SYSTEMS: Mapping[str, Flags] = {
    "by rule": _recipe("rules"),
    "phrase-based": _recipe("phrases"),
    "RCTM I": _recipe("rctm-1"),
    "RCTM II": _recipe("rctm-2"),
    "thought vector, forward": _recipe("thought-forward"),
    "thought vector, reversed": _recipe("thought-reversed"),
    "Bahdanau": _recipe("bahdanau"),
    "Luong": _recipe("luong"),
    "Luong, local-p": _recipe("luong", "--model.decoder.attention=local_predictive"),
    "McAllester": _recipe("mcallester"),
    **{f"score {name}": _recipe("scores", f"--model.decoder.attention={name}") for name in SCORES},
    **{f"encoder {name}": _recipe("ladder", f"--model.encoder_attention={name}") for name in LADDER},
    "SSRU": _recipe("ssru"),
    "average attention": _recipe("average"),
    "average attention without feed-forward": _recipe("average", "--model.decoder_mixing=average_without_feed_forward"),
    "Transformer": [str(RECIPES / "multi30k-en-de.toml")],
}
"""A recipe and flags for each system, in the order of the history."""
LONGEST = (10, 15, 20)
"""Words of the source: the last one of each column of lengths but the open one."""


@dataclass(frozen=True)
class Measured:
    """One run: scores, and what they cost."""

    bleu: float
    chrf: float
    by_length: Mapping[str, float]
    """BLEU by the length of the source."""
    parameters: int
    minutes: float
    sentences_per_second: float


def translated(folder: Path, test: HeldOut, threads: int) -> tuple[list[str], float]:
    """The translations of a run and their seconds, read from a file next to it if it has them."""
    kept = folder.with_name(f"{folder.name}.{Path(test.files[0]).name}.json")
    if kept.exists():
        read = json.loads(kept.read_text(encoding="utf-8"))
        return read["outputs"], read["seconds"]
    set_threads(threads)
    loaded = load(folder)
    begin = time.perf_counter()
    outputs = [str(output) for output in loaded.translate(list(test.sources))]
    seconds = time.perf_counter() - begin
    kept.write_text(json.dumps({"outputs": outputs, "seconds": seconds}, ensure_ascii=False), encoding="utf-8")
    return outputs, seconds


def measure(folder: Path, test: HeldOut, language: str, threads: int) -> Measured:
    """Translate with a finished run into this language, and score."""
    outputs, seconds = translated(folder, test, threads)
    run = load(folder).run
    [whole] = scored(test, outputs, language)
    parts = {label: part_of(test, outputs, fits) for label, fits in lengths().items()}
    spent = max(event.get("seconds", 0.0) for event in read_metrics(folder))
    return Measured(
        whole.scores["bleu"].value, whole.scores["chrf"].value,
        {label: scored(*part, language)[0].scores["bleu"].value for label, part in parts.items() if part[1]},
        run.num_parameters, spent / 60, len(outputs) / seconds,
    )  # fmt: skip


def scored(test: HeldOut, outputs: Sequence[str], language: str) -> list[Evaluation]:
    """The scores of outputs in a language, by heed's evaluation."""
    return evaluate_outputs(test, [System("outputs", outputs)], language, metrics=("bleu", "chrf"))


def lengths() -> dict[str, Callable[[int], bool]]:
    """The columns of lengths: their labels, and the lengths that belong to them."""
    shortest = [0, *(end + 1 for end in LONGEST)]
    columns: dict[str, Callable[[int], bool]] = {
        (f"{begin}–{end}" if begin else f"up to {end}"): lambda n, begin=begin, end=end: begin <= n <= end  # type: ignore[misc]
        for begin, end in zip(shortest, LONGEST, strict=False)
    }
    return {**columns, f"over {LONGEST[-1]}": lambda n: n > LONGEST[-1]}


def part_of(test: HeldOut, outputs: Sequence[str], fits: Callable[[int], bool]) -> tuple[HeldOut, list[str]]:
    """The lines of some lengths, with their outputs."""
    chosen = [n for n, source in enumerate(test.sources) if fits(len(source.split()))]
    return HeldOut(test.files, [test.rows[n] for n in chosen]), [outputs[n] for n in chosen]


def row(name: str, runs: Sequence[Measured]) -> list[str]:
    """A row of the table: means over the seeds."""

    def mean(value: Callable[[Measured], float]) -> float:
        return fmean(value(run) for run in runs)

    spread = [run.bleu for run in runs]
    bleu = f"{fmean(spread):.2f}" + (f" ({min(spread):.2f} to {max(spread):.2f})" if len(runs) > 1 else "")
    by_length = [f"{mean(lambda run, label=label: run.by_length.get(label, 0.0)):.1f}" for label in lengths()]  # type: ignore[misc]
    return [
        name, bleu, f"{mean(lambda run: run.chrf):.1f}", f"{runs[0].parameters:,}",
        f"{mean(lambda run: run.minutes):.1f}", f"{mean(lambda run: run.sentences_per_second):.0f}", *by_length,
    ]  # fmt: skip


def draw(path: Path, systems: Mapping[str, Sequence[Measured]]) -> None:
    """BLEU over the length of the source, a line for each system."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 4.2), layout="constrained")
    axes = figure.subplots()
    for name, runs in systems.items():
        values = [fmean(run.by_length.get(label, 0.0) for run in runs) for label in lengths()]
        axes.plot(list(lengths()), values, marker=".", label=name, linestyle="--" if "thought" in name else "-")
    axes.set_xlabel("words of the source")
    axes.set_ylabel("BLEU")
    axes.set_ylim(bottom=0)
    axes.grid(alpha=0.3)
    axes.spines[["top", "right"]].set_visible(False)
    figure.legend(frameon=False, fontsize="small", loc="outside right center")
    FigureCanvasAgg(figure)
    figure.savefig(path, dpi=120, format="png")


def parser() -> argparse.ArgumentParser:
    """The command line."""
    made = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("--data", type=Path, required=True, help="folder of Multi30k's raw files")
    made.add_argument("--out", type=Path, default=Path("runs/lineage"), help="folder of the runs")
    made.add_argument("--only", default="", help=f"names with ; between them: {'; '.join(SYSTEMS)}")
    made.add_argument("--direction", choices=("en-de", "de-en"), default="en-de", help="with another --out for each")
    made.add_argument("--seeds", default="1", help="comma-separated seeds (default 1)")
    made.add_argument("--minutes", type=float, default=15.0, help="minutes of training for each run (default 15)")
    made.add_argument("--updates", default="0", help="updates for each run instead of minutes: a number, or a file")
    made.add_argument("--device", choices=("cpu", "cuda"), default="cpu", help="where to train (default cpu)")
    made.add_argument("--threads", type=int, default=num_cpus(), help="CPU threads (default: all cores)")
    made.add_argument("--table", action="store_true", help="train nothing, score the finished runs")
    made.add_argument("--test", action="store_true", help="score on test_2016_flickr instead of validation data")
    made.add_argument("--plot", type=Path, help="write a PNG of BLEU by length")
    return made


def runs_of(given: argparse.Namespace) -> dict[str, dict[str, Flags]]:
    """The requested systems: names and flags of the runs of each, one for each seed."""
    names = [name.strip() for name in given.only.split(";") if name.strip()] or list(SYSTEMS)
    if unknown := [name for name in names if name not in SYSTEMS]:
        sys.exit(f"error: no system is called {', '.join(unknown)}. There are: {'; '.join(SYSTEMS)}.")
    return {
        name: {f"{name}, seed {seed}": [*SYSTEMS[name], f"--seed={seed}"] for seed in given.seeds.split(",")}
        for name in names
    }


def updates_of(said: str, names: Iterable[str]) -> dict[str, int]:
    """The updates of each system: one number for all, or those of a file."""
    if said.isdecimal():
        return dict.fromkeys(names, int(said))
    if not Path(said).is_file():
        sys.exit(f"error: --updates takes a number or a file, and {said} is neither.")
    of_file: dict[str, int] = {}
    for line in Path(said).read_text(encoding="utf-8").splitlines():
        name, _, number = line.partition("\t")
        if not number.isdecimal() or not int(number):
            sys.exit(f"error: {said}: expected a system, a tab and a number of updates, got {line!r}.")
        of_file[name] = int(number)
    if missing := [name for name in names if name not in of_file]:
        sys.exit(f"error: {said} has no number of updates for {', '.join(missing)}.")
    return of_file


def budget_of(minutes: float, updates: int) -> Flags:
    """The flags of so many updates, with one validation at the end, or of so many minutes if there are none."""
    every = ["--training.eval_every=100000"] if updates else []
    return [*Budget(0.0 if updates else minutes, updates).flags, *every]


def other_way(direction: str) -> Flags:
    """Flags that exchange source and target of the recipes, for German to English."""
    src, tgt = direction.split("-")
    keys = {
        "src": f"train.{src}.gz", "tgt": f"train.{tgt}.gz", "valid_src": f"val.{src}.gz", "valid_tgt": f"val.{tgt}.gz",
        "src_lang": src, "tgt_lang": tgt,
    }  # fmt: skip
    return [] if direction == "en-de" else [f"--data.{name}={value}" for name, value in keys.items()]


def main() -> None:
    """Train what is missing, and print the table."""
    given = parser().parse_args()
    systems = runs_of(given)
    if not given.table:
        numbers = updates_of(given.updates, systems)
        where = ["--device=cpu"] if given.device == "cpu" else ["--device=cuda", "--training.precision=float32"]
        flags = [f"--data.dir={given.data}", *where, *other_way(given.direction)]
        experiments = [
            Experiment(run, [*own, *flags, *budget_of(given.minutes, numbers[name])])
            for name, runs in systems.items() for run, own in runs.items()
        ]  # fmt: skip
        train(experiments, given.out, given.threads, [])
    part = "test_2016_flickr" if given.test else "val"
    languages = given.direction.split("-")
    test = read_parallel(*(given.data / f"{part}.{code}.gz" for code in languages))
    folders = {name: [given.out / folder_name(run) for run in runs] for name, runs in systems.items()}
    found: dict[str, Any] = {
        name: [measure(folder, test, languages[-1], given.threads) for folder in of_one if has_ended(folder)]
        for name, of_one in folders.items()
    }
    found = {name: runs for name, runs in found.items() if runs}
    if not found:
        sys.exit("error: no run has finished yet.")
    print(f"{part}, {machine_line(given.threads)}\n")
    heads = ["system", "BLEU", "chrF", "parameters", "minutes", "sentences/s", *lengths()]
    print(markdown(heads, [row(name, runs) for name, runs in found.items()]))
    if given.plot:
        draw(given.plot, found)


if __name__ == "__main__":
    main()
