"""Translations of a test set by runs and ensembles."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from heed.core.errors import UsageError
from heed.core.progress import message
from heed.decoding.options import SearchOptions
from heed.evaluation.outputs import System
from heed.evaluation.test_set import HeldOut
from heed.run import Run
from heed.tasks.predictor import Combination


def translated(run: Run, test: HeldOut, options: SearchOptions, quiet: bool = False) -> System:
    """A run's translations of a test set."""
    message(f"translating {test.label} with {run.folder}", quiet)
    outputs = [hypothesis.text for hypothesis in run.predictor.translator.translate(test.sources, options)]
    return System(str(run.folder), outputs, run, options)


def translated_by_ensemble(
    runs: Sequence[Run], test: HeldOut, options: SearchOptions | None, quiet: bool = False
) -> System:
    """The translations of several runs as one model. Raises UsageError if their vocabularies differ."""
    first, *others = runs
    message(f"translating {test.label} with an ensemble of {len(runs)} runs", quiet)
    translator = first.task_type.predictor(first, Combination(others)).translator
    hypotheses = translator.translate(test.sources, options or first.recipe.decoding)
    return System(f"ensemble of {len(runs)}", [each.text for each in hypotheses], None, options, runs)


def tags_for(folders: Sequence[Path], tag: str | None) -> list[str | None]:
    """The tag for each run: runs that were not trained with `tag` use their own default.

    Raises UsageError for a tag that no run was trained with.
    """
    known = [getattr(Run(folder).recipe.data, "tags", []) for folder in folders]
    if tag and not any(tag in tags for tags in known):
        names = ", ".join(dict.fromkeys(name for tags in known for name in tags))
        raise UsageError(f"--tag {tag}: {f'the runs know {names}' if names else 'the runs were trained without tags'}.")
    return [tag if tag in tags else None for tags in known]
