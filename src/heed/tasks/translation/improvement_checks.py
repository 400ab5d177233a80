"""Whether a translator can be improved with what is given: its data, its beginning, and the text for it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from heed.core.config import read_toml
from heed.core.errors import UsageError
from heed.core.progress import warn
from heed.core.run_files import RECIPE
from heed.recipe import build_recipe
from heed.run import RESTORING, Run
from heed.tasks.translation.compatibility import require_opposite
from heed.tasks.translation.data import PartConfig
from heed.tasks.translation.synthetic_pairs import BACK_TRANSLATED


def require_possible(
    run: Run, mono: Mapping[str, Sequence[Path]], reverse: Path | None, init: Path | None,
    restore: bool, load: Callable[[Path], Any], quiet: bool,
) -> None:  # fmt: skip
    """Raise UsageError unless `run` can be improved.

    `mono`: files of text in one language, by side; `reverse`: a translator for the opposite direction; `init`: the run
    whose weights the run began with; `restore`: whether new models begin with one that restores masked sentences;
    `load`: opens a run folder as a predictor.
    """
    if run.recipe.data.share < 1:
        raise UsageError(
            f"{run.folder} learned from a share of its pairs, and candidates learn from all of them. Give a "
            "run that was trained on all of its pairs."
        )
    _require_beginning(run, init, restore, quiet)
    if restore and run.blank_model.count_based:
        raise UsageError(
            f"--restore is for models that are trained by gradients, and that of {run.folder} is "
            f"{run.recipe.model.kind!r}: leave it out."
        )
    if run.blank_model.reads_target_text:
        _require_target_text_alone(run, mono, reverse)
        return
    _require_tags(run)
    if reverse is not None:
        predictor = load(reverse)
        predictor.require("translate", "--reverse")
        require_opposite(predictor.of_validation().predictor, run.predictor.of_validation().predictor)


def _require_target_text_alone(run: Run, mono: Mapping[str, Sequence[Path]], reverse: Path | None) -> None:
    """For a model whose language model reads text in the target language."""
    refused = "--mono-src" if mono["src"] else "--reverse" if reverse else ""
    if refused:
        raise UsageError(
            f"{refused} is for models that learn from synthetic pairs. The model of {run.folder} is "
            f"{run.recipe.model.kind!r}, whose language model reads text in the target language itself: "
            "give --mono-tgt alone."
        )
    if not mono["tgt"]:
        raise UsageError(
            f"the model of {run.folder} is {run.recipe.model.kind!r}, which gains nothing from its "
            "own translations: give text in the target language with --mono-tgt."
        )


def _require_tags(run: Run) -> None:
    """Raise UsageError unless a candidate can have the recipe of the run with synthetic sources, which have a tag."""
    synthetic = PartConfig(src="back.src", tgt="back.tgt", tag=BACK_TRANSLATED)
    parts = [part.model_dump(exclude_defaults=True) for part in (*run.recipe.data.parts, synthetic)]
    try:
        run.task_type.require_new_tokenizers(build_recipe(read_toml(run.folder / RECIPE), {"data.parts": parts}))
    except UsageError as error:
        raise UsageError(
            f"the candidates for {run.folder} would learn from synthetic sources, which have a tag, and its recipe "
            "cannot have tags. Train another model on the same pairs, such as a Transformer (heed train "
            f"--model.kind=transformer), and improve that run. The recipe with the tag is refused:\n{error}"
        ) from error


def _require_beginning(run: Run, init: Path | None, restore: bool, quiet: bool) -> None:
    """Raise UsageError unless candidates can begin as they should.

    That is with random weights, or for a fine-tuned run with those of `init`, with which it began.
    """
    corpus, folder = run.corpus, run.folder
    begun = corpus.get("init")
    if not run.is_fine_tuned:
        if init is not None:
            raise UsageError(f"{folder} was not fine-tuned from another run: leave out --init.")
        if begun == RESTORING and not restore:
            warn(f"{folder} began with restoring sentences, and candidates will not: --restore lets them", quiet)
        elif begun and corpus.get("is_student"):
            warn(
                f"{folder} is a student that began with the weights of {begun}, and candidates begin with random ones, "
                f"for which its time may be too short: give a long --max-time, or improve {begun}", quiet,
            )  # fmt: skip
        return
    if other := corpus.get("tokenizer_of"):
        raise UsageError(
            f"{folder} began with the weights of {begun} and has the vocabulary of {other}, which lacks the tag of "
            "synthetic sources. Train a run with --init and --init-vocabulary new, and improve that one."
        )
    if init is None:
        raise UsageError(
            f"{folder} began with the weights of {begun}: give that run with --init, so that the candidates begin "
            "with them, too."
        )
    if init.resolve().name != begun:
        warn(f"{folder} began with the weights of a run named {begun}, and --init is {init}", quiet)
