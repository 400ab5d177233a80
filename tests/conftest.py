"""Settings and fixtures of all tests."""

from __future__ import annotations

import functools
import gc
import importlib
import os
import pkgutil
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import hypothesis
import jaxtyping
import pytest
import typecheck

# PyTorch reads this when it is first imported, by a test or a process that tests start. A test run already has as many
# workers as cores. The first process of such a run only distributes the tests, and imports neither PyTorch nor heed.
os.environ["OMP_NUM_THREADS"] = "1"

typecheck.instrument(["heed.nn", "heed.models", "heed.decoding", "heed.inference"])

ROOT = Path(__file__).resolve().parent.parent

# Tests have no deadlines, and are deterministic.
hypothesis.settings.register_profile("heed", deadline=None, derandomize=True)
hypothesis.settings.load_profile("heed")


def pytest_collection() -> None:
    """Search nothing of what is imported for garbage: it is much, and none of it is ever freed."""
    gc.disable()


def pytest_collection_finish() -> None:
    """Import all of heed: Hypothesis uses constants of imported modules, which must not change between tests."""
    import heed

    for module in pkgutil.walk_packages(heed.__path__, "heed."):
        if module.name != "heed.__main__":
            with suppress(ModuleNotFoundError):  # an extra that is not installed; its tests are skipped
                importlib.import_module(module.name)
    gc.freeze()
    gc.enable()


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of real data sets: HEED_SHARED_DATA, or `shared/data` next to the checkout."""
    folder = Path(os.environ.get("HEED_SHARED_DATA") or ROOT.parent / "shared" / "data")
    if not folder.is_dir():
        pytest.skip(f"no real data: {folder} does not exist; set HEED_SHARED_DATA to another folder")
    return folder


@pytest.fixture(scope="session", autouse=True)
def quick_trainings() -> Iterator[None]:
    """Files are not flushed to the device, and the machine is measured once."""
    from heed.nn.device import best_precision

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda descriptor: None)
        patch.setattr("heed.tasks.defaults.best_precision", functools.cache(best_precision))
        yield


@pytest.fixture(autouse=True)
def settings() -> None:
    """Check shapes, compute with one thread, and draw the same numbers in each test, whatever another has done."""
    import torch

    jaxtyping.config.update("jaxtyping_disable", False)
    torch.set_num_threads(1)
    torch.manual_seed(0)
