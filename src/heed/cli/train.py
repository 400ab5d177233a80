"""`heed train`: train a model from files or a recipe, or resume a training."""

from __future__ import annotations

import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import getitem
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from heed.cli.flags import flags_given, given
from heed.cli.launch import launch
from heed.cli.options import (
    Device,
    FloatKind,
    MarkColumn,
    OnBadBytes,
    Quiet,
    Seed,
    SrcColumn,
    TagColumn,
    TgtColumn,
    Threads,
    TokenColumn,
    language_of,
    merge_keys,
    parse_minutes,
    use_threads,
)  # fmt: skip
from heed.cli.restart import has_scorer, new_limits, require_same_data
from heed.cli.seeds import new_runs, old_runs, train_seeds
from heed.core.environment import distributed
from heed.core.errors import UsageError
from heed.core.progress import message, warn
from heed.core.run_files import resume_command

if TYPE_CHECKING:
    from heed.planner import Plan, TrainOptions
    from heed.training.ranks import Ranks
    from heed.training.trainer import Outcome

Words = Annotated[
    list[str] | None, typer.Argument(metavar="RECIPE.toml", help="Without a recipe, heed chooses the settings.")
]
Parts = Annotated[
    list[str] | None, typer.Option(metavar="src=F,tgt=F,tag=bt,repeat=2", help="More training data (repeatable).")
]
USE_FLAGS = "Give data with flags: --src F --tgt F, --pairs F or --text F."


@dataclass(frozen=True)
class DataFlags:
    """The data: keys of the recipe's `[data]` table, and its task."""

    task: Annotated[str | None, typer.Option(help="The task, such as translation (inferred from the files).")] = None
    src: Annotated[str | None, typer.Option(help="Source side, one sentence per line (also .gz, .xz, .zst).")] = None
    tgt: Annotated[str | None, typer.Option(help="Target side.")] = None
    pairs: Annotated[str | None, typer.Option(help="One file: .csv, .tsv, .jsonl, .parquet or .tmx.")] = None
    src_column: SrcColumn = None
    tgt_column: TgtColumn = None
    text: Annotated[str | None, typer.Option(help="Text for a language model.")] = None
    valid_src: Annotated[str | None, typer.Option(help="Validation source (default: held-out pairs).")] = None
    valid_tgt: Annotated[str | None, typer.Option(help="Validation target.")] = None
    valid_pairs: Annotated[str | None, typer.Option(help="Validation pairs in one file.")] = None
    valid_text: Annotated[str | None, typer.Option(help="Validation text for a language model.")] = None
    conll: Annotated[str | None, typer.Option(help="CoNLL file: one token per line, with its tags in columns.")] = None
    valid_conll: Annotated[str | None, typer.Option(help="Validation CoNLL file (default: held out).")] = None
    token_column: TokenColumn = None
    tag_column: TagColumn = None
    mark_column: MarkColumn = None
    captions: Annotated[str | None, typer.Option(help="Table of captions (columns image, caption).")] = None
    images: Annotated[str | None, typer.Option(help="Folder or .tar of the captioned images.")] = None
    src_lang: Annotated[str | None, typer.Option(help="Language code of the source, such as en.")] = None
    tgt_lang: Annotated[str | None, typer.Option(help="Language code of the target, such as de.")] = None
    tag: Annotated[str | None, typer.Option(help="Tag before each source, such as 2de.")] = None
    part: Parts = None
    table: Annotated[str | None, typer.Option(help="Texts with labels: .csv, .tsv, .jsonl or .parquet.")] = None
    valid_table: Annotated[str | None, typer.Option(help="Validation table (default: held-out rows).")] = None
    text_column: Annotated[
        list[str] | None, typer.Option(metavar="C", help="Column of the texts; twice for pairs.")
    ] = None
    label_column: Annotated[str | None, typer.Option(metavar="C", help="Column of the labels.")] = None
    label_separator: Annotated[str | None, typer.Option(help="Separator of several labels in a cell.")] = None
    errors: Annotated[OnBadBytes | None, typer.Option(help="Invalid UTF-8: stop, or read it as U+FFFD.")] = None

    def keys(self, recipe: Path | None) -> dict[str, Any]:
        """The recipe keys that were given. `--part` adds to the parts of the recipe."""
        from heed.text.readers import parse_column

        values = dict(given(self))
        keys = {"task": values.pop("task")} if "task" in values else {}
        if parts := values.pop("part", None):
            keys["data.parts"] = [*_parts_of(recipe), *map(parse_part, parts)]
        for name in ("src_column", "tgt_column", "token_column", "tag_column", "mark_column", "label_column"):
            if name in values:
                values[name] = parse_column(values[name])
        if columns := values.pop("text_column", None):
            values["text_column"] = [*map(parse_column, columns)]
        return keys | {f"data.{name}": value for name, value in values.items()}

    def inferred(self) -> dict[str, Any]:
        """The task and the languages that the files suggest: `train.de.gz` is German."""
        from heed.tasks import TASK_OF_DATA

        task = next((task for key, task in TASK_OF_DATA.items() if getattr(self, key)), "")
        languages = {"src_lang": language_of(self.src or ""), "tgt_lang": language_of(self.tgt or "")}
        keys = {"task": task} | {f"data.{name}": code for name, code in languages.items()}
        return {key: value for key, value in keys.items() if value}


