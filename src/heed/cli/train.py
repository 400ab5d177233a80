"""`heed train`: from a recipe, or from two text files and nothing else."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from heed.cli.launch import launch
from heed.cli.options import (
    Debug,
    Device,
    FloatKind,
    OnBadBytes,
    Quiet,
    Seed,
    SrcColumn,
    TgtColumn,
    Threads,
    language_of,
    parse_minutes,
    use_threads,
)  # fmt: skip
from heed.core.errors import UsageError

if TYPE_CHECKING:
    from heed.planner import Plan, TrainOptions
    from heed.training.ranks import Ranks
    from heed.training.trainer import Outcome

KEYS = {
    "task": "task", "src": "data.src", "tgt": "data.tgt", "pairs": "data.pairs", "text": "data.text",
    "valid_src": "data.valid_src", "valid_tgt": "data.valid_tgt", "valid_pairs": "data.valid_pairs",
    "valid_text": "data.valid_text", "src_lang": "data.src_lang", "tgt_lang": "data.tgt_lang",
    "src_column": "data.src_column", "tgt_column": "data.tgt_column", "seed": "seed",
    "precision": "training.precision", "errors": "data.errors", "tag": "data.tag",
    "max_steps": "training.max_steps", "patience": "training.patience",
}  # fmt: skip
"""The recipe key that each plain flag stands for."""


InitVocabulary = Literal["kept", "new"]

FILES_ARE_FLAGS = "Data is named by flags: --src F --tgt F, --pairs F or --text F."


def train(
    words: Annotated[
        list[str] | None, typer.Argument(metavar="RECIPE.toml", help="Without it, heed chooses everything.")
    ] = None,
    task: Annotated[str | None, typer.Option(help="translation or language-model (told by the files).")] = None,
    src: Annotated[str | None, typer.Option(help="Source side, a sentence a line (.gz, .xz, .zst too).")] = None,
    tgt: Annotated[str | None, typer.Option(help="Target side.")] = None,
    pairs: Annotated[str | None, typer.Option(help="One file: .csv, .tsv, .jsonl, .parquet or .tmx.")] = None,
    src_column: SrcColumn = None,
    tgt_column: TgtColumn = None,
    text: Annotated[str | None, typer.Option(help="Text of a language model.")] = None,
    valid_src: Annotated[str | None, typer.Option(help="Validation source; else pairs are held out.")] = None,
    valid_tgt: Annotated[str | None, typer.Option(help="Validation target.")] = None,
    valid_pairs: Annotated[str | None, typer.Option(help="Validation pairs in one file.")] = None,
    valid_text: Annotated[str | None, typer.Option(help="Validation text of a language model.")] = None,
    src_lang: Annotated[str | None, typer.Option(help="Language code of the source, such as en.")] = None,
    tgt_lang: Annotated[str | None, typer.Option(help="Language code of the target, such as de.")] = None,
    tag: Annotated[str | None, typer.Option(help="Stands before each source, such as 2de.")] = None,
    part: Annotated[
        list[str] | None, typer.Option(metavar="src=F,tgt=F,tag=bt,repeat=2", help="More training data (repeatable).")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="The run folder to make.")] = None,
    init: Annotated[Path | None, typer.Option(metavar="RUN", help="Fine-tune: begin with this run's weights.")] = None,
    init_vocabulary: Annotated[InitVocabulary, typer.Option(help="With --init: that run's, or a new one.")] = "kept",
    tokenizer_of: Annotated[Path | None, typer.Option(metavar="RUN", help="Take this run's tokenizers.")] = None,
    resume: Annotated[Path | None, typer.Option(metavar="RUN", help="Continue this run; may set new limits.")] = None,
    strict: Annotated[bool, typer.Option("--strict", help="With --resume: refuse a damaged checkpoint.")] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the run that is in --out.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be trained, how long, and stop.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Train although the data doctor says stop.")] = False,
    nproc: Annotated[int, typer.Option(help="Processes that train together on this machine.", min=1)] = 1,
    max_steps: Annotated[int | None, typer.Option(help="Stop after this number of updates.", min=1)] = None,
    patience: Annotated[int | None, typer.Option(help="Stop after validations without a better score.", min=0)] = None,
    max_time: Annotated[str | None, typer.Option(help="Stop after this time: 90s, 30m, 2h.")] = None,
    precision: Annotated[FloatKind | None, typer.Option(help="Of the arithmetic; weights are float32.")] = None,
    errors: Annotated[OnBadBytes | None, typer.Option(help="Bytes that are not UTF-8: stop, or U+FFFD.")] = None,
    seed: Seed = None,
    threads: Threads = 0,
    device: Device = "auto",
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Train a model into a run folder.

    Any key of a recipe is a flag: --training.lr=3e-4 --model.num_encoder_layers=6.

    Examples:

      heed train --task translation --src a.en --tgt a.de --out runs/en-de

      heed train recipes/translation/multi30k-en-de.toml --out runs/m30k

      heed train --resume runs/en-de
    """
    from heed.core.config import parse_overrides
    from heed.core.environment import distributed
    from heed.text.readers import parse_column

    if nproc > 1 and distributed().world_size == 1:
        raise typer.Exit(launch(nproc, sys.argv[1:]))
    said = locals()
    recipe, arguments = split_words(words or [])
    overrides = parse_overrides(arguments)
    said |= {"src_column": parse_column(src_column), "tgt_column": parse_column(tgt_column)}
    overrides.update({key: said[name] for name, key in KEYS.items() if said[name] is not None})
    if part:
        overrides["data.parts"] = [*_parts_of(recipe), *map(parse_part, part)]
    if max_time is not None:
        overrides["training.max_minutes"] = parse_minutes(max_time)
    if resume is not None:
        others = {
            "a recipe": recipe, "--out": out, "--init": init, "--tokenizer-of": tokenizer_of, "--overwrite": overwrite,
            "--dry-run": dry_run, "--init-vocabulary new": init_vocabulary == "new",
        }  # fmt: skip
        _refuse_with_resume(resume, [name for name, value in others.items() if value])
        use_threads(threads)
        _resume(resume, device, quiet, strict, overrides)
        return
    if recipe is None:
        overrides = {**_task_of(src or tgt or pairs, text), **_languages_of({"src": src, "tgt": tgt}), **overrides}
        if "task" not in overrides:
            raise UsageError("say what to train: --task translation --src F --tgt F, or the path of a recipe.")
    if out is None and not dry_run:
        raise UsageError("--out is missing: name the run folder to make, such as --out runs/en-de.")
    from heed.planner import TrainOptions

    new_vocabulary = init_vocabulary == "new"
    if new_vocabulary and (init is None or tokenizer_of is not None):
        raise UsageError("--init-vocabulary new goes with --init RUN, and not with --tokenizer-of.")
    options = TrainOptions(out or Path(), overwrite, force, init, device, quiet, tokenizer_of, new_vocabulary)
    use_threads(threads)
    _train(recipe, overrides, options, dry_run)


