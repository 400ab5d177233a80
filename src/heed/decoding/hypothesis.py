"""Hypotheses: the outputs of a search."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Hypothesis:
    """One output, its log-probability under the model, and its score."""

    ids: tuple[int, ...]
    """Token ids without begin and end of sentence, including a forced prefix."""
    log_prob: float
    """Sum of the tokens' log-probabilities in nats, end of sentence included."""
    score: float
    """Ranking score: the log-probability after penalties, or the expected utility."""
    token_log_probs: tuple[float, ...] = ()
    """Log-probability of each token, end of sentence last."""
    finished: bool = True
    """False if it was cut off at the longest allowed length; its end of sentence is then not counted."""
    text: str = ""
    """The decoded text; empty until detokenized."""
    alternatives: tuple[Hypothesis, ...] = ()
    """The next best hypotheses, best first, if n-best was requested."""
    flags: tuple[str, ...] = ()
    """Problems of the best hypothesis that the guard detected (see `output_checks.py`)."""
    fallback: bool = False
    """Whether this hypothesis replaces a best one that was flagged."""
    confidence: float | None = None
    """Calibrated probability that it is good, if the run has a calibration (see `output_checks.py`)."""
    links: tuple[tuple[int, int], ...] | None = None
    """(source, target) words that its derivation links; None if it has none, or if several outputs were joined."""
    lm_log_prob: float | None = None
    """Its log-probability under the language model of shallow fusion; `log_prob` includes the weighted share."""


def single_spaced(text: str) -> str:
    """The text with one space between words and none at the ends, as translations are compared."""
    return " ".join(text.split())
