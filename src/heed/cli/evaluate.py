"""`heed evaluate`: how good is a run on a test set?"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from heed.cli.evaluate_text import DynamicRule, TextOptions, evaluate_text
from heed.cli.evaluate_translations import TestFiles, TranslationOptions, evaluate_translations
from heed.cli.options import (
    BadBytes,
    Debug,
    Device,
    Json,
    Precision,
    Quiet,
    SrcColumn,
    Tag,
    TgtColumn,
    Threads,
    use_threads,
)  # fmt: skip
from heed.core.errors import StorageError, UsageError

if TYPE_CHECKING:
    from heed.evaluation.evaluation import Evaluation

Files = list[Path] | None

NUM_COMMON = 50_000
"""As many words as Sennrich et al. (2016) call frequent."""


def evaluate(
    runs: Annotated[Files, typer.Argument(metavar="RUN", help="One run, or several to compare.")] = None,
    src: Annotated[Files, typer.Option(help="Source of a test set (can come again).")] = None,
    ref: Annotated[Files, typer.Option(help="Its reference translations.")] = None,
    pairs: Annotated[Files, typer.Option(help="A test set in one file (.tsv, .tmx, ...).")] = None,
    src_column: SrcColumn = None,
    tgt_column: TgtColumn = None,
    text: Annotated[Path | None, typer.Option(help="Test text of language models.")] = None,
    stride: Annotated[int, typer.Option(help="--text: new tokens of a window (0: half).", min=0)] = 0,
    dynamic: Annotated[DynamicRule, typer.Option(help="--text: learn on the way.")] = "none",
    dynamic_lr: Annotated[float | None, typer.Option(help="η of --dynamic.")] = None,
    dynamic_decay: Annotated[float | None, typer.Option(help="λ of --dynamic: back to the start.")] = None,
    dynamic_segment: Annotated[int | None, typer.Option(help="Tokens between its updates (20).", min=1)] = None,
    cache: Annotated[float, typer.Option(help="--text: share of a cache of recent words.", min=0, max=0.99)] = 0.0,
    cache_size: Annotated[int | None, typer.Option(help="Words in that cache (500).", min=1)] = None,
    cache_flatness: Annotated[float | None, typer.Option(help="θ of that cache (1).", min=0)] = None,
    compressors: Annotated[bool, typer.Option("--compressors", help="--text: rows of compressors, as gzip.")] = False,
    primer: Annotated[Path | None, typer.Option(help="What compressors have seen before.")] = None,
    hyp: Annotated[list[str] | None, typer.Option(metavar="NAME=FILE", help="Another system's translations.")] = None,
    worst: Annotated[int, typer.Option(help="So many worst lines.", min=0)] = 0,
    analysis: Annotated[bool, typer.Option("--analysis", help="Scores by sentence length, F1 by frequency.")] = False,
    beam: Annotated[int | None, typer.Option(help="Beam size (default: the recipe's).", min=1)] = None,
    length_penalty: Annotated[float | None, typer.Option(help="α of the length penalty.", min=0)] = None,
    src_lang: Annotated[str | None, typer.Option(help="Source language (the run's).")] = None,
    tgt_lang: Annotated[str | None, typer.Option(help="Target language (the run's).")] = None,
    tokenised: Annotated[bool, typer.Option("--tokenised", help="The text is tokenised: BLEU with tok:none.")] = False,
    tag: Tag = None,
    ensemble: Annotated[bool, typer.Option("--ensemble", help="One more row: all runs as one model.")] = False,
    rare: Annotated[int, typer.Option(help="So many words are not rare.", min=0)] = NUM_COMMON,
    out: Annotated[Path | None, typer.Option(help="Write the translations (one run).")] = None,
    calibrate: Annotated[bool, typer.Option("--calibrate", help="Learn confidences from validation data.")] = False,
    errors: BadBytes = "strict",
    json_output: Json = False,
    precision: Precision = "float32",
    threads: Threads = 0,
    device: Device = "cpu",
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Score runs on a test set: BLEU, chrF and TER, or perplexities, with signatures and 95 % intervals.

    Several systems make one table, each tested against the first by paired bootstrap (from 20 lines on) and approximate
    randomisation, where they can be compared.
    Test lines that a run was trained on are told. Each run logs its scores in its scores.jsonl and report.md.

    Examples:

      heed evaluate runs/en-de --src test.en --ref test.de --worst 5

      heed evaluate runs/a runs/b --hyp marian=m.out --src test.en --ref test.de

      heed evaluate runs/kn5 runs/lstm runs/gpt --text test.txt --dynamic sgd
    """
    import heed
    from heed.cli.calibrate import calibrate_runs
    from heed.evaluation.likelihoods_table import render_likelihoods
    from heed.evaluation.outputs_table import render_outputs
    from heed.evaluation.translations import tags_for
    from heed.text.readers import parse_column

    runs, hyp = runs or [], hyp or []
    files = TestFiles(src or [], ref or [], pairs or [], (parse_column(src_column), parse_column(tgt_column)), errors)
    search = {"beam_size": beam, "length_penalty": length_penalty, "nbest": 1}
    of_text = {
        "--stride": stride, "--dynamic": dynamic != "none", "--cache": cache, "--compressors": compressors,
        "--primer": primer, "--dynamic-lr": dynamic_lr, "--dynamic-decay": dynamic_decay,
        "--dynamic-segment": dynamic_segment, "--cache-size": cache_size, "--cache-flatness": cache_flatness,
    }  # fmt: skip
    of_pairs = {
        "--hyp": hyp, "--worst": worst, "--analysis": analysis, "--src-lang": src_lang, "--tgt-lang": tgt_lang,
        "--tokenised": tokenised, "--tag": tag, "--rare": rare != NUM_COMMON, "--out": out,
    }  # fmt: skip
    columns = {"--src-column": src_column, "--tgt-column": tgt_column}
    if calibrate:
        tests = {"--src": files.src, "--pairs": files.pairs, "--text": text, "--ensemble": ensemble}
        _refuse(tests | columns | of_text | of_pairs, "--calibrate reads the validation data of the run itself")
        calibrate_runs(runs, search, json_output, precision, threads, device, quiet)
        return
    if (text is None) == (not (files.src or files.ref or files.pairs)):
        raise UsageError("give --src F --ref F (or --pairs F) for translation runs, or --text F for language models.")
    if text is None and len(files.src) != len(files.ref):
        raise UsageError("each --src F goes with one --ref F: a source has one reference here.")
    if not pairs:
        _refuse(columns, "columns are those of --pairs")
    if text is None:
        _refuse(of_text, "--src, --ref and --pairs are about translations")
        if not (analysis or json_output):
            _refuse({"--rare": rare != NUM_COMMON}, "rare words are told by --analysis or --json")
    else:
        _refuse(of_pairs | {"--beam": beam, "--length-penalty": length_penalty}, "--text is about language models")
        _refuse_parts(of_text, ("--dynamic", "--cache"))
        if dynamic != "none" or cache:
            _refuse({"--precision": precision != "float32"}, "--dynamic and --cache read in float32")
    bare = bool(text and (compressors or primer))
    _check(runs, hyp, out, len(files), bare=bare)
    if ensemble and len(runs) < 2:
        raise UsageError("--ensemble is of two runs or more.")
    tagged = zip(runs, tags_for(runs, tag), strict=True)
    use_threads(threads)
    opened = [heed.load(folder, device, precision, tag=its_tag).run for folder, its_tag in tagged]
    for run in opened:
        run.predictor.require("generate" if text else "translate", "evaluate --text" if text else "evaluate --src")
    if text is not None:
        how = TextOptions(
            stride, ensemble, dynamic, dynamic_lr, dynamic_decay, dynamic_segment, cache, cache_size,
            cache_flatness, compressors or bool(primer), primer,
        )  # fmt: skip
        found = evaluate_text(text, opened, how, errors, quiet)
        _finish([found], json_output, render_likelihoods(found), quiet)
        return
    options = TranslationOptions(search, src_lang, tgt_lang, tokenised, hyp, ensemble, worst, rare, out)
    evaluated = evaluate_translations(files, opened, options, quiet)
    table = "\n\n".join(render_outputs(evaluations, analysis) for evaluations in evaluated)
    _finish(evaluated, json_output, table, quiet)


