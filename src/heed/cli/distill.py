"""`heed distill`: train a student on the translations of trained translators."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from heed.cli.flags import given
from heed.cli.options import BeamFlags, Compute, Device, Quiet, Tag, Threads, search_options, use_threads
from heed.cli.train import TrainingFlags, run_training, split_words
from heed.core.environment import distributed
from heed.core.errors import UsageError

if TYPE_CHECKING:
    from heed.planner import TrainOptions

Words = Annotated[list[str], typer.Argument(metavar="RUN...", help="The teachers: one run, or an ensemble.")]
PLAIN = {"mbr": "", "sample": False, "nbest": 1, "diversity": 0.0}
"""Search options of the teachers, whatever their recipe has: the one best translation of a beam."""


def distill(
    *,
    words: Words,
    out: Annotated[Path, typer.Option(help="The student's run folder.")],
    search: BeamFlags,
    tag: Tag = None,
    training: TrainingFlags,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the run in --out.")] = False,
    threads: Threads = 0,
    device: Device = "auto",
    quiet: Quiet = False,
) -> None:
    """Train a student on what its teachers translate.

    The teachers translate the sources of the first one's training data into the folder OUT.distilled; after an
    interruption, the same command continues. The student learns from these translations and from the original pairs
    (sequence-level distillation, Kim & Rush 2016). It has the first teacher's vocabulary and recipe, of which any key
    can be changed: --model.num_decoder_layers=1.

    Examples:

      heed distill runs/en-de --model.num_encoder_layers=6 --model.num_decoder_layers=1 --out runs/fast

      heed distill runs/a runs/b runs/c --max-time 2h --out runs/one
    """
    from heed.core.config import parse_overrides
    from heed.execute import check_folder
    from heed.planner import TrainOptions
    from heed.run import RECIPE

    if distributed().world_size > 1:
        raise UsageError("distill runs in one process. Continue its training on several with heed train --resume.")
    teachers, arguments = _teachers(words)
    keys = {**parse_overrides(arguments), **training.keys()}
    options = TrainOptions(out, overwrite, device=device, quiet=quiet, tokenizer_of=teachers[0])
    check_folder(options)
    use_threads(threads)
    keys |= _translations(teachers, tag, search, threads, options)
    run_training(teachers[0] / RECIPE, keys, options, dry_run=False)


def _teachers(words: list[str]) -> tuple[list[Path], list[str]]:
    """The run folders among the words, and the flags that are recipe keys."""
    names: list[str] = []
    rest = list(words)
    while rest and not rest[0].startswith("-"):
        names.append(rest.pop(0))
    recipe, flags = split_words(rest)
    if recipe is not None or not names:
        raise UsageError("name the teachers before any keys of the recipe: heed distill RUN --out STUDENT.")
    return [Path(name) for name in names], flags


def _translations(
    teachers: list[Path], tag: str | None, search: BeamFlags, threads: int, options: TrainOptions
) -> Mapping[str, object]:
    """Let the teachers translate, and return the keys of the student's recipe that name the translations."""
    first, *others = teachers
    combined = {name: value for name, value in (("ensemble", others), ("tag", tag)) if value}
    predictor = Compute(threads=threads).load(first, **combined)
    predictor.require("distill")
    beam = search_options(predictor.run.recipe.decoding, {**PLAIN, **given(search)})
    folder = options.out.with_name(f"{options.out.name}.distilled")
    return predictor.distill(folder, beam, options.quiet)