def split_words(words: Sequence[str]) -> tuple[Path | None, list[str]]:
    """The recipe among the words that are no known option, and the flags that are recipe keys.

    A flag is `--KEY=VALUE` or `--KEY VALUE`, so a word behind a flag without `=` belongs to it.
    """
    recipe: Path | None = None
    flags: list[str] = []
    rest = iter(words)
    for word in rest:
        if word.partition("=")[0] == "--valid":
            raise UsageError(
                "--valid is several flags: --valid-src F --valid-tgt F, --valid-pairs F or --valid-text F."
            )
        if word.startswith("-"):
            flags.append(word)
            if "=" not in word:
                flags.extend(value for value in [next(rest, None)] if value is not None)
        elif recipe is None:
            recipe = Path(word)
        else:
            raise UsageError(f"one recipe at a time, got {recipe} and {word}. {FILES_ARE_FLAGS}")
    if recipe is not None and recipe.suffix.lower() != ".toml":
        raise UsageError(f"{recipe}: the name of a recipe ends in .toml. {FILES_ARE_FLAGS}")
    return recipe, flags


def parse_part(text: str) -> dict[str, object]:
    """`src=a.en,tgt=a.de,tag=bt,repeat=2` as a table of `data.parts`, whose keys are checked with the recipe."""
    table: dict[str, object] = {}
    for word in text.split(","):
        key, equals, value = word.partition("=")
        if not (equals and key.strip() and value.strip()):
            raise UsageError(f"--part is KEY=VALUE,KEY=VALUE, such as src=more.en,tgt=more.de,tag=bt, got {text!r}.")
        table[key.strip()] = int(value) if key.strip() == "repeat" and value.isdecimal() else value.strip()
    return table


