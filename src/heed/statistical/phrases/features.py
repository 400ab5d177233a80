"""Features of a derivation and their weights: its score is their weighted sum."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from heed.statistical.phrases.table import NUM_ORIENTATIONS, TABLE_FEATURES
from heed.statistical.predictor import Floats

_TURNS = ("monotone", "swap", "discontinuous")
ORIENTATION_FEATURES = tuple(f"{side}: {turn}" for side in ("before", "after") for turn in _TURNS)
FEATURES = (
    *TABLE_FEATURES, "phrases", "words", "unknown words", "distortion", "language model", *ORIENTATION_FEATURES,
)  # fmt: skip
"""Features of every translator: the table's own, the numbers of phrases, of target words and of copied words, minus
the sum of the distances that were jumped over, log p of the target, and the orientation of each phrase to its
neighbours."""
NUM_STATIC = len(TABLE_FEATURES) + 3
"""The first features depend on a phrase pair alone."""
DISTORTION, LANGUAGE = FEATURES.index("distortion"), FEATURES.index("language model")
BEFORE = LANGUAGE + 1
AFTER = BEFORE + NUM_ORIENTATIONS
UNKNOWN = FEATURES.index("unknown words")
CLASS_LANGUAGE = len(FEATURES)
"""The last feature of a translator with a model of word classes: log p of the classes of the target's words."""
LANGUAGES = (LANGUAGE, CLASS_LANGUAGE)
_WITH_CLASSES = (*FEATURES, "class model")

BEGINNING: Mapping[str, float] = {
    **dict.fromkeys(TABLE_FEATURES, 0.2), "phrases": 0.2, "words": 1.0, "unknown words": -100.0, "distortion": 0.3,
    "language model": 0.5, **dict.fromkeys(ORIENTATION_FEATURES, 0.3), "class model": 0.1,
}  # fmt: skip
"""Weights before tuning: those that Moses begins with, and 0.1 for the class model, which suits few pairs.

Measured in docs/results/low-resource.md."""


def feature_names(has_classes: bool = False) -> tuple[str, ...]:
    """The names of the features of a translator, in the order of its weights."""
    return _WITH_CLASSES if has_classes else FEATURES


def beginning_weights(has_classes: bool = False) -> Floats:
    """BEGINNING as an array in the order of the features."""
    return np.array([BEGINNING[name] for name in feature_names(has_classes)])
