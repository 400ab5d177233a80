"""`heed evaluate --calibrate`: how sure is a run of its single translations?"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from heed.cli.options import search_options, use_threads
from heed.core.errors import UsageError


def calibrate_runs(
    runs: Sequence[Path], said: Mapping[str, object], as_json: bool, precision: str, threads: int, device: str,
    quiet: bool,
) -> None:  # fmt: skip
    """Learn the confidence of each run from its own validation data, print what was learned, and keep it in the run."""
    import heed
    from heed.core.progress import message
    from heed.evaluation.calibration import calibrate

    if not runs:
        raise UsageError("--calibrate learns from the validation data of a run: name the run.")
    found = []
    for folder in runs:
        use_threads(threads)
        loaded = heed.load(folder, device, precision)
        loaded.require("translate", "evaluate --calibrate")
        run = loaded.run
        message(f"translating the validation data of {folder}", quiet)
        found.append(calibrate(run, search_options(run.recipe.decoding, said)))
    if as_json:
        rows = zip(runs, found, strict=True)
        print(json.dumps([{"run": str(folder), **calibration.to_json()} for folder, calibration in rows]))
    else:
        print("\n\n".join(calibration.render() for calibration in found))