def _parts_of(recipe: Path | None) -> list[object]:
    """The parts that a recipe names already; what is no list of them is left for the recipe's check to refuse."""
    from heed.core.config import read_toml

    data = read_toml(recipe).values.get("data") if recipe else None
    parts = data.get("parts", []) if isinstance(data, dict) else []
    return parts if isinstance(parts, list) else [parts]


def _task_of(pairs: str | None, text: str | None) -> dict[str, object]:
    """What the files are for, unless something else was said."""
    return {"task": "translation"} if pairs else {"task": "language-model"} if text else {}


def _languages_of(files: dict[str, str | None]) -> dict[str, object]:
    """`train.de.gz` is German, unless something else was said."""
    languages = {f"data.{side}_lang": language_of(name) for side, name in files.items() if name}
    return {key: code for key, code in languages.items() if code}


def _train(recipe: Path | None, overrides: dict[str, object], options: TrainOptions, dry_run: bool) -> None:
    from heed.execute import follow
    from heed.nn.device import choose_device
    from heed.training.ranks import joined

    with joined(choose_device(options.device)) as ranks:
        if ranks.is_first:
            _lead(recipe, overrides, options, dry_run, ranks)
        elif not dry_run:
            finish(options.out, follow(options, ranks), quiet=True)


def _lead(
    recipe: Path | None, overrides: dict[str, object], options: TrainOptions, dry_run: bool, ranks: Ranks
) -> None:
    """Say what will be done, and do it; the first of several ranks does it for all."""
    from heed.core.config import Document, read_toml
    from heed.core.progress import message
    from heed.execute import check_folder, execute
    from heed.planner import Planner, check_diagnosis, require_readable

    if not dry_run:
        check_folder(options)
    document = Document() if recipe is None else read_toml(recipe)
    plan = Planner(document, overrides, options).plan()
    require_readable(plan.diagnosis)
    message(plan.diagnosis.render(), options.quiet)
    check_diagnosis(plan.diagnosis, options.force)
    if not options.quiet:
        _show_choices(plan)
        _show_expectation(plan)
    if not dry_run:
        finish(options.out, execute(plan, options, ranks), options.quiet)


def _show_choices(plan: Plan) -> None:
    from heed.core.progress import message, warn

    message(f"machine: {plan.machine.render()}")
    if advice := plan.machine.advice(plan.recipe.training.precision):
        warn(advice)
    if not plan.reasons:
        return
    message("chosen (written to recipe.toml; change any of them with a flag of the same name):")
    dumped = plan.recipe.model_dump()
    for key, reason in plan.reasons.items():
        table, name = key.split(".")
        message(f"  {key:28} {dumped[table][name]!s:12} {reason}")


def _show_expectation(plan: Plan) -> None:
    from heed.core.progress import message, warn
    from heed.planner import expectation

    expected = expectation(plan)
    message(expected.render() if expected else "expected: a few seconds, as nothing is learned by gradients")
    if expected and (warning := expected.warning(plan.recipe.training)):
        warn(warning)


def _refuse_with_resume(folder: Path, others: list[str]) -> None:
    if others:
        raise UsageError(
            f"--resume uses {folder}/recipe.toml and cannot be combined with {', '.join(others)}. "
            "Give only new limits (--max-time, --max-steps, --patience), or start a new run with --init."
        )


def _resume(folder: Path, device: str, quiet: bool, strict: bool, limits: dict[str, object]) -> None:
    from heed.execute import resume
    from heed.nn.device import choose_device
    from heed.planner import TrainOptions
    from heed.training.ranks import joined

    options = TrainOptions(folder, device=device, quiet=quiet)
    with joined(choose_device(device)) as ranks:
        finish(folder, resume(options, strict, ranks, limits), quiet or not ranks.is_first)


def finish(folder: Path, outcome: Outcome, quiet: bool) -> None:
    """Say how a training ended. Raises typer.Exit when a signal ended it."""
    from heed.core.environment import distributed
    from heed.core.progress import message

    progress = outcome.progress
    message(f"{outcome.reason}: {progress.step:,} updates, {progress.seconds / 60:.1f} minutes", quiet)
    if outcome.interrupted_by is not None:
        processes = distributed().world_size
        together = f" --nproc {processes}" if processes > 1 else ""
        message(f"saved. Continue with: heed train --resume {folder}{together}", quiet)
        raise typer.Exit(128 + outcome.interrupted_by)
    message(f"run: {folder}   report: {folder / 'report.md'}", quiet)
