"""`heed average`: the mean of several checkpoints' weights."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Annotated

import typer

from heed.cli.options import Debug, Quiet, RunFolder


def average(
    run: RunFolder,
    out: Annotated[Path, typer.Option(help="The new run folder.")],
    last: Annotated[int, typer.Option(help="How many of the newest checkpoints.", min=1)] = 5,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Average the newest checkpoints of a run (Vaswani et al. 2017, section 6.1) into a new run.

    A run keeps training.keep_checkpoints of them.

    Example:

      heed average runs/en-de --last 5 --out runs/en-de-avg5
    """
    from heed.core.errors import DataError
    from heed.core.files import atomic_folder, storage_errors
    from heed.core.progress import message
    from heed.nn.weight_file import save_weights
    from heed.run import RECIPE, WEIGHTS, Run
    from heed.tasks.prepare import copy_what_was_seen, vocabulary_digests
    from heed.training.checkpoints import list_checkpoints, load_checkpoint, step_of
    from heed.training.weights import mean_of

    opened = Run(run)
    trained = [path for path in list_checkpoints(opened.folder / "checkpoints") if step_of(path) > 0]
    found = trained[-last:]
    if not found:
        raise DataError(f"{run} has no checkpoints to average: none was written behind its first update.")
    if len(found) < last:
        kept = f"{run} keeps {len(found)} checkpoints, not {last} (training.keep_checkpoints): all are averaged."
        message(kept, quiet)
    names = ", ".join(path.name for path in found)
    weights = mean_of([load_checkpoint(path, opened.shapes).weights for path in found])
    with storage_errors("write the new run", path=out), atomic_folder(out) as folder:
        for source in (opened.folder / RECIPE, *opened.folder.glob("tokenizer*.json")):
            shutil.copy(source, folder / source.name)
        copy_what_was_seen(opened.folder, folder)
        save_weights(folder / WEIGHTS, weights, {"averaged": names, **vocabulary_digests(opened.tokenizers)})
    message(f"{out}: the mean of {names}", quiet)
