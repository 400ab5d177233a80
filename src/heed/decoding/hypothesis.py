"""What does a search give back?"""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Hypothesis:
    """One output: its tokens (without begin and end), how likely the model finds it, and how it was ranked."""

    ids: tuple[int, ...]
    """Token ids without begin and end of sentence, those of a forced prefix included."""
    log_prob: float
    """Sum of the tokens' log-probabilities in nats, end of sentence included."""
    score: float
    """What it was ranked by: the log-probability after the penalties, or the expected utility."""
    token_log_probs: tuple[float, ...] = ()
    """Log-probability of each token, end of sentence last."""
    finished: bool = True
    """False where the longest allowed length cut it off: its end of sentence is then not counted."""
    text: str = ""
    """The text, filled in by whoever knows the tokenizer."""
    alternatives: tuple[Hypothesis, ...] = ()
    """The next best, best first, when n-best was asked for."""
    flags: tuple[str, ...] = ()
    """What the guard finds wrong with the best hypothesis: see `guard.py`."""
    fallback: bool = False
    """Whether this is another one, which the guard gives in its place."""
    confidence: float | None = None
    """The probability that it is good, where the run has learned to tell (see `confidence.py`)."""
    lm_log_prob: float | None = None
    """What a language model that took part in the search gives it; `log_prob` holds its weighted share."""

    def with_text(self, text: str) -> Hypothesis:
        """The same hypothesis with its text."""
        return replace(self, text=text)


def single_spaced(text: str) -> str:
    """A translation as it is compared with others: one blank between words, and none around them."""
    return " ".join(text.split())


@dataclass(frozen=True)
class LengthPenalty:
    """How scores of different lengths are compared: log P(y) divided by a function of |y|.

    "gnmt": ((5 + |y|) / 6)^α (Wu et al. 2016, equation 14); "mean": |y|^α, so α = 1 is the mean per token.
    α = 0 ranks by probability alone. |y| counts the end of sentence.
    """

    alpha: float = 0.6
    kind: str = "gnmt"

    def divisor(self, length: int) -> float:
        """What a log-probability of `length` tokens is divided by."""
        base = (5 + length) / 6 if self.kind == "gnmt" else max(length, 1)
        return float(base**self.alpha)
