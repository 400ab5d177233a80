"""`heed average`: the mean of the weights of several checkpoints."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from heed.cli.options import Quiet, RunFolder
from heed.core.errors import DataError
from heed.core.progress import message


def average(
    run: RunFolder,
    out: Annotated[Path, typer.Option(help="The new run folder.")],
    last: Annotated[int, typer.Option(help="Number of checkpoints.", min=1)] = 5,
    quiet: Quiet = False,
) -> None:
    """Average the newest checkpoints of a run into a new run.

    The method of Vaswani et al. (2017), section 6.1. A run keeps as many checkpoints as training.keep_checkpoints says.
    The weights of a classifier's parts in its answer are fitted again on the validation data.

    Example:

      heed average runs/en-de --last 5 --out runs/en-de-avg5
    """
    from heed.run import Run, with_other_weights
    from heed.training.checkpoints import list_checkpoints, load_checkpoint, step_of
    from heed.training.weights import mean_of

    opened = Run(run)
    checkpoints = [path for path in list_checkpoints(opened.folder / "checkpoints") if step_of(path) > 0][-last:]
    if not checkpoints:
        raise DataError(
            f"{run} has no checkpoints to average: none was saved after an update. Name a run with checkpoints."
        )
    if len(checkpoints) < last:
        kept = f"{len(checkpoints)} checkpoint{'s' * (len(checkpoints) > 1)}"
        message(f"note: {run} keeps only {kept} (training.keep_checkpoints).", quiet)
    names = ", ".join(path.name for path in checkpoints)
    weights = mean_of([load_checkpoint(path, opened.shapes).weights for path in checkpoints])
    with with_other_weights(opened, out, weights, {"averaged": names}) as new:
        new.task().refit(new.model)
        new.predictor.convert()
    message(f"{out}: the mean of {names}", quiet)