def _refuse(flags: Mapping[str, object], why: str) -> None:
    """Raise UsageError for flags that were given where they do nothing."""
    if given := [flag for flag, said in flags.items() if said not in (None, False, 0, [])]:
        raise UsageError(f"{why}: leave out {', '.join(given)}.")


def _refuse_parts(flags: Mapping[str, object], wholes: Sequence[str]) -> None:
    """Refuse `--cache-size` without `--cache`."""
    for whole in wholes:
        if not flags[whole]:
            parts = {flag: said for flag, said in flags.items() if flag.startswith(f"{whole}-")}
            _refuse(parts, f"without {whole}")


def _check(runs: list[Path], hyp: list[str], out: Path | None, num_tests: int, bare: bool) -> None:
    """Raise UsageError for what does not go together; `bare` needs no run."""
    if not runs and not (hyp and num_tests) and not bare:
        raise UsageError("name a run to score, or finished translations with --hyp NAME=FILE.")
    if hyp and num_tests > 1:
        raise UsageError("--hyp NAME=FILE belongs to one test set: give --src and --ref once, or one --pairs.")
    if out is not None and (len(runs) != 1 or num_tests != 1):
        raise UsageError("--out is for the translations of one run.")


def _finish(evaluated: Sequence[Sequence[Evaluation]], as_json: bool, table: str, quiet: bool) -> None:
    """Log the scores, and print them as JSON or as a table."""
    from heed.evaluation.score_log import now

    time = now()
    for evaluations in evaluated:
        for evaluation in evaluations:
            _tell_and_log(evaluation, time, quiet)
    if as_json:
        found = [evaluation.to_json() for evaluations in evaluated for evaluation in evaluations]
        print(json.dumps(found, ensure_ascii=False))
    else:
        print(table)


def _tell_and_log(evaluation: Evaluation, time: str, quiet: bool) -> None:
    """Say on stderr what casts doubt on a score, and write the score into the folder of the run, or of each member."""
    from heed.core.progress import message, warn
    from heed.evaluation.score_log import log_scores, times_scored
    from heed.report.page import refresh_report

    if evaluation.leakage is not None and evaluation.leakage.lines:
        warn(evaluation.leakage.render(evaluation.system, evaluation.test.unit) + ".", quiet)
    if evaluation.run is not None and (times := times_scored(evaluation.run, evaluation, but_at=time)):
        often = "once" if len(times) == 1 else f"{len(times)} times"
        advice = "choices belong on validation data"
        message(f"note: {evaluation.system} was scored on this test set {often} before ({advice}).", quiet)
    runs = evaluation.members if evaluation.run is None else [evaluation.run]
    for run in {run.folder.resolve(): run for run in runs}.values():
        try:
            log_scores(run, evaluation, time)
            refresh_report(run)
        except StorageError as error:  # the scores are there all the same
            warn(f"the scores were not written into the run folder: {error}", quiet)
