"""`heed improve`: improve a translator with text in one language and with its own translations."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from heed.cli.distill import recipe_like
from heed.cli.learn import NOT_BETTER
from heed.cli.options import Compute, Device, ForceText, Quiet, RunFolder, Threads, parse_minutes, use_threads
from heed.cli.train import run_training
from heed.core.environment import distributed
from heed.core.errors import UsageError
from heed.core.progress import message

if TYPE_CHECKING:
    from heed.run import Run


def improve(
    run: RunFolder,
    *,
    mono_tgt: Annotated[
        list[Path] | None, typer.Option(metavar="F", help="Text in the target language (repeatable).")
    ] = None,
    mono_src: Annotated[
        list[Path] | None, typer.Option(metavar="F", help="Text in the source language (repeatable).")
    ] = None,
    reverse: Annotated[
        Path | None, typer.Option(metavar="RUN", help="A translator for the opposite direction (default: train one).")
    ] = None,
    init: Annotated[
        Path | None, typer.Option(metavar="RUN", help="The run that RUN began with, if it has heed train's --init.")
    ] = None,
    restore: Annotated[
        bool, typer.Option("--restore", help="First train a model to restore masked sentences; others begin with it.")
    ] = False,
    out: Annotated[Path, typer.Option(help="The new run folder, if the result is better.")],
    max_time: Annotated[
        str | None, typer.Option(help="Time limit for all steps together: 90m, 3h (default: RUN's limits).")
    ] = None,
    force: ForceText = False,
    threads: Threads = 0,
    device: Device = "auto",
    quiet: Quiet = False,
) -> None:
    """Improve a translator with synthetic pairs, judged by its validation data.

    RUN translates its training sources and text in the source language; a reverse model translates the training targets
    and text in the target language. A candidate with the recipe of RUN learns from the real and the synthetic pairs. It
    is kept if its BLEU on the validation data is significantly higher. It then translates for the next round.

    All files are in the folder OUT.improve; after an interruption, the same command continues. The exit code is 0 if
    OUT is better than RUN, and 3 if nothing improved RUN: then there is no OUT. A phrase-based RUN needs text in the
    target language only, which its language model reads.

    Examples:

      heed improve runs/en-de --out runs/better --max-time 3h

      heed improve runs/en-de --mono-tgt news.de --reverse runs/de-en --out runs/better
    """
    from heed.planner import TrainOptions, require_beginning
    from heed.run import Run

    if distributed().world_size > 1:
        raise UsageError("heed improve runs in one process: start it without torchrun.")
    out = out if out.name.strip(".") else out.resolve()  # "." and ".." are not names
    minutes = parse_minutes(max_time) if max_time else None
    compute = Compute(threads=threads, device=device)

    def train(like: Run | None, keys: Mapping[str, Any], folder: Path, begin: Path | None, translates: bool) -> None:
        recipe, own = (None, dict(keys)) if like is None else recipe_like(like, dict(keys), begin is not None)
        use_threads(threads)  # the translator may have set another number
        options = TrainOptions(
            folder, overwrite=True, force=force or not translates, init=begin, device=device, quiet=quiet,
            new_vocabulary=begin is not None, is_part=not translates,
        )  # fmt: skip
        run_training(recipe, own, options, dry_run=False, restartable=True)

    mono = {"src": mono_src or [], "tgt": mono_tgt or []}
    predictor = compute.load(run)
    predictor.require("translate", "heed improve")
    if init is not None and predictor.run.is_fine_tuned:
        require_beginning(Run(init), predictor.run.recipe)
    try:
        is_better = predictor.improve(out, mono, reverse, compute.load, train, minutes, quiet, force, init, restore)
    except (KeyboardInterrupt, SystemExit, typer.Exit):
        message(f"interrupted: the same command continues in {out.with_name(f'{out.name}.improve')}", quiet)
        raise
    if not is_better:
        message(f"{run} is unchanged: no candidate was better, so {out} was not written")
        raise typer.Exit(NOT_BETTER)
    message(f"{out} is better than {run}", quiet)
