"""A training that is started again (`heed train --restartable`): what may differ from the first time."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from heed.core.errors import UsageError

if TYPE_CHECKING:
    from heed.tasks.data import DataConfig


def new_limits(folder: Path, overrides: dict[str, object]) -> dict[str, object]:
    """The limits that differ from those of a run that is started again. Raises UsageError for other differences.

    A run that is estimated from counts has none, unless its scorer is trained.
    """
    from heed.core.config import flattened
    from heed.limits import LIMITS
    from heed.run import Run

    require_same_data(folder, overrides)
    run = Run(folder)
    own = flattened(run.recipe.model_dump(mode="json", exclude={"data"}))
    changed = {key: value for key, value in overrides.items() if key in own and own[key] != value}
    if others := [key for key in changed if key not in LIMITS]:
        values = ", ".join(f"{key} = {own[key]!r}, not {changed[key]!r}" for key in others)
        raise UsageError(f"{folder} was started with {values}. Name another --out for another training.")
    has_effect = run.recipe.training.scorer or not run.blank_model.count_based
    return changed if has_effect else {}


def require_same_data(folder: Path, overrides: Mapping[str, object]) -> None:
    """Raise UsageError for other keys of the data than those of a run that is started again.

    The folders of its files may be others, their names not.
    """
    from heed.core.config import read_toml
    from heed.core.run_files import RECIPE
    from heed.recipe import build_recipe
    from heed.run import Run

    changes = {key: value for key, value in overrides.items() if key.startswith("data.") and key != "data.dir"}
    own, given = Run(folder).recipe.data, build_recipe(read_toml(folder / RECIPE), changes).data
    names_before, names = _values(own.with_file_names()), _values(given.with_file_names())
    before, now = _values(own), _values(given)
    differences = [
        f"{f'{key} = {before[key]!r}' if before.get(key) else f'no {key}'}, not {now.get(key)!r}"
        for key in {**before, **now}
        if names_before.get(key) != names.get(key)
    ]
    if differences:
        values = ", ".join(differences)
        raise UsageError(f"{folder} was started with {values}. Name another --out for another training.")


def _values(data: DataConfig) -> dict[str, object]:
    """The values of the keys of the data; in tables of a list only those that differ from their defaults."""
    from heed.core.config import flattened

    whole, changed = (data.model_dump(mode="json", exclude_defaults=is_brief) for is_brief in (False, True))
    return flattened(whole, "data.") | flattened(changed, "data.")


def has_scorer(folder: Path) -> bool:
    """Whether a complete run has a scorer, whose training new limits continue."""
    from heed.run import Run

    return bool(Run(folder).recipe.training.scorer)
