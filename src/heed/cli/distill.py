"""`heed distill`: train a student on the translations of trained translators."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from heed.cli.flags import given
from heed.cli.options import (
    BeamFlags,
    Compute,
    Device,
    ForceText,
    Quiet,
    Tag,
    Threads,
    search_options,
    use_threads,
    warn_if_not_usable,
)
from heed.cli.train import TrainingFlags, recipe_and_flags, recipe_keys, run_training
from heed.core.environment import data_dir, distributed
from heed.core.errors import MissingInputError, UsageError
from heed.core.progress import message

if TYPE_CHECKING:
    from heed.planner import Plan, TrainOptions
    from heed.recipe import Recipe
    from heed.run import Run

Words = Annotated[list[str], typer.Argument(metavar="RUN...", help="The teachers: one run, or an ensemble.")]
PLAIN = {"mbr": "", "sample": False, "nbest": 1, "diversity": 0.0}
"""Search options of the teachers, whatever their recipe has: the one best translation of a beam."""


def distill(
    *,
    words: Words,
    out: Annotated[Path, typer.Option(help="The student's run folder.")],
    search: BeamFlags,
    tag: Tag = None,
    reverse: Annotated[
        Path | None,
        typer.Option(metavar="RUN", help="A translator for the opposite direction: translates targets back."),
    ] = None,
    mono_src: Annotated[
        list[Path] | None,
        typer.Option(metavar="F", help="Text in the source language, for the teachers to translate (repeatable)."),
    ] = None,
    fast: Annotated[
        bool, typer.Option("--fast", help="A student for greedy search: two decoder layers, and more encoder layers.")
    ] = False,
    training: TrainingFlags,
    overwrite: Annotated[
        bool,
        typer.Option("--overwrite", help="Replace the run in --out, and translations by other models or settings."),
    ] = False,
    force: ForceText = False,
    threads: Threads = 0,
    device: Device = "auto",
    quiet: Quiet = False,
) -> None:
    """Train a student on the translations of its teachers.

    The teachers translate the sources of the first one's training data into the folder OUT.distilled; after an
    interruption, the same command continues. The student learns from these translations and from the original pairs
    (sequence-level distillation, Kim & Rush 2016). With --reverse it also learns from the training targets and their
    translations back into the source language; with --mono-src, also from the teachers' translations of other text. It
    has the first teacher's vocabulary and recipe, of which any key can be changed: --model.num_decoder_layers=1. With
    another --model.kind, heed chooses the settings of the student, and if the teacher is phrase-based, the vocabulary
    too.

    A student with the shape of the first teacher starts with that teacher's weights, and one with more or fewer layers
    with copies of its layers. With --fast it has two decoder layers, the teacher's other decoder layers move to its
    encoder, and it translates with greedy search.

    Examples:

      heed distill runs/en-de --fast --out runs/fast

      heed distill runs/a runs/b --reverse runs/back --out runs/one

      heed distill runs/en-de --fast --mono-src more.en --out runs/fast
    """
    from heed.execute import check_folder
    from heed.planner import TrainOptions

    if distributed().world_size > 1:
        raise UsageError(
            "heed distill runs in one process: start it without torchrun. heed train --resume continues on several."
        )
    teachers, arguments = _teachers(words)
    fast_keys = _fast_keys(teachers[0]) if fast else {}
    keys = {**fast_keys, **recipe_keys(arguments, training.keys())}
    kept = None if _needs_new_vocabulary(teachers[0], keys) else teachers[0]
    options = TrainOptions(out, overwrite, force, device=device, quiet=quiet, tokenizer_of=kept, is_student=True)
    check_folder(options, [*teachers, *([reverse] if reverse else []), *(mono_src or [])])
    recipe, keys, options = _translated(teachers, reverse, tag, search, threads, keys, options, mono_src or [])
    use_threads(threads)  # the teachers may have translated with one
    run_training(recipe, keys, options, dry_run=False)


def _teachers(words: list[str]) -> tuple[list[Path], list[str]]:
    """The run folders among the words, and the flags that are recipe keys."""
    names: list[str] = []
    rest = list(words)
    while rest and not rest[0].startswith("-"):
        names.append(rest.pop(0))
    recipe, flags = recipe_and_flags(rest)
    if recipe is not None or not names:
        raise UsageError("name the teachers before any keys of the recipe: heed distill RUN --out STUDENT.")
    return [Path(name) for name in names], flags


def _needs_new_vocabulary(teacher: Path, keys: dict[str, object]) -> bool:
    """Whether the student of a count-based teacher, whose units are words, is another kind of model."""
    from heed.run import Run

    run = Run(teacher)
    return run.blank_model.count_based and keys.get("model.kind", run.recipe.model.kind) != run.recipe.model.kind


FAST_DECODER_LAYERS = 2
"""One layer is a third faster still and has to learn from a worse start (docs/results/translation.md)."""


def _fast_keys(teacher: Path) -> dict[str, object]:
    """Recipe keys of a student that translates fast: the teacher's layers, moved from the decoder to the encoder.

    The encoder computes all tokens of a source at once, the decoder one token of the translation after the other.
    Raises UsageError for a teacher without such layers.
    """
    from heed.run import Run

    model: Any = Run(teacher).recipe.model
    if not (hasattr(model, "num_encoder_layers") and hasattr(model, "num_decoder_layers")):
        raise UsageError(f"--fast is for Transformers, and the model of {teacher} is {model.kind!r}.")
    moved = max(0, model.num_decoder_layers - FAST_DECODER_LAYERS)
    return {
        "model.num_encoder_layers": model.num_encoder_layers + moved,
        "model.num_decoder_layers": model.num_decoder_layers - moved,
        "decoding.beam_size": 1,
    }


def _translated(
    teachers: list[Path], reverse: Path | None, tag: str | None, search: BeamFlags, threads: int,
    keys: dict[str, object], options: TrainOptions, text: list[Path],
) -> tuple[Path | None, dict[str, object], TrainOptions]:  # fmt: skip
    """Let the teachers translate, and return the student's recipe, the keys that override it, and the options.

    Everything that can be wrong with the student is reported before.
    """
    first, *others = teachers
    compute = Compute(threads=threads, device=options.device)
    opposite = compute.load(reverse) if reverse else None  # first: the teachers' number of threads counts
    predictor: Any = compute.load(first, ensemble=others, tag=tag)
    predictor.require("translate", "heed distill")
    for each in filter(None, (predictor, opposite)):
        warn_if_not_usable(each, options.quiet)
    beam = search_options(predictor.run.recipe.decoding, {**PLAIN, **given(search)})
    recipe, keys = recipe_like(predictor.run, keys)
    plan = _plan(recipe, keys, options, first)
    if _begins_with_teacher(plan.recipe, predictor.run):
        options = replace(options, init=first)
    out = options.out if options.out.name.strip(".") else options.out.resolve()  # "." and ".." are not names
    folder = out.with_name(f"{out.name}.distilled")
    named = [("--mono-src", path) for path in text] + ([("--reverse", reverse)] if reverse else [])
    back = folder.with_name(f"{folder.name}-back")
    places = [folder, back] if reverse else [folder]
    for (flag, path), place in product(named, places):
        if path.resolve().is_relative_to(place.resolve()):
            raise UsageError(f"{flag} {path} is in {place}, the folder of the translations: move it elsewhere.")
    try:
        parts = predictor.distill(
            plan.recipe.data,
            folder,
            beam,
            options.quiet,
            options.overwrite,
            text,
            options.force,
            (opposite, back) if opposite else None,
        )
    except (KeyboardInterrupt, SystemExit):
        where = " and ".join(map(str, places))
        message(f"interrupted: the same command continues with the translations in {where}", options.quiet)
        raise
    return recipe, {**keys, **parts}, options


def _begins_with_teacher(recipe: Recipe, teacher: Run) -> bool:
    """Whether a student begins with the weights of its first teacher: if it can, and was not trained on lines that the
    student holds out.

    Weights of other programs, whose training data is not known, have rates for fine-tuning.
    """
    from heed.planner import is_like

    if teacher.blank_model.count_based or not teacher.corpus.get("num_rows") or not is_like(teacher, recipe):
        return False
    return not recipe.data.holds_out or _held_out(recipe) == _held_out(teacher.recipe)


def _held_out(recipe: Recipe) -> tuple[object, ...]:
    """What the lines that are held out of the training data depend on."""
    data: Any = recipe.data
    return recipe.seed, data.holds_out, data.num_held_out, data.src, data.tgt, data.pairs


def recipe_like(
    teacher: Run, keys: dict[str, object], as_trained: bool = False
) -> tuple[Path | None, dict[str, object]]:
    """The recipe of a run like another one, the teacher, and the keys that override it.

    For another kind of model, and for a teacher that was fine-tuned, whose learning rate suits nothing else, heed
    chooses the settings of the training; only the kinds that can learn from text in the target language alone keep it.
    `as_trained`: the new run begins with the same weights as the teacher did.
    """
    from heed.core.config import flattened
    from heed.core.run_files import RECIPE
    from heed.recipe import data_keys

    recipe = teacher.recipe
    is_same_kind = keys.get("model.kind", recipe.model.kind) == recipe.model.kind
    if is_same_kind and (as_trained or not teacher.is_fine_tuned):
        return teacher.folder / RECIPE, keys
    kept = data_keys(recipe, str(keys.get("model.kind", recipe.model.kind)))
    if is_same_kind:  # with what equals a default, which heed may choose otherwise
        for table in ("model", "decoding"):
            kept |= flattened(getattr(recipe, table).model_dump(mode="json", exclude_none=True), f"{table}.")
    if folder := data_dir():  # as for the recipe of a run
        kept["data.dir"] = str(folder)
    return None, {"task": recipe.task, "seed": recipe.seed, **kept, **keys}


def _plan(recipe: Path | None, keys: dict[str, object], options: TrainOptions, teacher: Path) -> Plan:
    """Plan the student's training without translations. Raises HeedError for a recipe or data that is refused."""
    from heed.core.config import Document, read_toml
    from heed.planner import Planner
    from heed.text.doctor.findings import check_diagnosis

    planner = Planner(Document() if recipe is None else read_toml(recipe), keys, options)
    try:
        plan = planner.plan()
    except MissingInputError as error:
        raise MissingInputError(
            f"{error} The teachers translate the training data of {teacher}: put the file back, or name the folder of "
            "its files with --data.dir."
        ) from error
    check_diagnosis(plan.diagnosis, options.force)
    return plan
