"""`heed evaluate`: score runs on a test set."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from heed.cli.evaluate_predictions import PredictionTests, print_heads
from heed.cli.evaluate_text import TextOptions, evaluate_text
from heed.cli.evaluate_translations import TestFiles, TranslationOptions, evaluate_translations
from heed.cli.flags import flags_given, given
from heed.cli.options import BadBytes, BeamFlags, Compute, Json, Quiet, search_options
from heed.core.errors import StorageError, UsageError
from heed.core.progress import message, warn

if TYPE_CHECKING:
    from heed.evaluation.evaluation import Evaluation
    from heed.run import Run

Runs = Annotated[list[Path] | None, typer.Argument(metavar="RUN", help="A run folder, or several to compare.")]
Ensemble = Annotated[bool, typer.Option("--ensemble", help="Add a row for the ensemble of all runs.")]
Calibrate = Annotated[
    bool,
    typer.Option("--calibrate", help="Calibrate the confidence of translations on the run's validation data."),
]


def evaluate(
    *,
    runs: Runs = None,
    files: TestFiles,
    texts: TextOptions,
    translations: TranslationOptions,
    search: BeamFlags,
    predictions: PredictionTests,
    ensemble: Ensemble = False,
    calibrate: Calibrate = False,
    errors: BadBytes = "strict",
    json_output: Json = False,
    compute: Compute,
    quiet: Quiet = False,
) -> None:
    """Score runs on test sets, with signatures and 95 % intervals.

    Several systems share a table and are tested against the first. Test lines in the training data are reported.

    Examples:

      heed evaluate runs/en-de --src test.en --ref test.de --worst 5

      heed evaluate runs/a runs/b --hyp marian=m.out --src test.en --ref test.de --plot lengths.png

      heed evaluate runs/tagger runs/without-characters --conll test.conll

      heed evaluate runs/kn5 runs/lstm runs/gpt --text test.txt --dynamic sgd
    """
    folders = runs or []
    if calibrate:
        others = [flag for group in (files, texts, translations, predictions) for flag in flags_given(group)]
        _refuse(
            [*others, *["--ensemble"] * ensemble],
            "--calibrate reads the validation data of the run itself",
        )
        _calibrate(folders, search, json_output, compute, quiet)
        return
    if kind := predictions.kind:
        others = [flag for group in (files, texts, translations, search) for flag in flags_given(group)]
        _refuse([*others, *["--ensemble"] * ensemble], kind)
        _check_systems(folders, 1, texts, translations)
        if predictions.trees is not None:
            print_heads(folders, predictions.trees, errors, json_output, compute)
        else:
            _finish(predictions.evaluate(folders, errors, compute, quiet), False, json_output, quiet)
        return
    _check_test(files, texts)
    _check_flags(texts, translations, search, compute, json_output)
    _check_systems(folders, len(files), texts, translations)
    if ensemble and len(folders) < 2:
        raise UsageError("--ensemble needs two runs or more.")
    opened = _load(folders, translations.tag, texts.text is not None, compute)
    if texts.text is not None:
        evaluated = [evaluate_text(texts, opened, ensemble, errors, quiet)]
    else:
        evaluated = evaluate_translations(files, opened, translations, search, ensemble, errors, quiet)
    _finish(evaluated, translations.analysis, json_output, quiet)


def _load(folders: Sequence[Path], tag: str | None, of_text: bool, compute: Compute) -> list[Run]:
    """Open the runs. Raises UsageError unless each can score texts, or translate."""
    from heed.evaluation.outputs import tags_for

    tags = tags_for(folders, tag)
    loaded = [compute.load(folder, tag=own) for folder, own in zip(folders, tags, strict=True)]
    for predictor in loaded:
        if of_text:
            predictor.require_text("--text")
        else:
            predictor.require("translate", "--src")
    return [predictor.run for predictor in loaded]


def _calibrate(runs: Sequence[Path], search: BeamFlags, as_json: bool, compute: Compute, quiet: bool) -> None:
    """Learn the confidences of each run from its validation data, print them, and keep them in the run folder."""
    if not runs:
        raise UsageError("--calibrate reads the validation data of a run: name a run.")
    calibrations = []
    for folder in runs:
        predictor = compute.load(folder)
        predictor.require("translate", "--calibrate")
        message(f"translating the validation data of {folder}", quiet)
        options = search_options(predictor.run.recipe.decoding, {**given(search), "nbest": 1})
        calibrations.append(predictor.calibrate(options))
    if as_json:
        rows = zip(runs, calibrations, strict=True)
        print(json.dumps([{"run": str(folder), **calibration.to_json()} for folder, calibration in rows]))
    else:
        print("\n\n".join(calibration.render() for calibration in calibrations))


def _refuse(flags: Sequence[str], why: str) -> None:
    """Raise UsageError if there are flags that have no effect here."""
    if flags:
        raise UsageError(f"{why}: leave out {', '.join(flags)}.")


def _check_test(files: TestFiles, texts: TextOptions) -> None:
    """Raise UsageError for options of the test set that cannot be combined."""
    if (texts.text is None) == (not (files.src or files.ref or files.pairs)):
        raise UsageError(
            "give --src F --ref F (or --pairs F) for translation runs, --text F for language models, or --conll F for "
            "taggers."
        )
    if len(files.src or ()) != len(files.ref or ()):
        raise UsageError("give one --ref F for each --src F.")
    if not files.pairs:
        _refuse([flag for flag in flags_given(files) if flag.endswith("-column")], "columns are those of --pairs")
    for whole, is_given in (("--dynamic", texts.dynamic != "none"), ("--cache", texts.cache > 0)):
        if texts.text is not None and not is_given:
            _refuse([flag for flag in flags_given(texts) if flag.startswith(f"{whole}-")], f"without {whole}")


def _check_flags(
    texts: TextOptions, translations: TranslationOptions, search: BeamFlags, compute: Compute, as_json: bool
) -> None:
    """Raise UsageError for options that have no effect on this kind of test set."""
    of_translations = flags_given(translations)
    if texts.text is not None:
        _refuse([*of_translations, *flags_given(search)], "--text is for language models")
        if texts.adapts and compute.precision != "float32":
            raise UsageError("--dynamic and --cache compute in float32: leave out --precision.")
        return
    _refuse(flags_given(texts), "--src, --ref and --pairs are for translation runs")
    if "--rare" in of_translations and not (translations.analysis or as_json):
        raise UsageError("--rare needs --analysis or --json.")


def _check_systems(runs: Sequence[Path], num_tests: int, texts: TextOptions, translations: TranslationOptions) -> None:
    """Raise UsageError if there is nothing to score, or too much for an option."""
    hyp, out, plot = translations.hyp, translations.out, translations.plot
    if not runs and not (hyp and num_tests) and not texts.compresses:
        raise UsageError("name a run to score, or finished translations with --hyp NAME=FILE.")
    if hyp and num_tests > 1:
        raise UsageError("--hyp NAME=FILE needs a single test set: give --src and --ref once, or --pairs once.")
    if out is not None and (len(runs) != 1 or num_tests != 1):
        raise UsageError("--out needs a single run and a single test set.")
    if plot is not None and num_tests != 1:
        raise UsageError("--plot needs a single test set.")


def _finish(evaluated: Sequence[Sequence[Evaluation]], analysis: bool, as_json: bool, quiet: bool) -> None:
    """Log the scores, and print them as JSON or as one table for each test set."""
    from heed.evaluation.score_log import now
    from heed.evaluation.table import render_table

    time = now()
    every = [evaluation for evaluations in evaluated for evaluation in evaluations]
    for evaluation in every:
        _warn(evaluation, time, quiet)
        _log(evaluation, time, quiet)
    if as_json:
        print(json.dumps([evaluation.to_json() for evaluation in every], ensure_ascii=False))
    else:
        print("\n\n".join(render_table(evaluations, analysis) for evaluations in evaluated))


def _warn(evaluation: Evaluation, time: str, quiet: bool) -> None:
    """Report what casts doubt on a score: test lines in the training data, and earlier scores on the same test set."""
    from heed.evaluation.score_log import times_scored

    if evaluation.leakage is not None and evaluation.leakage.lines:
        warn(evaluation.leakage.render(evaluation.system, evaluation.test.unit) + ".", quiet)
    if evaluation.run is not None and (times := times_scored(evaluation.run, evaluation, excluding=time)):
        often = "once" if len(times) == 1 else f"{len(times)} times"
        advice = "make choices on validation data"
        message(f"note: {evaluation.system} was scored on this test set {often} before ({advice}).", quiet)


def _log(evaluation: Evaluation, time: str, quiet: bool) -> None:
    """Write a score into the folder of its run, or of each member of its ensemble."""
    from heed.evaluation.score_log import log_scores
    from heed.report.page import refresh_report

    runs = evaluation.members if evaluation.run is None else [evaluation.run]
    for run in {run.folder.resolve(): run for run in runs}.values():
        try:
            log_scores(run, evaluation, time)
            refresh_report(run)
        except StorageError as error:  # the scores are still printed
            warn(f"the scores were not written into the run folder: {error}", quiet)
