"""`heed evaluate --src --ref`: score translators on test sets."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from heed.cli.flags import given
from heed.cli.options import (
    BeamFlags,
    SrcColumn,
    Tag,
    TgtColumn,
    language_of,
    require_writable,
    search_options,
)
from heed.core.errors import UsageError
from heed.core.files import storage_errors
from heed.core.progress import message

if TYPE_CHECKING:
    from heed.evaluation.evaluation import Evaluation
    from heed.evaluation.outputs import System
    from heed.evaluation.test_set import HeldOut
    from heed.run import Run
    from heed.text.readers import Errors


NUM_COMMON = 50_000
"""The number of words that Sennrich et al. (2016) call frequent."""


@dataclass(frozen=True)
class TestFiles:
    """Files of test sets: sources with their references, and files of pairs."""

    src: Annotated[list[Path] | None, typer.Option(help="Source of a test set (repeatable).")] = None
    ref: Annotated[list[Path] | None, typer.Option(help="References of a test set (repeatable).")] = None
    pairs: Annotated[list[Path] | None, typer.Option(help="A test set in one file (.tsv, .tmx, ...).")] = None
    src_column: SrcColumn = None
    tgt_column: TgtColumn = None

    def __len__(self) -> int:
        return len(self.src or ()) + len(self.pairs or ())

    def read(self, languages: tuple[str, str], errors: Errors) -> Iterator[HeldOut]:
        """Yield each test set; `languages` (source, target) select the texts of files that hold several."""
        from heed.evaluation.test_set import read_parallel, read_records
        from heed.text.readers import parse_column

        for src, ref in zip(self.src or (), self.ref or (), strict=True):
            yield read_parallel(src, ref, errors)
        columns = parse_column(self.src_column), parse_column(self.tgt_column)
        for path in self.pairs or ():
            yield read_records(path, columns, languages, errors)


@dataclass(frozen=True)
class TranslationOptions:
    """Options of scoring translations, and the rows of the table in addition to those of the runs."""

    hyp: Annotated[
        list[str] | None, typer.Option(metavar="NAME=FILE", help="Translations of another system (repeatable).")
    ] = None
    worst: Annotated[int, typer.Option(help="Number of worst lines to show.", min=0)] = 0
    analysis: Annotated[
        bool, typer.Option("--analysis", help="Add scores by sentence length and F1 by word frequency.")
    ] = False
    src_lang: Annotated[str | None, typer.Option(help="Source language (default: the run's).")] = None
    tgt_lang: Annotated[str | None, typer.Option(help="Target language (default: the run's).")] = None
    tokenised: Annotated[bool, typer.Option("--tokenised", help="The text is tokenised: BLEU with tok:none.")] = False
    tag: Tag = None
    rare: Annotated[int, typer.Option(help="Words beyond this frequency rank are rare.", min=0)] = NUM_COMMON
    plot: Annotated[
        Path | None, typer.Option(metavar="F", help="Write a plot of the scores by sentence length as PNG.")
    ] = None
    out: Annotated[Path | None, typer.Option(help="Write the translations to this file (one run only).")] = None


def evaluate_translations(
    files: TestFiles, runs: Sequence[Run], options: TranslationOptions, search: BeamFlags, ensemble: bool,
    errors: Errors, quiet: bool,
) -> list[list[Evaluation]]:  # fmt: skip
    """Score all systems, in one table for each test set; `ensemble`: also all runs together."""
    from heed.evaluation.outputs import evaluate_outputs, read_finished, translated, translated_by_ensemble
    from heed.tasks.predictor import Combination

    languages = ("", language_of(files.ref[0].name) if files.ref else "")
    src_lang, run_lang = runs[0].predictor.languages if runs else languages
    language = options.tgt_lang or run_lang or None
    of_runs = {run.recipe.data.tokenised for run in runs}
    if len(of_runs) > 1 and not options.tokenised:
        raise UsageError(
            "some of these runs were trained on tokenised text and others were not. Evaluate them separately, or give "
            "--tokenised if the test set is tokenised."
        )
    tokenised = options.tokenised or True in of_runs
    evaluated = []
    require_writable(options.out)
    if options.plot is not None:
        from heed.report.curves import require_plots

        require_writable(options.plot, "--plot")
        require_plots("--plot")
    tests = list(files.read((options.src_lang or src_lang, language or ""), errors))  # errors come before the work
    for test, run in product(tests, runs):
        run.predictor.check_test(test, quiet)
    if ensemble:
        runs[0].task_type.predictor(runs[0], Combination(runs[1:]))
    for test in tests:
        finished = [read_finished(named, test, errors) for named in options.hyp or ()]
        systems = [
            translated(run, test, search_options(run.recipe.decoding, {**given(search), "nbest": 1}), quiet)
            for run in runs
        ]
        if options.out is not None:
            _write(options.out, systems[0].outputs)
        if ensemble:
            _note_search(systems, quiet)
            systems.append(translated_by_ensemble(runs, test, systems[0].options, quiet))
        evaluated.append(
            evaluate_outputs(
                test, [*systems, *finished], language, tokenised=tokenised, num_worst=options.worst,
                num_common=options.rare,
            )
        )  # fmt: skip
    if options.plot is not None:
        _plot(options.plot, evaluated[0])
    return evaluated


def _plot(path: Path, evaluations: Sequence[Evaluation]) -> None:
    from heed.report.curves import draw_by_length

    with storage_errors("write the plot", path=path):
        draw_by_length(path, evaluations)


def _note_search(systems: Sequence[System], quiet: bool) -> None:
    """Note that an ensemble uses the search options of its first member, if they differ."""
    if any(system.options != systems[0].options for system in systems[1:]):
        message(f"note: the runs have different search options; the ensemble uses those of {systems[0].name}.", quiet)


def _write(path: Path, lines: Sequence[str]) -> None:
    from heed.text.archives import open_text_output

    with storage_errors("write the translations", path=path), open_text_output(path) as file:
        file.writelines(line + "\n" for line in lines)
