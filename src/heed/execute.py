"""Execution of a plan: prepare the run folder, train or count, write the report; and resumption of a training.

With several ranks, rank 0 prepares the folder (`execute`) and the others join it (`follow`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from heed.core.allocator import give_memory_back
from heed.core.config import to_toml
from heed.core.errors import DataError, UsageError
from heed.core.files import empty_folder, is_claimed, is_debris, require_utf8, sole_writer, storage_errors
from heed.core.own_scorer import SCORER, VERDICT
from heed.core.progress import message, warn
from heed.core.run_files import RECIPE, WEIGHTS, RunFiles, resume_command
from heed.data.validation import read_valid
from heed.limits import require_higher, require_limits, require_only_limits
from heed.models import GenerativeModel
from heed.models.depth_change import with_layers
from heed.models.vocabulary_change import same_pieces, with_vocabularies
from heed.nn.device import choose_device
from heed.nn.weight_file import save_weights
from heed.planner import Plan, TrainOptions, tokenizer_of, transfer_of
from heed.recipe import require_trainable_together
from heed.report.page import REPORT, finish_report
from heed.report.usability import kept_validation
from heed.run import Run, load_weights
from heed.scorer import judge, plan_scorer, scorer_limits, scorer_options
from heed.tasks.prepare import CORPUS, DIAGNOSIS, add_seen, require_enough, vocabulary_digests, write_corpus
from heed.tasks.task import Task
from heed.text.doctor.diagnose import unknown_pieces
from heed.text.doctor.findings import Finding, check_diagnosis
from heed.training.checkpoints import (
    Checkpoint,
    list_checkpoints,
    newest_checkpoint,
    require_room_for,
    warn_about_arithmetic,
)
from heed.training.metrics_log import LOG, MetricsLog, read_metrics, validation_event
from heed.training.progress import Progress
from heed.training.ranks import ALONE, Ranks
from heed.training.trainer import Outcome, Trainer
from heed.transfer import Transfer


def check_folder(options: TrainOptions, needed: Sequence[Path] = ()) -> None:
    """Raise UsageError if the run folder is in use and may not be overwritten, or if nothing could read it.

    `needed`: files, and runs besides those of the options, that the training needs.
    """
    out = options.out
    require_utf8(str(out))
    if out.exists() and not out.is_dir():
        raise UsageError(f"--out {out} is a file; a run is a folder.")
    if not out.is_dir() or all(map(is_debris, out.iterdir())):
        return
    if not options.overwrite:
        raise UsageError(_in_use(out))
    if not (out / RECIPE).exists():
        raise UsageError(f"{out} is not empty and is not a run folder, so nothing was removed.")
    if is_claimed(out):
        raise UsageError(f"another process is training in {out}. Stop it first.")
    for path in (*needed, options.init, options.init_backward, options.tokenizer_of):
        if path is not None and path.resolve().is_relative_to(out.resolve()):
            raise UsageError(f"replacing {out} would remove {path}, which this training needs. Name another --out.")


def is_complete(out: Path) -> bool:
    """Whether a folder has a run that is not a training which was interrupted."""
    return _is_trained(out) and not can_be_finished(out)


def can_continue(out: Path) -> bool:
    """Whether a folder has a training that was interrupted, and can go on."""
    return bool(list_checkpoints(out / "checkpoints")) or can_be_finished(out)


def can_be_finished(out: Path) -> bool:
    """Whether a folder has a model that was counted, and whose validation, report or scorer is missing."""
    if not ((out / WEIGHTS).exists() and (out / RECIPE).exists()):
        return False
    run = Run(out)
    is_cut_off = run.files.has(CORPUS) and not (out / REPORT).exists() and run.blank_model.count_based
    return is_cut_off or run.awaits_scorer


def _is_trained(out: Path) -> bool:
    """Whether a folder has a model whose training has ended, whatever its scorer's has."""
    return (out / WEIGHTS).exists() and ((out / REPORT).exists() or not (out / LOG).exists())


def _in_use(out: Path) -> str:
    checkpoints = list_checkpoints(out / "checkpoints")
    if checkpoints:
        newest = f"{out} already holds a run whose newest checkpoint is {checkpoints[-1].name}."
        return f"{newest} Continue with `{resume_command(out)}`, or start again with --overwrite."
    if can_continue(out):
        return f"{out} already holds a run. Finish it with `{resume_command(out)}`, or replace it with --overwrite."
    contents = "a run without checkpoints" if (out / RECIPE).exists() else "files"
    return f"{out} already holds {contents}. Start again with --overwrite, or name another --out."


