"""`heed data curve`: a learning curve, the quality with a quarter, a half and all of a run's training data."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from heed.cli.options import Device, Quiet, Threads, use_threads
from heed.cli.train import run_training
from heed.core.environment import data_dir, distributed
from heed.core.errors import DataError, UsageError
from heed.core.files import atomic_write
from heed.core.progress import message

if TYPE_CHECKING:
    from heed.evaluation.evaluation import Evaluation
    from heed.run import Run

SHARES = {"quarter": 0.25, "half": 0.5}
CURVE = "curve.json"
_CERTAIN, _WORTHWHILE = 0.05, 0.5
"""The p-value below which a gain counts, and the gain in BLEU that is worth having."""


@dataclass(frozen=True)
class Point:
    """One run of a learning curve, on the same validation data as the others."""

    run: str
    pairs: int
    bleu: float
    chrf: float
    gain: float | None = None
    """BLEU more than with half as many pairs; None for the first."""
    p: float | None = None
    """Of this gain, by approximate randomisation."""


def curve(
    *,
    run: Annotated[Path, typer.Argument(metavar="RUN", help="A trained translator.")],
    out: Annotated[Path, typer.Option(help="Folder for the two other runs and curve.json.")],
    threads: Threads = 0,
    device: Device = "auto",
    quiet: Quiet = False,
) -> None:
    """Find out whether more data or more time would help a translator.

    Trains it again on a quarter and on half of its training pairs, with its own recipe and limits, and compares the
    three on its validation data. After an interruption, the same command continues. It takes up to twice as long as the
    training of RUN.

    Example:

      heed data curve runs/en-de --out runs/en-de-curve
    """
    from heed.run import Run

    if distributed().world_size > 1:
        raise UsageError("heed data curve runs in one process: start it without torchrun.")
    whole = Run(run)
    _require_suitable(whole)
    data = whole.recipe.data
    data.model_copy(update={"dir": str(data_dir() or data.dir)}).require_unchanged(whole.corpus, whole.folder)
    use_threads(threads)
    runs = [_trained(whole, out / name, share, device, quiet) for name, share in SHARES.items()]
    for each in (*runs, whole):
        each.num_workers = threads
    points = _points([*runs, whole])
    with atomic_write(out / CURVE, "w") as file:
        json.dump([asdict(point) for point in points], file, indent=1)
    print(_table(points))
    print(_advice(points, _gain_of_time(whole)))


def _require_suitable(run: Run) -> None:
    """Raise UsageError for a run that a training with its recipe alone would not reproduce."""
    run.require_weights()
    run.predictor.require("translate", "heed data curve")
    if not run.corpus.get("num_rows"):
        raise UsageError(f"{run.folder} has no record of its training data. Name a run that heed train made.")
    if run.corpus.get("init") or run.corpus.get("tokenizer_of"):
        raise UsageError(
            f"{run.folder} began with weights or tokenizers of another run, which has seen other data. Name a run that "
            "was trained from scratch."
        )
    if run.recipe.data.share < 1:
        raise UsageError(
            f"{run.folder} was itself trained on a part of its pairs (data.share). Name a run that was trained on all."
        )


def _trained(whole: Run, folder: Path, share: float, device: str, quiet: bool) -> Run:
    """The run of a share of the pairs, trained unless it is complete. Raises DataError for a run of another recipe."""
    from heed.core.run_files import RECIPE
    from heed.planner import TrainOptions
    from heed.run import Run

    if (folder / RECIPE).exists() and _like(Run(folder).recipe) != _like(whole.recipe):
        raise DataError(f"{folder} was not trained with the recipe of {whole.folder}. Name another --out.")
    keys: dict[str, object] = {"data.share": share}
    if place := data_dir():
        keys["data.dir"] = str(place)
    message(f"{share:.0%} of the pairs: {folder}", quiet)
    options = TrainOptions(folder, overwrite=True, device=device, quiet=quiet)
    run_training(whole.folder / RECIPE, keys, options, dry_run=False, restartable=True)
    trained = Run(folder)
    if trained.corpus["files"] != whole.corpus["files"]:
        raise DataError(f"{folder} was not trained on the files of {whole.folder}. Name another --out.")
    return trained


def _like(recipe: Any) -> Any:
    """What the runs of a curve have in common."""
    return recipe.model_copy(update={"data": recipe.data.model_copy(update={"share": 1.0, "dir": ""})})


def _points(runs: list[Run]) -> list[Point]:
    """The runs on the validation data of the last one, the one with the fewest pairs first."""
    from heed.data.validation import read_valid
    from heed.evaluation.evaluation import compare_all
    from heed.evaluation.outputs import evaluate_outputs, translated
    from heed.evaluation.test_set import HeldOut

    whole = runs[-1].predictor.of_validation()
    test = HeldOut(("validation.src", "validation.tgt"), list(read_valid(whole.folder)))
    options, tokenised = whole.recipe.decoding, whole.recipe.data.tokenised
    systems = [translated(run.predictor.of_validation(), test, options, quiet=True) for run in runs]
    evaluations = evaluate_outputs(
        test, systems, whole.predictor.languages[1] or None, metrics=("bleu", "chrf"), tokenised=tokenised
    )
    points: list[Point] = []
    before: Evaluation | None = None
    for run, evaluation in zip(runs, evaluations, strict=True):
        scores = evaluation.scores
        point = Point(str(run.folder), run.num_rows, scores["bleu"].value, scores["chrf"].value)
        if before is not None:
            tested = compare_all(before.statistics, evaluation.statistics)["bleu"]
            point = replace(point, gain=tested.difference, p=tested.p_randomisation)
        points.append(point)
        before = evaluation
    return points


def _table(points: list[Point]) -> str:
    from heed.evaluation.table import columns, probability

    rows = [["pairs", "BLEU", "chrF2", "gain", "p", "run"]]
    for each in points:
        gain = "" if each.gain is None else f"{each.gain:+.2f}"
        p = "" if each.gain is None else probability(each.p)
        rows.append([f"{each.pairs:,}", f"{each.bleu:.2f}", f"{each.chrf:.2f}", gain, p, each.run])
    return columns(rows, right=range(5))


def _gain_of_time(run: Run) -> float | None:
    """Of the best BLEU on validation data, what the second half of the training added.

    None for a count-based model, and for a training that early stopping ended, which more time would not change.
    """
    from heed.training.metrics_log import read_metrics

    events = read_metrics(run.folder)
    scores = [(event["seconds"], event["bleu"]) for event in events if "bleu" in event]
    if len(scores) < 2 or "patience" in str(events[-1].get("reason")):
        return None
    half = scores[-1][0] / 2
    first = max((bleu for seconds, bleu in scores if seconds <= half), default=0.0)
    return float(max(bleu for _, bleu in scores) - first)


def _advice(points: list[Point], of_time: float | None) -> str:
    """What the curve says about more pairs, and the training about more time."""
    last = points[-1]
    gain, is_certain = last.gain or 0.0, last.p is not None and last.p < _CERTAIN
    lines = [f"The second half of the pairs added {gain:.1f} BLEU: {_of_pairs(gain, is_certain)}"]
    if of_time is not None:
        more = "a longer training would help too" if of_time >= _WORTHWHILE else "a longer training would help little"
        lines.append(f"The second half of the training time added {of_time:.1f} BLEU (greedy): {more}.")
    return "\n".join(lines)


def _of_pairs(gain: float, is_certain: bool) -> str:
    if gain >= _WORTHWHILE and not is_certain:
        return "that may be chance, which more validation data would show."
    if gain <= 0 or not is_certain:
        return "no more than chance, so more pairs of this kind would help little."
    return "doubling them again may add about as much, or somewhat less."
