"""Confidence: the calibrated probability that an output is good.

Good means that the sentence chrF of the translation against its reference is at least the median of the validation
sentences, so that half of them are good. There are four features, which every search provides whatever its beam: the
mean log-probability of a token, that of the least likely token, the logarithm of the number of tokens, and whether an
output check flagged it. The margin over the second-best hypothesis is not a feature, since it depends on when the
search stopped. Defective outputs (flagged without a replacement, or cut off) are rare on validation data, and the model
is confident in loops, so their probability has an upper limit of its own. `heed evaluate --calibrate` writes the
calibration to `confidence.json` in the run folder.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Literal

from pydantic import Field

from heed.core.config import Config
from heed.core.errors import DataError
from heed.core.files import atomic_write
from heed.decoding.hypothesis import Hypothesis

FILE = "confidence.json"
FEATURES = ("mean log-probability", "least log-probability", "log length", "flagged")

Features = tuple[float, float, float, float]


def features(hypothesis: Hypothesis) -> Features:
    """The values of FEATURES."""
    steps = hypothesis.token_log_probs
    if not steps:  # cut off before its first token
        return (hypothesis.log_prob, hypothesis.log_prob, 0.0, float(bool(hypothesis.flags)))
    mean = math.fsum(steps) / len(steps)
    return (mean, min(steps), math.log(len(steps)), float(bool(hypothesis.flags)))


def is_defective(hypothesis: Hypothesis) -> bool:
    """Whether an output is flagged and not replaced, or did not end."""
    return (bool(hypothesis.flags) and not hypothesis.fallback) or not hypothesis.finished


class Confidence(Config):
    """A logistic regression on the features, a limit for defective outputs, and their origin."""

    format: Literal[1] = 1
    """Version of the file format."""
    mean: Features
    """Mean of each feature on the validation data."""
    scale: Features
    """Standard deviation of each feature."""
    weights: Features
    """Weights of the standardised features."""
    bias: float
    """Intercept of the regression."""
    amiss_good: float = 0.1
    """The limit: the share of good outputs among the defective ones on validation, with one good and nine bad added."""
    good_chrf: float
    """Smallest sentence chrF of a good translation: the median on validation."""
    num_sentences: int = Field(ge=1)
    """Number of validation sentences."""
    beam_size: int = Field(ge=1)
    """Beam size of the search used for calibration."""
    calibration_error: float
    """Expected calibration error, by cross-validation."""

    def of(self, hypothesis: Hypothesis) -> float:
        """The probability that a hypothesis is good."""
        rows = zip(features(hypothesis), self.mean, self.scale, self.weights, strict=True)
        total = self.bias + sum(weight * (value - mean) / scale for value, mean, scale, weight in rows)
        probability = 0.5 * (1 + math.tanh(0.5 * total))
        return min(probability, self.amiss_good) if is_defective(hypothesis) else probability

    def write(self, folder: Path) -> Path:
        """Write to a run folder; returns the path."""
        path = folder / FILE
        with atomic_write(path, "w") as file:
            file.write(self.model_dump_json(indent=1) + "\n")
        return path

    @staticmethod
    def read(folder: Path) -> Confidence | None:
        """Read from a run folder; None if it has none. Raises DataError for a damaged file."""
        path = folder / FILE
        if not path.exists():
            return None
        try:
            return Confidence.model_validate_json(path.read_bytes())
        except ValueError as error:
            raise DataError(
                f"{path} is damaged or was written by an incompatible version of heed. Delete it, or write a new one "
                "with `heed evaluate RUN --calibrate`."
            ) from error
