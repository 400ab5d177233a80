"""`heed evaluate --text`: how good are language models on a text?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from heed.core.errors import UsageError

if TYPE_CHECKING:
    from heed.decoding.readers import TextScorer
    from heed.evaluation.dynamic_evaluation import DynamicOptions
    from heed.evaluation.evaluation import Evaluation
    from heed.evaluation.likelihoods import TextSystem
    from heed.evaluation.test_set import HeldOut
    from heed.run import Run
    from heed.text.readers import Errors

DynamicRule = Literal["none", "sgd", "rms"]


@dataclass(frozen=True)
class TextOptions:
    """What is said about a test text, and the rows that are wanted beside those of the runs."""

    stride: int = 0
    """New tokens in each window, for runs that read windows; 0: half of them."""
    ensemble: bool = False
    """All runs as one."""
    dynamic: DynamicRule = "none"
    """Each run that was trained once more, going on to learn from the text."""
    dynamic_lr: float | None = None
    dynamic_decay: float | None = None
    dynamic_segment: int | None = None
    cache: float = 0.0
    """Share of a cache of recent words in these rows."""
    cache_size: int | None = None
    cache_flatness: float | None = None
    compressors: bool = False
    """General compressors."""
    primer: Path | None = None
    """Text that these have seen, in further rows."""

    @property
    def goes_on(self) -> bool:
        """Whether runs are read once more with what they make of the text."""
        return self.dynamic != "none" or self.cache > 0


def evaluate_text(
    text: Path, runs: Sequence[Run], options: TextOptions, errors: Errors, quiet: bool
) -> list[Evaluation]:
    """The scores of all runs, in one table."""
    from heed.evaluation.likelihoods import compressed, evaluate_texts, mixture
    from heed.evaluation.test_set import read_monolingual
    from heed.text.normalise import Normaliser

    if options.stride and not any(run.recipe.data.text_as == "windows" for run in runs):
        raise UsageError("--stride is for runs that were trained on windows of a text (data.text_as): leave it out.")
    test = read_monolingual(text, any(run.recipe.data.keep_blank_lines for run in runs), errors)
    _tell_blank_lines(test, runs, quiet)
    of_runs = [_scored(run, test, run.predictor.scorer(options.stride), "", quiet) for run in runs]
    systems = [*of_runs, *_going_on(runs, test, options, quiet)]
    if options.ensemble:
        systems.append(mixture(of_runs))
    if options.compressors:
        normaliser = runs[0].recipe.data.normaliser if runs else Normaliser(form="none", strip_control=False)
        systems += compressed(test, normaliser, options.primer, errors)
    return evaluate_texts(test, systems)


def _tell_blank_lines(test: HeldOut, runs: Sequence[Run], quiet: bool) -> None:
    """A run is asked about the same lines as the others."""
    from heed.core.progress import message

    blank = sum(not line.strip() for line in test.sources)
    others = [str(run.folder) for run in runs if not run.recipe.data.keep_blank_lines]
    if blank and others:
        told = f"note: {blank:,} lines without words count for all runs; alone, {', '.join(others)} leaves them out."
        message(told, quiet)


def _scored(run: Run, test: HeldOut, scorer: TextScorer, how: str, quiet: bool) -> TextSystem:
    from heed.core.progress import message
    from heed.evaluation.likelihoods import read_by

    name = f"{run.folder}{how and f' ({how})'}"
    message(f"scoring {test.label} with {name}", quiet)
    return read_by(run, test, scorer, name)


def _going_on(runs: Sequence[Run], test: HeldOut, options: TextOptions, quiet: bool) -> Iterator[TextSystem]:
    """The runs that have weights, read with what they make of the text."""
    from heed.evaluation.likelihoods import dynamic_scorer
    from heed.run import Run

    trained = [run for run in runs if not run.model.count_based] if options.goes_on else []
    if options.goes_on and not trained:
        raise UsageError("--dynamic and --cache are for models that are trained; these are counted.")
    for packed in trained:
        run = Run(packed.folder, packed.device)  # with weights that can be changed
        parts = [options.dynamic] * (options.dynamic != "none") + ["cache"] * (options.cache > 0)
        yield _scored(run, test, dynamic_scorer(run, _dynamic(options)), ", ".join(parts), quiet)


def _dynamic(options: TextOptions) -> DynamicOptions:
    from heed.core.config import Document, build
    from heed.evaluation.dynamic_evaluation import DynamicOptions

    said = {
        "rule": options.dynamic, "lr": options.dynamic_lr, "decay": options.dynamic_decay,
        "segment": options.dynamic_segment,
        "cache_share": options.cache, "cache_size": options.cache_size,
        "cache_flatness": options.cache_flatness,
    }  # fmt: skip
    return build(DynamicOptions, Document({name: value for name, value in said.items() if value is not None}))
