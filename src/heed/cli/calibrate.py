"""`heed evaluate --calibrate`: learn how certain a run is of its single translations."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from heed.cli.evaluate_translations import SearchFlags
from heed.cli.flags import given
from heed.cli.options import Compute, search_options
from heed.core.errors import UsageError


def calibrate_runs(runs: Sequence[Path], search: SearchFlags, as_json: bool, compute: Compute, quiet: bool) -> None:
    """Learn the confidences of each run from its validation data, print them, and keep them in the run folder."""
    from heed.core.progress import message
    from heed.evaluation.calibration import calibrate

    if not runs:
        raise UsageError("--calibrate reads the validation data of a run: name a run.")
    calibrations = []
    for folder in runs:
        predictor = compute.load(folder)
        predictor.require("translate", "--calibrate")
        message(f"translating the validation data of {folder}", quiet)
        options = search_options(predictor.run.recipe.decoding, {**given(search), "nbest": 1})
        calibrations.append(calibrate(predictor.run, options))
    if as_json:
        rows = zip(runs, calibrations, strict=True)
        print(json.dumps([{"run": str(folder), **calibration.to_json()} for folder, calibration in rows]))
    else:
        print("\n\n".join(calibration.render() for calibration in calibrations))
