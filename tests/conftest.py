"""Settings and fixtures of all tests."""

from __future__ import annotations

import importlib
import os
import pkgutil
from contextlib import suppress
from pathlib import Path

import hypothesis
import jaxtyping
import pytest
import torch

ROOT = Path(__file__).resolve().parent.parent

# Torch reads this when it is first imported, here and in the programs that tests start. The workers of a
# test run are already as many as the cores.
os.environ["OMP_NUM_THREADS"] = "1"

# A test never asserts on time, and a commit either passes or does not.
hypothesis.settings.register_profile("heed", deadline=None, derandomize=True)
hypothesis.settings.load_profile("heed")


def pytest_collection_finish() -> None:
    """Import all of heed: Hypothesis tries the constants of modules that it finds, which must not be others later."""
    import heed

    for module in pkgutil.walk_packages(heed.__path__, "heed."):
        if module.name != "heed.__main__":
            with suppress(ModuleNotFoundError):  # of a part that is not installed; its tests say so
                importlib.import_module(module.name)


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of real data sets, which lies beside the checkout or where HEED_SHARED_DATA says."""
    folder = Path(os.environ.get("HEED_SHARED_DATA") or ROOT.parent / "shared" / "data")
    if not folder.is_dir():
        pytest.skip(f"no real data: {folder} is not there (HEED_SHARED_DATA names another folder)")
    return folder


@pytest.fixture(autouse=True)
def settings() -> None:
    """Check shapes and compute with one thread, whatever an earlier test or a running server has set."""
    jaxtyping.config.update("jaxtyping_disable", False)
    torch.set_num_threads(1)
