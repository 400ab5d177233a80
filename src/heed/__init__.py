"""heed trains, evaluates, explains and serves your own sequence models.

import heed

translator = heed.load("runs/en-de")
translator.translate("A dog runs.")
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from heed.api import evaluate, load, train
    from heed.decoding.hypothesis import Hypothesis
    from heed.decoding.options import SearchOptions
    from heed.evaluation.evaluation import Evaluation
    from heed.tasks.predictor import Prediction, Predictor

__all__ = [
    "Evaluation", "Hypothesis", "Prediction", "Predictor", "SearchOptions", "__version__", "evaluate", "load", "train",
]  # fmt: skip

_MODULES = {
    "load": "heed.api", "train": "heed.api", "evaluate": "heed.api", "Hypothesis": "heed.decoding.hypothesis",
    "SearchOptions": "heed.decoding.options", "Evaluation": "heed.evaluation.evaluation",
    "Prediction": "heed.tasks.predictor", "Predictor": "heed.tasks.predictor",
}  # fmt: skip
"""The module of each name, imported on first use, so that `import heed` and `heed --help` are fast."""


def __getattr__(name: str) -> object:
    if name == "__version__":
        from importlib.metadata import version

        return version("heed")
    if name in _MODULES:
        from importlib import import_module

        return getattr(import_module(_MODULES[name]), name)
    raise AttributeError(f"module 'heed' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
