"""A run that the tests of whole programs share."""

from __future__ import annotations

from pathlib import Path

import pytest
from toy import barely_trained, without_shape_checks

__all__ = ["without_shape_checks"]


@pytest.fixture(scope="session")
def translator(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A translation run that has learned next to nothing."""
    return barely_trained(tmp_path_factory.mktemp("translator")).folder