def execute(plan: Plan, options: TrainOptions, ranks: Ranks = ALONE) -> Outcome:
    """Prepare the data, train, and write the run folder. With several ranks, rank 0 calls this."""
    check_diagnosis(plan.diagnosis, options.force)
    require_trainable_together(plan.recipe, ranks.world_size)
    if plan.recipe.data.holds_out:
        require_enough(plan.diagnosis.num_pairs, plan.recipe.data.num_held_out)
    data = plan.recipe.data
    check_folder(options, [Path(data.resolve(path)) for path in data.paths])
    init = Run(options.init) if options.init else None
    reused, transfer = tokenizer_of(options, init), transfer_of(options, init)
    with _nothing_left_by_failures(options.out):
        with storage_errors("write the run", path=options.out):
            run = prepare_run(plan, options.out, init, options.quiet, reused, transfer, options.is_student)
        check_pieces(run, options.force, options.quiet)
        for text in run.task().warnings():
            warn(text, options.quiet)
        ranks.wait()
        model = first_model(run, init, options.quiet, transfer)
    outcome = _learn(run, model, None, options.quiet, ranks)
    return _train_scorer(run, options) if plan.recipe.training.scorer else outcome


@contextmanager
def _nothing_left_by_failures(folder: Path) -> Iterator[None]:
    """Prepare a run folder as its sole writer, and remove what a failed preparation made in it.

    The same command can then be given again.
    """
    is_new = not folder.exists()
    with storage_errors("write the run", path=folder):
        folder.mkdir(parents=True, exist_ok=True)
    with sole_writer(folder, "preparing a training in"):
        try:
            yield
        except BaseException:
            with suppress(OSError):
                empty_folder(folder, last=RECIPE)
                if is_new:
                    folder.rmdir()
            raise


def follow(options: TrainOptions, ranks: Ranks) -> Outcome:
    """Wait until rank 0 has prepared the run folder, then train with it. The other ranks call this."""
    ranks.wait()
    run = Run(options.out, choose_device(options.device))
    init = Run(options.init) if options.init else None
    return _learn(run, first_model(run, init, True, transfer_of(options, init)), None, options.quiet, ranks)


def check_pieces(run: Run, force: bool, quiet: bool) -> None:
    """Raise DataError if too much of the validation text is unknown to the vocabulary, unless `force`."""
    if not run.task_type.refuses_unknown:
        return
    valid = read_valid(run.folder)
    findings: list[Finding] = []
    for index, side in enumerate(run.sides):
        lines = [row[index] for row in valid]
        named = f"validation {side}" if len(run.sides) > 1 else "validation"
        findings += unknown_pieces(named, lines, run.tokenizers[side].encode(lines))
    for finding in findings:
        if finding.severity == "stop" and not force:
            raise DataError(f"{finding.message} {finding.advice} Or continue with --force.")
        message(f"{finding.severity}: {finding.message}", quiet)


def prepare_run(
    plan: Plan, folder: Path, init: Run | None = None, quiet: bool = False, reused: Run | None = None,
    transfer: Transfer | None = None, is_student: bool = False,
) -> Run:  # fmt: skip
    """Create a run folder with recipe, tokenizers and prepared data.

    The tokenizers are copied from `reused`, if given. The training data of `init` counts as seen. `transfer`: what of
    its weights the model will begin with, if not all. `is_student`: see `TrainOptions`.
    """
    folder.mkdir(parents=True, exist_ok=True)
    give_memory_back()  # from the data doctor
    empty_folder(folder, last=RECIPE)
    files = RunFiles(folder)
    with files.write(RECIPE, "w") as file:
        file.write(to_toml(plan.recipe, plan.reasons))
    with files.write(DIAGNOSIS, "w") as file:
        file.write(plan.diagnosis.render() + "\n")
    if reused is not None:
        for path in sorted(reused.folder.glob("tokenizer*.json")):
            reused.files.copy(path.name, files)
    run = Run(folder, plan.device)
    tokenizers = run.tokenizers if reused else None
    corpus = run.task_type.prepare(plan.recipe, folder, plan.diagnosis, tokenizers, quiet)
    if init is not None:
        add_seen(folder, init.folder)
    if init is not None or reused is not None or plan.expected_quality or is_student:
        parts, backward = (transfer.parts, transfer.backward) if transfer else ("all", None)
        origin: dict[str, Any] = {
            "init": _name(init), "init_backward": _name(backward), "tokenizer_of": _name(reused),
            "is_student": is_student,
        }  # fmt: skip
        write_corpus(folder, replace(corpus, init_parts=parts, expected_quality=plan.expected_quality, **origin))
    message(f"{corpus.num_rows:,} rows for training, {corpus.num_valid:,} for validation", quiet)
    for reason, count in corpus.dropped.items():
        message(f"  left out: {count:,} ({reason})", quiet)
    return Run(folder, plan.device)


