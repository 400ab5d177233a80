"""A training that is started again (`heed train --restartable`): what may differ from the first time."""

from __future__ import annotations

from pathlib import Path

from heed.core.errors import UsageError


def new_limits(folder: Path, overrides: dict[str, object]) -> dict[str, object]:
    """The limits that differ from those of a run that is started again. Raises UsageError for other differences.

    A run that is estimated from counts has none, unless its scorer is trained.
    """
    from heed.core.config import flattened
    from heed.planner import LIMITS
    from heed.run import Run

    require_same_files(folder, overrides)
    run = Run(folder)
    own = flattened(run.recipe.model_dump(mode="json", exclude={"data"}))
    changed = {key: value for key, value in overrides.items() if key in own and own[key] != value}
    if others := [key for key in changed if key not in LIMITS]:
        values = ", ".join(f"{key} = {own[key]!r}, not {changed[key]!r}" for key in others)
        raise UsageError(f"{folder} was started with {values}. Name another --out for another training.")
    has_effect = run.recipe.training.scorer or not run.blank_model.count_based
    return changed if has_effect else {}


def require_same_files(folder: Path, overrides: dict[str, object]) -> None:
    """Raise UsageError for data files with other names than those of a run that is started again."""
    from heed.run import Run

    data = Run(folder).recipe.data
    for key in data.path_keys:
        own, given = getattr(data, key), overrides.get(f"data.{key}", "")
        if given and Path(str(given)).name != Path(own).name:
            before = f"data.{key} = {own!r}" if own else f"no data.{key}"
            raise UsageError(
                f"{folder} was started with {before}, not {given!r}. Name another --out for another training."
            )


def has_scorer(folder: Path) -> bool:
    """Whether a complete run has a scorer, whose training new limits continue."""
    from heed.run import Run

    return bool(Run(folder).recipe.training.scorer)
