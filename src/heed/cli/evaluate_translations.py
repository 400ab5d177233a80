"""`heed evaluate --src --ref`: how good are translators on test sets?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

from heed.cli.options import language_of, require_writable, search_options
from heed.core.errors import UsageError

if TYPE_CHECKING:
    from heed.evaluation.evaluation import Evaluation
    from heed.evaluation.outputs import System
    from heed.evaluation.test_set import HeldOut
    from heed.run import Run
    from heed.text.readers import Errors


@dataclass(frozen=True)
class TestFiles:
    """Where test sets lie: sources with their references, and files of pairs."""

    src: Sequence[Path]
    ref: Sequence[Path]
    pairs: Sequence[Path]
    columns: tuple[int | str | None, int | str | None]
    errors: Errors

    def __len__(self) -> int:
        return len(self.src) + len(self.pairs)

    def read(self, languages: tuple[str, str]) -> Iterator[HeldOut]:
        """Each of them; `languages` of source and target choose the texts of files that hold several."""
        from heed.evaluation.test_set import read_parallel, read_records

        for src, ref in zip(self.src, self.ref, strict=True):
            yield read_parallel(src, ref, self.errors)
        for path in self.pairs:
            yield read_records(path, self.columns, languages, self.errors)


@dataclass(frozen=True)
class TranslationOptions:
    """How test sets are translated and scored, and the rows that are wanted beside those of the runs."""

    search: Mapping[str, object]
    """What differs from each run's own way to search."""
    src_lang: str | None
    """The source language, where it is not the runs'."""
    tgt_lang: str | None
    """The target language, where it is not the runs'."""
    tokenised: bool
    hyp: Sequence[str]
    """Finished translations, each NAME=FILE."""
    ensemble: bool
    """All runs as one."""
    num_worst: int
    num_common: int
    out: Path | None
    """Where the translations of the run go."""


def evaluate_translations(
    files: TestFiles, runs: Sequence[Run], options: TranslationOptions, quiet: bool
) -> list[list[Evaluation]]:
    """The scores of all systems, in one table for each test set."""
    from heed.evaluation.compatibility import require_direction, warn_about_test_set
    from heed.evaluation.outputs import evaluate_outputs, read_finished
    from heed.evaluation.translations import translated, translated_by_ensemble
    from heed.tasks.predictor import Combination

    src_lang, run_lang = (
        runs[0].predictor.languages if runs else ("", language_of(files.ref[0].name) if files.ref else "")
    )
    language = options.tgt_lang or run_lang or None
    of_runs = {run.recipe.data.tokenised for run in runs}
    if len(of_runs) > 1 and not options.tokenised:
        raise UsageError(
            "some of these runs were trained on tokenised text and others on text as it is written, and a test set is "
            "only one of both: evaluate them apart, or say --tokenised."
        )
    tokenised = options.tokenised or True in of_runs
    evaluated = []
    require_writable(options.out)
    tests = list(files.read((options.src_lang or src_lang, language or "")))  # what is wrong is told before any work
    for test, run in product(tests, runs):
        require_direction(run, test)
        warn_about_test_set(run, test, quiet)
    if options.ensemble:
        runs[0].task_type.predictor(runs[0], Combination(runs[1:]))
    for test in tests:
        finished = [read_finished(named, test, files.errors) for named in options.hyp]
        systems = [translated(run, test, search_options(run.recipe.decoding, options.search), quiet) for run in runs]
        if options.out is not None:
            _write(options.out, systems[0].outputs)
        if options.ensemble:
            _tell_search(systems, quiet)
            systems.append(translated_by_ensemble(runs, test, systems[0].options, quiet))
        evaluated.append(
            evaluate_outputs(
                test, [*systems, *finished], language, tokenised=tokenised, num_worst=options.num_worst,
                num_common=options.num_common,
            )
        )  # fmt: skip
    return evaluated


def _tell_search(systems: Sequence[System], quiet: bool) -> None:
    """An ensemble is searched in one way."""
    from heed.core.progress import message

    if any(system.options != systems[0].options for system in systems[1:]):
        message(f"note: the runs search in different ways; together they are searched as {systems[0].name} is.", quiet)


def _write(path: Path, lines: Sequence[str]) -> None:
    from heed.core.files import atomic_write, storage_errors

    with storage_errors("write the translations", path=path), atomic_write(path, "w") as file:
        file.writelines(line + "\n" for line in lines)