def _name(run: Run | None) -> str:
    """The name of the run folder; empty for None."""
    return run.folder.resolve().name if run else ""


def _learn(
    run: Run, model: GenerativeModel, checkpoint: Checkpoint | None, quiet: bool, ranks: Ranks,
    begins: Callable[[], None] = lambda: None,
) -> Outcome:  # fmt: skip
    """Train the model of a prepared run folder, by counting or by gradients, and write the report.

    `begins` is called on rank 0 when every rank can go on from the checkpoint.
    """
    task, recipe = run.task(), run.recipe
    quiet = quiet or not ranks.is_first
    with sole_writer(run.folder) if ranks.is_first else nullcontext():
        if model.count_based:
            outcome = _count(run, model, task, quiet) if ranks.is_first else Outcome("counted", Progress(step=1))
        else:
            message(f"model: {sum(parameter.numel() for parameter in model.parameters()):,} parameters", quiet)
            sizes = recipe.seed, run.device, getattr(recipe.model, "d_model", 0)
            trainer = Trainer(recipe.training, model, task, run.folder, *sizes, quiet, ranks)
            if checkpoint is not None:
                trainer.restore(checkpoint)
                ranks.wait()
                if ranks.is_first:
                    begins()
            outcome = trainer.run()
        if outcome.interrupted_by is None and ranks.is_first:
            try:
                with storage_errors("write the report", path=run.folder):
                    run.predictor.convert()
                    finish_report(run, quiet)
            except (KeyboardInterrupt, SystemExit):
                folder = _folder_to_resume(run)
                message(f"the training is complete, its report is not. Write it with: {resume_command(folder)}")
                raise
    return outcome


def _folder_to_resume(run: Run) -> Path:
    """The folder of the run, or of the one that it scores, which is finished only when both are compared."""
    outer = run.folder.parent
    is_scorer = run.folder.name == SCORER and (outer / RECIPE).exists() and Run(outer).recipe.training.scorer
    return outer if is_scorer else run.folder


def _train_scorer(
    run: Run, options: TrainOptions, strict: bool = False, limits: Mapping[str, object] | None = None
) -> Outcome:
    """Train the model that scores what a run of phrases proposes, or continue to, and see what both are worth."""
    inner = scorer_options(options)
    is_begun = bool(list_checkpoints(inner.out / "checkpoints"))
    if limits:
        require_limits(run, limits)
        if is_begun:
            require_higher(Run(inner.out), scorer_limits(run, limits))
        elif _is_trained(inner.out):
            raise UsageError(f"{inner.out} has no checkpoints from which its training could go on.")
    changed = run.with_recipe(limits) if limits else run

    def begins() -> None:
        if limits:
            run.change_recipe(limits)
            run.files.remove(VERDICT)  # until both are compared again

    with sole_writer(run.folder):
        if is_begun:  # a training that has ended does so again at once
            outcome = resume(inner, strict, limits=scorer_limits(run, limits) if limits else None, begins=begins)
        elif _is_trained(inner.out):
            outcome = _ended(inner.out)
        else:
            plan = plan_scorer(changed, options)
            begins()
            outcome = execute(plan, inner)
        if outcome.interrupted_by is None:
            try:
                judge(changed, options.quiet)
            except (KeyboardInterrupt, SystemExit):
                message(f"both models are trained, and not compared. Continue with: {resume_command(run.folder)}")
                raise
    return outcome


def _ended(out: Path) -> Outcome:
    """How a training ended, by its log."""
    last = read_metrics(out)[-1]
    return Outcome(str(last.get("reason", "trained")), Progress(step=int(last["step"]), seconds=float(last["seconds"])))


def _count(run: Run, model: Any, task: Task, quiet: bool) -> Outcome:
    begin = time.perf_counter()
    task.estimate(model)
    seconds = time.perf_counter() - begin
    with MetricsLog(run.folder) as log:
        log.write("counted", 1, {"seconds": round(seconds, 1)})
    save_weights(run.folder / WEIGHTS, model.state_dict(), {"counted": "true", **vocabulary_digests(run.tokenizers)})
    return _validate_counted(run, model, task, quiet, seconds)


def _validate_counted(run: Run, model: Any, task: Task, quiet: bool, counting: float) -> Outcome:
    """Validate a model. `counting`: the seconds that it took to estimate it."""
    begin = time.perf_counter()
    validation = task.validate(model, task.metrics)
    seconds = round(counting + time.perf_counter() - begin, 1)
    with MetricsLog(run.folder) as log:
        log.write("validation", 1, {**validation_event(validation), "seconds": seconds, "epoch": 1, "best": True})
        log.write("end", 1, {"reason": "counted", "seconds": seconds})
    for score in validation.scores.values():
        message(f"validation: {score.render()}", quiet)
    return Outcome("counted", Progress(step=1, seconds=seconds))


