"""A run that the tests of whole programs share."""

from __future__ import annotations

from pathlib import Path

import pytest
from toy import prepared, trainer_of, unchecked_shapes, without_shape_checks

__all__ = ["without_shape_checks"]


@pytest.fixture(scope="session")
def translator(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A translation run that has learned next to nothing."""
    folder = tmp_path_factory.mktemp("translator")
    with unchecked_shapes():
        trainer_of(prepared(folder, training__max_steps=2, training__eval_every=2)).run()
    return folder / "run"
