"""`heed evaluate --text`: score language models on a text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from heed.cli.flags import given
from heed.core.errors import UsageError
from heed.core.progress import message

if TYPE_CHECKING:
    from heed.decoding.scoring import TextScorer
    from heed.evaluation.evaluation import Evaluation
    from heed.evaluation.likelihoods import TextSystem
    from heed.evaluation.test_set import HeldOut
    from heed.run import Run
    from heed.text.readers import Errors

DynamicRule = Literal["none", "sgd", "rms"]


@dataclass(frozen=True)
class TextOptions:
    """A test text, and the rows of the table in addition to those of the runs."""

    text: Annotated[Path | None, typer.Option(help="Test text for language models.")] = None
    stride: Annotated[int, typer.Option(help="New tokens per window (0: half a window).", min=0)] = 0
    dynamic: Annotated[DynamicRule, typer.Option(help="Add dynamic evaluation.")] = "none"
    dynamic_lr: Annotated[float | None, typer.Option(help="Learning rate η of --dynamic.")] = None
    dynamic_decay: Annotated[float | None, typer.Option(help="Decay λ of --dynamic to the trained weights.")] = None
    dynamic_segment: Annotated[int | None, typer.Option(help="Tokens between two updates (default: 20).", min=1)] = None
    cache: Annotated[float, typer.Option(help="Add a cache of words with this weight.", min=0, max=0.99)] = 0.0
    cache_size: Annotated[int | None, typer.Option(help="Words in the cache (default: 500).", min=1)] = None
    cache_flatness: Annotated[float | None, typer.Option(help="Flatness θ of the cache (default: 1).", min=0)] = None
    compressors: Annotated[bool, typer.Option("--compressors", help="Add rows of compressors, such as gzip.")] = False
    primer: Annotated[Path | None, typer.Option(help="Add compressors primed with this text.")] = None

    @property
    def adapts(self) -> bool:
        """Whether there are rows of models that adapt to the text."""
        return self.dynamic != "none" or self.cache > 0

    @property
    def compresses(self) -> bool:
        """Whether there are rows of general compressors."""
        return self.compressors or self.primer is not None


def evaluate_text(
    options: TextOptions, runs: Sequence[Run], ensemble: bool, errors: Errors, quiet: bool
) -> list[Evaluation]:
    """Score all runs on a text, in one table; `ensemble`: also all of them together."""
    from heed.evaluation.likelihoods import compressed, evaluate_texts, mixture, read_test
    from heed.text.normalise import Normaliser

    assert options.text is not None
    if options.stride and not any(run.recipe.data.text_as == "windows" for run in runs):
        raise UsageError('--stride is for runs trained with data.text_as = "windows": leave it out.')
    test = read_test(options.text, runs, errors)
    _note_blank_lines(test, runs, quiet)
    single = [_scored(run, test, run.predictor.scorer(options.stride), "", quiet) for run in runs]
    systems = [*single, *_adapting(runs, test, options, quiet)]
    if ensemble:
        systems.append(mixture(single))
    if options.compresses:
        normaliser = runs[0].recipe.data.normaliser if runs else Normaliser(form="none", strip_control=False)
        systems += compressed(test, normaliser, options.primer, errors)
    return evaluate_texts(test, systems)


def _note_blank_lines(test: HeldOut, runs: Sequence[Run], quiet: bool) -> None:
    """Note that all runs are scored on the same lines, including blank ones if one of them reads these."""
    blank = sum(not line.strip() for line in test.sources)
    others = [str(run.folder) for run in runs if not run.recipe.data.keep_blank_lines]
    if blank and others:
        text = f"all runs are scored on the same lines, including {blank:,} blank ones"
        message(f"note: {text}; evaluated alone, {', '.join(others)} would skip blank lines.", quiet)


def _scored(run: Run, test: HeldOut, scorer: TextScorer, how: str, quiet: bool) -> TextSystem:
    from heed.evaluation.likelihoods import read_by

    name = f"{run.folder}{how and f' ({how})'}"
    message(f"scoring {test.label} with {name}", quiet)
    return read_by(run, test, scorer, name)


def _adapting(runs: Sequence[Run], test: HeldOut, options: TextOptions, quiet: bool) -> Iterator[TextSystem]:
    """The runs with weights, once more with dynamic evaluation or a cache."""
    trained = [run for run in runs if not run.model.count_based] if options.adapts else []
    if options.adapts and not trained:
        raise UsageError("--dynamic and --cache are for neural models; these are count-based.")
    for packed in trained:
        run = packed.unpacked(packed.device)  # with weights that can be changed
        parts = [options.dynamic] * (options.dynamic != "none") + ["cache"] * (options.cache > 0)
        yield _scored(run, test, run.predictor.adapting_scorer(_adapting_options(options)), ", ".join(parts), quiet)


def _adapting_options(options: TextOptions) -> Mapping[str, Any]:
    """The flags by the names of their options: `--dynamic-lr` is `lr`, `--cache-size` is `cache_size`."""
    details = {
        name.removeprefix("dynamic_"): value
        for name, value in given(options).items()
        if name.startswith(("dynamic_", "cache_"))
    }
    return {"rule": options.dynamic, "cache_share": options.cache, **details}
