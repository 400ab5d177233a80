"""Hypotheses: the outputs of a search."""

from __future__ import annotations

from dataclasses import dataclass, replace


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
    """Problems that the guard found in the best hypothesis: see `output_checks.py`."""
    fallback: bool = False
    """Whether this hypothesis replaces a best one that was flagged."""
    confidence: float | None = None
    """Calibrated probability that it is good, if the run has a calibration (see `output_checks.py`)."""
    lm_log_prob: float | None = None
    """Its log-probability under the language model of shallow fusion; `log_prob` includes the weighted share."""

    def with_text(self, text: str) -> Hypothesis:
        """A copy with this text."""
        return replace(self, text=text)


def single_spaced(text: str) -> str:
    """A translation in the form used to compare translations: one space between words and none at the ends."""
    return " ".join(text.split())