@dataclass(frozen=True)
class RunFlags:
    """The run folder, the runs that it starts from, and how to continue or replace a run."""

    out: Annotated[Path | None, typer.Option(help="The run folder to create.")] = None
    init: Annotated[Path | None, typer.Option(metavar="RUN", help="Fine-tune: start from this run's weights.")] = None
    init_vocabulary: Annotated[
        Literal["kept", "new"], typer.Option(help="With --init: keep its vocabulary, or train a new one.")
    ] = "kept"  # fmt: skip
    init_parts: Annotated[
        Literal["all", "encoder", "embeddings"],
        typer.Option(help="With --init: take only its encoder or its token embeddings, for another task."),
    ] = "all"  # fmt: skip
    init_backward: Annotated[
        Path | None, typer.Option(metavar="RUN", help="With --init-parts encoder: a backward language model (ELMo).")
    ] = None  # fmt: skip
    made_for: Annotated[
        Literal["argos", "marian"] | None,
        typer.Option("--for", help="Choose settings this export format supports."),
    ] = None  # fmt: skip
    tokenizer_of: Annotated[Path | None, typer.Option(metavar="RUN", help="Use this run's tokenizers.")] = None
    resume: Annotated[
        Path | None, typer.Option(metavar="RUN", help="Continue this run, with new limits if given.")
    ] = None  # fmt: skip
    strict: Annotated[bool, typer.Option("--strict", help="With --resume: refuse a damaged checkpoint.")] = False
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the run in --out.")] = False
    restartable: Annotated[bool, typer.Option("--restartable", help="Continue the run in --out, or start it.")] = False
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the plan and expected time, then stop.")] = False
    force: Annotated[
        bool, typer.Option("--force", help="Train despite errors the data doctor found.")
    ] = False  # fmt: skip


@dataclass(frozen=True)
class TrainingFlags:
    """Limits and arithmetic of the training."""

    max_steps: Annotated[int | None, typer.Option(help="Stop after this number of updates.", min=1)] = None
    patience: Annotated[int | None, typer.Option(help="Stop after N validations without improvement.", min=0)] = None
    max_time: Annotated[str | None, typer.Option(help="Stop after this time: 90s, 30m, 2h.")] = None
    precision: Annotated[FloatKind | None, typer.Option(help="Precision of arithmetic; weights are float32.")] = None
    seed: Seed = None

    def keys(self) -> dict[str, Any]:
        """The recipe keys that were given."""
        values = dict(given(self))
        keys = {"seed": values.pop("seed")} if "seed" in values else {}
        if "max_time" in values:
            keys["training.max_minutes"] = parse_minutes(values.pop("max_time"))
        return keys | {f"training.{name}": value for name, value in values.items()}


