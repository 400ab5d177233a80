"""How likely is an output good? A calibrated probability from what the search says of it.

Good means: the sentence chrF of the translation against its reference is at least the median of the validation
sentences, so that half of them are good. Four features, which every search gives whatever its beam: the mean
log-probability of a token, that of the least likely token, the logarithm of the number of tokens, and whether the
guard found something. The lead over the runner-up is no feature: how far it is known depends on when the search
stopped. What is amiss (flagged with nothing better to give, or cut off) is rare on validation, and a loop is sure of
itself: its probability has a limit of its own.
`confidence.json` in the run folder holds what was learned; `heed evaluate --calibrate` writes it.
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

Four = tuple[float, float, float, float]


def features(hypothesis: Hypothesis) -> Four:
    """The numbers that FEATURES names."""
    steps = hypothesis.token_log_probs
    if not steps:  # cut off before its first token
        return (hypothesis.log_prob, hypothesis.log_prob, 0.0, float(bool(hypothesis.flags)))
    mean = math.fsum(steps) / len(steps)
    return (mean, min(steps), math.log(len(steps)), float(bool(hypothesis.flags)))


def is_amiss(hypothesis: Hypothesis) -> bool:
    """Whether an output is given that the guard has flagged, or that did not end."""
    return (bool(hypothesis.flags) and not hypothesis.fallback) or not hypothesis.finished


class Confidence(Config):
    """A logistic regression on the features, a limit for what is amiss, and what both were learned from."""

    format: Literal[1] = 1
    """Of this file."""
    mean: Four
    """Of each feature on validation."""
    scale: Four
    """The standard deviation of each."""
    weights: Four
    """Of the standardised features."""
    bias: float
    """Added to their sum."""
    amiss_good: float = 0.1
    """The limit: the share of good ones among the outputs of validation that are amiss, one good and nine bad added."""
    good_chrf: float
    """The sentence chrF that makes a translation good: the median on validation."""
    num_sentences: int = Field(ge=1)
    """Of the validation data."""
    beam_size: int = Field(ge=1)
    """Of the search that it was learned from."""
    calibration_error: float
    """Expected calibration error by cross-validation."""

    def of(self, hypothesis: Hypothesis) -> float:
        """The probability that an output is good."""
        rows = zip(features(hypothesis), self.mean, self.scale, self.weights, strict=True)
        total = self.bias + sum(weight * (value - mean) / scale for value, mean, scale, weight in rows)
        probability = 0.5 * (1 + math.tanh(0.5 * total))
        return min(probability, self.amiss_good) if is_amiss(hypothesis) else probability

    def write(self, folder: Path) -> Path:
        """Into a run folder."""
        path = folder / FILE
        with atomic_write(path, "w") as file:
            file.write(self.model_dump_json(indent=1) + "\n")
        return path

    @staticmethod
    def read(folder: Path) -> Confidence | None:
        """What a run folder holds; None where it holds none. Raises DataError for a file that is damaged."""
        path = folder / FILE
        if not path.exists():
            return None
        try:
            return Confidence.model_validate_json(path.read_bytes())
        except ValueError as error:
            raise DataError(
                f"{path} is damaged or of another version of heed. Delete it, or make it anew with "
                "`heed evaluate RUN --calibrate`."
            ) from error