def resume(
    options: TrainOptions, strict: bool = False, ranks: Ranks = ALONE, limits: Mapping[str, object] | None = None,
    begins: Callable[[], None] = lambda: None,
) -> Outcome:  # fmt: skip
    """Continue the training in `options.out` with its recipe.toml, in which limits may have been edited.

    `limits` maps keys such as "training.max_steps" to new values for recipe.toml, counted from the first update. They
    are written, and `begins` is called, when nothing prevents the training from going on.
    """
    folder = options.out
    run = Run(folder, choose_device(options.device))
    run.require_prepared()
    require_trainable_together(run.recipe, ranks.world_size)
    if run.blank_model.count_based:
        return _resume_counted(run, options, strict, limits)
    if limits and ranks.is_first:
        require_limits(run, limits)
    run.require_resumable()
    checkpoint = newest_checkpoint(folder / "checkpoints", strict, run.shapes)
    if ranks.is_first:
        require_room_for(folder / "checkpoints", checkpoint)
        run.files.accept(RECIPE)
    old = run
    if limits:
        run = run.with_recipe(limits)

    def write_limits() -> None:
        if limits:
            old.change_recipe(limits)
        begins()

    quiet = options.quiet or not ranks.is_first
    warn_about_arithmetic(checkpoint, run.device, run.recipe.training.precision, quiet)
    _warn_about_other_data(run, quiet)
    return _learn(run, run.new_model(), checkpoint, options.quiet, ranks, write_limits)


def _resume_counted(run: Run, options: TrainOptions, strict: bool, limits: Mapping[str, object] | None) -> Outcome:
    """Finish a run that was estimated from counts, or its scorer, also with new limits."""
    folder, has_scorer = run.folder, bool(run.recipe.training.scorer)
    if limits and has_scorer:
        require_only_limits(run, limits)
    run.require_weights()
    if is_complete(folder) and not (has_scorer and limits):
        advice = "Train it again with --overwrite"
        if has_scorer:
            advice = "Give the training of its scorer new limits (--max-time, --max-steps, --patience)"
        raise UsageError(f"{folder} is count-based and cannot be resumed. {advice}.")
    if limits and not has_scorer:
        raise UsageError(
            f"{folder} is count-based, and cannot be continued with other values of {', '.join(limits)}: leave them "
            "out, or train it again with --overwrite."
        )
    outcome = Outcome("counted", Progress(step=1))
    with sole_writer(folder):
        if kept_validation(events := read_metrics(folder)) is None:
            counting = sum(float(event["seconds"]) for event in events if event["event"] == "counted")
            outcome = _validate_counted(run, run.model, run.task(), options.quiet, counting)
        if not (folder / REPORT).exists():
            finish_report(run, options.quiet)
    return _train_scorer(run, options, strict, limits) if has_scorer else outcome


def _warn_about_other_data(run: Run, quiet: bool) -> None:
    """Warn if an edited recipe names other files than those that the data was prepared from."""
    entries = (run.corpus.get(kind, {}).values() for kind in ("files", "valid_files"))
    prepared = {entry["name"] for of_kind in entries for entry in of_kind}
    if prepared and (others := sorted({Path(path).name for path in run.recipe.data.paths} - prepared)):
        warn(
            f"{run.folder / RECIPE} names {', '.join(others)}, but the data was prepared from other files, and "
            "--resume reads the prepared data. To train on these files, start a new run with "
            f"--init {run.folder}.", quiet,
        )  # fmt: skip


def first_model(run: Run, init: Run | None, quiet: bool, transfer: Transfer | None = None) -> GenerativeModel:
    """The initial model of a prepared run, with random weights or those of `init`, or parts of them."""
    model = run.new_model()
    if transfer is not None:
        message(transfer.load(model, run.recipe.model), quiet)
    elif init is not None:
        weights = init.weights()
        if vocabulary_digests(run.tokenizers) != vocabulary_digests(init.tokenizers):
            weights = with_vocabularies(weights, run.recipe.model, init.tokenizers, run.tokenizers)
            _report_kept_pieces(init, run, quiet)
        weights = with_layers(weights, dict(model.named_parameters()))
        load_weights(model, weights, init.folder / WEIGHTS)
    return model


def _report_kept_pieces(init: Run, run: Run, quiet: bool) -> None:
    for side in {run.tokenizers[side]: side for side in reversed(run.sides)}.values():  # once for a joint vocabulary
        new = run.tokenizers[side]
        kept = len(same_pieces(new, init.tokenizers[side]))
        share = f"{kept:,} of {len(new.vocabulary):,} pieces keep their weights"
        message(f"{side}: {share}, new pieces start as the mean of their old subpieces", quiet)