def train(
    *,
    words: Words = None,
    data: DataFlags,
    run: RunFlags,
    training: TrainingFlags,
    nproc: Annotated[int, typer.Option(help="Processes that train together on this machine.", min=1)] = 1,
    seeds: Annotated[int, typer.Option(help="Models to train at once, with different seeds.", min=1)] = 1,
    threads: Threads = 0,
    device: Device = "auto",
    quiet: Quiet = False,
) -> None:
    """Train a model into a run folder.

    Any key of a recipe is a flag: --training.lr=3e-4 --model.num_encoder_layers=6.

    Examples:

      heed train --task translation --src a.en --tgt a.de --out runs/en-de

      heed train recipes/translation/multi30k-en-de.toml --out runs/m30k
    """
    if seeds > 1 and (nproc > 1 or distributed().world_size > 1):
        raise UsageError("--seeds trains each model in a process of its own: leave out --nproc and torchrun.")
    if nproc > 1 and distributed().world_size == 1:
        raise typer.Exit(launch(nproc, sys.argv[1:]))
    recipe, arguments = recipe_and_flags(words or [])
    keys = recipe_keys(arguments, {**data.keys(recipe), **training.keys()})
    if run.resume is not None:
        _refuse_with_resume(run, recipe)
        if seeds > 1:
            raise typer.Exit(train_seeds(old_runs(seeds, run.resume), True, threads, sys.argv[1:], quiet))
        use_threads(threads)
        _resume(run, device, quiet, keys)
        return
    if run.strict:
        raise UsageError("--strict applies only to --resume RUN, whose checkpoints it checks.")
    inferred = data.inferred() if recipe is None else {}
    guessed = inferred.keys() - keys.keys() - {"task"}
    keys = {**inferred, **keys}
    if recipe is None and "task" not in keys:
        raise UsageError("nothing to train: give --task translation --src F --tgt F, or the path of a recipe.")
    if run.out is None and not run.dry_run:
        raise UsageError("--out is missing: name the run folder to create, such as --out runs/en-de.")
    if run.made_for is not None:
        from heed.export.formats import FORMATS

        keys = {**FORMATS[run.made_for].keys, **keys}
    if seeds > 1:
        if run.out is None or run.dry_run:
            raise UsageError("--dry-run shows the plan of one training: leave out --seeds.")
        raise typer.Exit(train_seeds(new_runs(seeds, run.out, recipe, keys), False, threads, sys.argv[1:], quiet))
    from heed.planner import TrainOptions

    if run.restartable and run.overwrite:
        raise UsageError("--restartable continues the run in --out, which --overwrite removes: leave out one of them.")
    options = TrainOptions(
        run.out or Path(), run.overwrite or run.restartable, run.force, run.init, device, quiet, run.tokenizer_of,
        run.init_vocabulary == "new", run.init_parts, run.init_backward,
    )  # fmt: skip
    use_threads(threads)
    run_training(recipe, keys, options, run.dry_run, run.restartable, advises=not threads, guessed=guessed)


def recipe_and_flags(words: Sequence[str]) -> tuple[Path | None, list[str]]:
    """The recipe among the words that are not declared options, and the flags that are recipe keys.

    A flag is `--KEY=VALUE` or `--KEY VALUE`, so a word after a flag without `=` belongs to it.
    """
    recipe: Path | None = None
    flags: list[str] = []
    rest = iter(words)
    for word in rest:
        if word.startswith("-"):
            flags.append(word)
            if "=" not in word:
                flags.extend(value for value in [next(rest, None)] if value is not None)
        elif recipe is None:
            recipe = Path(word)
        else:
            raise UsageError(f"expected one recipe, got {recipe} and {word}. {USE_FLAGS}")
    if recipe is not None and recipe.suffix.lower() != ".toml":
        raise UsageError(f"{recipe} is not a recipe: its name must end in .toml. {USE_FLAGS}")
    return recipe, flags


