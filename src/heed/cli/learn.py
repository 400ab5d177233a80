"""`heed learn`: train a translator on corrections, and say whether the result is better."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from heed.cli.options import Device, Quiet, Threads, use_threads
from heed.cli.train import TrainingFlags, recipe_and_flags, recipe_keys, run_training
from heed.core.environment import data_dir, distributed
from heed.core.errors import UsageError
from heed.core.progress import message, warn

if TYPE_CHECKING:
    from heed.run import Run

Words = Annotated[list[str], typer.Argument(metavar="RUN", help="The translator that was corrected.")]
NOT_BETTER = 3
"""Exit code if the old model stays."""
EPOCHS = 5
OWN = {
    f"data.{name}"
    for name in ("src", "tgt", "pairs", "valid_src", "valid_tgt", "valid_pairs", "parts", "repeat", "max_valid")
}
"""Keys of the files of the lesson."""


def learn(
    *,
    words: Words,
    memory: Annotated[Path, typer.Option(help="The translation memory with the corrections.")],
    out: Annotated[Path, typer.Option(help="The new run folder.")],
    training: TrainingFlags,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the run in --out.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Train despite errors the data doctor found.")] = False,
    threads: Threads = 0,
    device: Device = "auto",
    quiet: Quiet = False,
) -> None:
    """Train a translator on corrections, and say whether the result is better.

    Learns from the approved translations of a memory, mixed with the run's own training data, into a new run folder.
    Then both models translate held-out corrections and the validation data. The new folder is kept in either case. The
    exit code is 0 if the new model is better on the held-out corrections and not worse on the validation data, and 3
    otherwise. For a run with tags, corrections get the tag of its validation data.

    Example:

      heed learn runs/en-de --memory team.memory --out runs/en-de-2 --max-time 1h
    """
    from heed.core.config import flattened
    from heed.execute import check_folder
    from heed.memory.store import memory_of
    from heed.planner import TrainOptions
    from heed.run import Run

    if distributed().world_size > 1:
        raise UsageError("heed learn runs in one process: start it without torchrun.")
    out = out if out.name.strip(".") else out.resolve()  # "." and ".." are not names
    folder, arguments = _run_of(words)
    given = recipe_keys(arguments, training.keys())
    if own := sorted(given.keys() & OWN):
        raise UsageError(f"heed learn chooses {', '.join(own)} itself: leave it out.")
    run = Run(folder)
    run.num_workers = threads
    run.predictor.require("translate", "heed learn")
    run = run.predictor.of_validation()
    options = TrainOptions(out, overwrite, force, device=device, quiet=quiet, init=folder)
    check_folder(options)
    languages = run.predictor.languages
    with closing(memory_of(memory, languages)) as opened:
        units = [unit for unit in opened.units("approved") if unit.source.strip() and unit.target.strip()]
    lesson = run.predictor.lesson([(unit.source, unit.target) for unit in units])
    message(
        f"{memory}: {len(lesson.learned):,} corrections to train on, {len(lesson.chosen_by):,} to choose the best "
        f"weights, {len(lesson.judged_by):,} to compare the models", quiet,
    )  # fmt: skip
    place = given.pop("data.dir", None) or data_dir() or run.recipe.data.dir
    share = given.get("data.share", run.recipe.data.share)
    data = run.recipe.data.model_copy(update={"dir": str(place), "share": share})
    files = lesson.write(out.with_name(f"{out.name}.lesson"), data, folder, run.recipe.seed)
    kept = data.model_dump(mode="json", exclude_defaults=True, exclude={"dir", "hold_out", *files})
    limits = {} if {"training.max_minutes", "training.max_steps"} & given.keys() else {"training.max_epochs": EPOCHS}
    keys = {
        "task": run.recipe.task, "seed": run.recipe.seed, **flattened({**kept, **files}, "data."), **limits, **given,
    }  # fmt: skip
    use_threads(threads)
    run_training(None, keys, options, dry_run=False)
    new = Run(out)
    new.num_workers = threads
    _judge(run, new.predictor.of_validation(), lesson, quiet)


def _run_of(words: list[str]) -> tuple[Path, list[str]]:
    """The run folder among the words, and the flags that are recipe keys."""
    if not words or words[0].startswith("-"):
        raise UsageError("name the run before any keys of the recipe: heed learn RUN --memory M --out NEW.")
    recipe, flags = recipe_and_flags(words[1:])
    if recipe is not None:
        raise UsageError("heed learn takes one run.")
    return Path(words[0]), flags


def _judge(old: Run, new: Run, lesson: Any, quiet: bool) -> None:
    """Compare both models, say which one to use, and exit with `NOT_BETTER` if it is the old one."""
    from heed.data.validation import read_valid
    from heed.evaluation.outputs import compare_runs, score_changes
    from heed.evaluation.test_set import HeldOut

    tests = {"corrections": list(lesson.judged_by)}
    if valid := lesson.not_learned(read_valid(old.folder)):
        tests["validation"] = valid
    else:
        warn(
            "all validation sources are among the corrections, so there is no way to measure what the new model has "
            "forgotten."
        )
    compared = {
        name: compare_runs(old, new, HeldOut((f"{name}.src", f"{name}.tgt"), rows)) for name, rows in tests.items()
    }
    for name, (before, after) in compared.items():
        message(f"{name}, {len(tests[name]):,} lines: {score_changes(before, after)}", quiet)
    on = {name: after.against_first for name, (_, after) in compared.items()}
    decision = lesson.decide(on["corrections"], on.get("validation", {}))
    if decision.accepted:
        message(f"{new.folder} is better: {decision.reason}", quiet)
        return
    message(f"{old.folder} is unchanged: {decision.reason}")
    raise typer.Exit(NOT_BETTER)
