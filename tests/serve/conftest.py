"""Runs and a server that these tests share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from serving import Live, Runs, make_runs, serving
from toy import without_shape_checks

import heed
from heed.tasks.predictor import Predictor

__all__ = ["without_shape_checks"]


@pytest.fixture(scope="session")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Runs:
    """Run folders; tests must not change them."""
    return make_runs(tmp_path_factory.mktemp("served"))


@pytest.fixture(scope="session")
def loaded(runs: Runs) -> list[Predictor]:
    """The two translators and the language model."""
    return [heed.load(folder) for folder in (runs.translator, runs.second, runs.language_model)]


@pytest.fixture(scope="session")
def live(loaded: list[Predictor]) -> Iterator[Live]:
    """A server of all of them; tests must leave it working."""
    with serving(loaded) as server:
        yield server