def recipe_keys(arguments: Sequence[str], flags: Mapping[str, object]) -> dict[str, object]:
    """Join the keys in `--KEY=VALUE` arguments and those of other flags. Raises UsageError for one that is in both."""
    from heed.core.config import parse_overrides

    return merge_keys(parse_overrides(arguments), flags)


def parse_part(text: str) -> dict[str, object]:
    """`src=a.en,tgt=a.de,tag=bt,repeat=2` as a table of `data.parts`, whose keys are checked with the recipe."""
    table: dict[str, object] = {}
    for word in text.split(","):
        key, equals, value = word.partition("=")
        key, value = key.strip(), value.strip()
        if not (equals and key and value):
            raise UsageError(f"--part is KEY=VALUE,KEY=VALUE, such as src=more.en,tgt=more.de,tag=bt, got {text!r}.")
        table[key] = int(value) if key == "repeat" and value.isdecimal() else value
    return table


def _parts_of(recipe: Path | None) -> list[object]:
    """The parts in a recipe. A value that is not a list is kept, for the check of the recipe to refuse."""
    from heed.core.config import read_toml

    data = read_toml(recipe).values.get("data") if recipe else None
    parts = data.get("parts", []) if isinstance(data, dict) else []
    return parts if isinstance(parts, list) else [parts]


def run_training(
    recipe: Path | None, overrides: dict[str, object], options: TrainOptions, dry_run: bool, restartable: bool = False,
    advises: bool = False, guessed: Collection[str] = (),
) -> None:  # fmt: skip
    """Plan and carry out a training on all ranks, and print how it ended.

    `restartable`: continue from a checkpoint of the run, or do nothing if it is complete. `advises`: on threads.
    `guessed`: the keys that the user did not give, which may differ from those of a run that continues.
    """
    from heed.execute import can_continue, follow, is_complete, resume
    from heed.nn.device import choose_device
    from heed.training.ranks import joined

    outcome = None
    by_user = {key: value for key, value in overrides.items() if key not in guessed}
    with joined(choose_device(options.device)) as ranks:
        if any(ranks.highest(restartable and not dry_run and can_continue(options.out))):
            outcome = resume(options, ranks=ranks, limits=new_limits(options.out, by_user))
        elif restartable and not dry_run and is_complete(options.out):
            require_same_data(options.out, by_user)
            limits = new_limits(options.out, by_user) if has_scorer(options.out) else {}
            if limits:
                outcome = resume(options, ranks=ranks, limits=limits)
            else:
                message(f"{options.out} is complete: nothing is left to train.", options.quiet or not ranks.is_first)
        elif ranks.is_first:
            outcome = _lead(recipe, overrides, options, dry_run, ranks, advises)
        elif not dry_run:
            outcome = follow(options, ranks)
    if outcome is not None:
        finish(options.out, outcome, options.quiet or not ranks.is_first)


def _lead(
    recipe: Path | None, overrides: dict[str, object], options: TrainOptions, dry_run: bool, ranks: Ranks, advises: bool
) -> Outcome | None:
    """Print the plan and carry it out, unless that is all; on several ranks, the first one does."""
    from heed.core.config import Document, read_toml
    from heed.execute import check_folder, execute
    from heed.planner import Planner, advise_threads
    from heed.text.doctor.findings import check_diagnosis, require_readable

    if not dry_run:
        check_folder(options)
    document = Document() if recipe is None else read_toml(recipe)
    plan = Planner(document, overrides, options).plan()
    require_readable(plan.diagnosis)
    message(plan.diagnosis.render(), options.quiet or options.is_part)
    check_diagnosis(plan.diagnosis, options.force)
    if not options.quiet:
        _show_choices(plan)
        _show_expectation(plan)
        if advises and (advice := advise_threads(plan)):
            message(f"advice: {advice}")
    return None if dry_run else execute(plan, options, ranks)


