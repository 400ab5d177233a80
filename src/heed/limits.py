"""Limits of a training by gradients: the only keys that may change when it is resumed."""

from __future__ import annotations

from collections.abc import Mapping

from heed.core.errors import UsageError
from heed.run import Run
from heed.training.checkpoints import validations_since_best
from heed.training.metrics_log import read_metrics

LIMITS = ("training.max_minutes", "training.max_steps", "training.max_epochs", "training.patience")


def require_limits(run: Run, limits: Mapping[str, object]) -> None:
    """Raise UsageError for keys that are no limits, or for limits that the training has passed."""
    require_only_limits(run, limits)
    require_higher(run, limits)


def require_only_limits(run: Run, limits: Mapping[str, object]) -> None:
    """Raise UsageError for keys that are no limits."""
    if others := [key for key in limits if key not in LIMITS]:
        allowed = ", ".join(f"--{key}" for key in LIMITS)
        again = "train it again with --overwrite"
        how = again if run.blank_model.count_based else f"start a new run with --init {run.folder}"
        raise UsageError(
            f"--resume uses {run.folder}/recipe.toml and cannot change {', '.join(others)}. Only limits may change "
            f"({allowed}, --max-time); for other changes {how}."
        )


def require_higher(run: Run, limits: Mapping[str, object]) -> None:
    """Raise UsageError for a limit that the training has passed, or a patience that would end it at once."""
    validations = [event for event in read_metrics(run.folder) if event["event"] == "validation"]
    if not validations:
        return
    done = validations[-1]
    minutes, epochs = float(done.get("seconds", 0)) / 60, int(done.get("epoch", 0))
    limited = (
        ("max_steps", done["step"], "--max-steps"), ("max_minutes", minutes, "--max-time"),
        ("max_epochs", epochs, "--training.max_epochs"),
    )  # fmt: skip
    for key, reached, flag in limited:
        limit = limits.get(f"training.{key}")
        if isinstance(limit, int | float) and 0 < limit <= reached:
            raise UsageError(
                f"{run.folder} has been trained for {done['step']:,} updates and {minutes:.1f} minutes, into "
                f"epoch {epochs + 1:,}, and limits count from the beginning: give a higher {flag}."
            )
    waited = validations_since_best(run.folder / "checkpoints")
    patience = limits.get("training.patience", run.recipe.training.patience)
    if isinstance(patience, int) and 0 < patience <= waited:
        raise UsageError(
            f"{run.folder} has not had a better {run.recipe.training.stop_metric} in {waited:,} validations, and ends "
            f"after {patience:,} (training.patience): give a higher --patience, or --patience 0 for no such limit."
        )