def _show_choices(plan: Plan) -> None:
    from heed.core.environment import guide
    from heed.tasks import task_type

    message(f"machine: {plan.machine.render()}")
    if advice := plan.machine.advice(plan.recipe.training.precision):
        warn(advice)
    if not plan.reasons:
        return
    message("chosen (written to recipe.toml; change any of them with a flag of the same name):")
    dumped = plan.recipe.model_dump()
    for key, reason in plan.reasons.items():
        value = reduce(getitem, key.split("."), dumped)
        message(f"  {key:28} {value!s:12} {reason}")
    if any(reason.endswith("(measured)") for reason in plan.reasons.values()):
        message(f"  measured: see {guide('results.md')}")
    if plan.vocabularies is None and (note := task_type(plan.recipe.task).tokenizer_note):
        message(f"  note: {note}")


def _show_expectation(plan: Plan) -> None:
    from heed.models import MODELS

    if plan.expected is not None:
        message(plan.expected.render(plan.vocabularies is not None))
    elif MODELS[plan.recipe.model.kind].count_based:
        unit = "minutes" if MODELS[plan.recipe.model.kind].derives else "seconds"
        rest = plan.recipe.training.max_minutes
        then = ""
        if scorer := plan.recipe.training.scorer:
            then = f"; then a second model ({scorer}) is trained" + (f", {rest:g} minutes in all" if rest else "")
        message(f"expected: a few {unit}, because the model is count-based{then}")
    if plan.warning:
        warn(plan.warning)
    if plan.expected_quality:
        message(f"expected quality: {plan.expected_quality}")
    if plan.similar_corpora:
        heading, *corpora = plan.similar_corpora
        message("\n  ".join([f"{heading}:", *corpora]))


def _refuse_with_resume(run: RunFlags, recipe: Path | None) -> None:
    others = [flag for flag in flags_given(run) if flag not in ("--resume", "--strict", "--force")]
    if recipe is not None:
        others.insert(0, "a recipe")
    if others:
        raise UsageError(
            f"--resume uses {run.resume}/recipe.toml and cannot be combined with {', '.join(others)}. "
            "Give only new limits (--max-time, --max-steps, --patience), or start a new run with --init."
        )


def _resume(run: RunFlags, device: str, quiet: bool, limits: dict[str, object]) -> None:
    from heed.execute import resume
    from heed.nn.device import choose_device
    from heed.planner import TrainOptions
    from heed.training.ranks import joined

    assert run.resume is not None
    options = TrainOptions(run.resume, force=run.force, device=device, quiet=quiet)
    with joined(choose_device(device)) as ranks:
        outcome = resume(options, run.strict, ranks, limits)
    finish(run.resume, outcome, quiet or not ranks.is_first)


def finish(folder: Path, outcome: Outcome, quiet: bool) -> None:
    """Print how a training ended. Raises typer.Exit when a signal ended it."""
    progress = outcome.progress
    how = f"{outcome.reason}: {progress.step:,} update{'s' * (progress.step != 1)}"
    if outcome.reason == "counted":  # as metrics.jsonl calls it
        how = "estimated from counts"
    message(f"{how}, {progress.seconds / 60:.1f} minutes", quiet)
    if outcome.interrupted_by is not None:
        processes = distributed().world_size
        together = f" --nproc {processes}" if processes > 1 else ""
        message(f"saved. Continue with: {resume_command(folder)}{together}", quiet)
        raise typer.Exit(128 + outcome.interrupted_by)
    message(f"run: {folder}   report: {folder / 'report.md'}", quiet)
