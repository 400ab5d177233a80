"""Plan and record of an improvement: how its time is divided, what was done, and the rule that keeps a model."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import BaseModel, ConfigDict

from heed.metrics.significance import Comparison
from heed.tasks.translation.corrections import LEVEL, Decision

MOST_ROUNDS = 3
"""Hoang et al. (2018) gain little after the second."""
TRANSLATING, REVERSE = 0.3, 0.4
"""Largest share of a round's time for translating, and the share of the rest for the reverse model."""


class Plan(BaseModel):
    """How long each step of a round may take, in minutes; None where no time was given."""

    model_config = ConfigDict(frozen=True)

    rounds: int
    max_minutes: float | None
    reverse: float | None
    candidate: float | None
    translating: float
    """Expected minutes in each round, by the speed of the run."""
    share: float
    """Of all lines, those that are translated in this time."""


class Trial(BaseModel):
    """A test of a new model against the one that it would replace."""

    model_config = ConfigDict(frozen=True)

    round: int
    model: str
    before: dict[str, float]
    after: dict[str, float]
    p: float | None
    kept: bool
    pairs: str
    """The training data of the new model."""
    minutes: float
    """Of its training."""


class Record(BaseModel):
    """The state of an improvement, in a file."""

    made_from: dict[str, str]
    """The SHA-256 of the inputs, by name."""
    plan: Plan
    left_out: dict[str, dict[str, int]]
    minutes: dict[str, float] = {}
    """Of each finished step, by its name."""
    trials: list[Trial] = []
    finished: bool = False


def decide(comparisons: Mapping[str, Comparison]) -> Decision:
    """Keep a model with a significantly higher BLEU on the validation data, whose chrF is not significantly lower.

    The test is the paired bootstrap, two-sided, at the level of 5 %; with too few lines for it nothing is kept. BLEU is
    what both trainings chose their weights by, on the same lines, so neither model has an advantage there. chrF must
    not be worse by the same test, because output in the style of synthetic text can gain words and lose their forms.
    """
    bleu, chrf = comparisons["bleu"], comparisons["chrf"]
    if bleu.p_bootstrap is None:
        return Decision(False, "the validation data has too few lines for a test")
    figures = f"BLEU {bleu.difference:+.2f}, p = {bleu.p_bootstrap:.3f}"
    if not (bleu.difference > 0 and bleu.p_bootstrap < LEVEL):
        return Decision(False, figures)
    if chrf.difference < 0 and chrf.p_bootstrap is not None and chrf.p_bootstrap < LEVEL:
        return Decision(False, f"{figures}, but chrF {chrf.difference:+.2f}, p = {chrf.p_bootstrap:.3f}")
    return Decision(True, figures)


def plan_for(max_minutes: float | None, run_minutes: float, translating: float, has_reverse: bool) -> Plan:
    """Divide the time among as many rounds as leave each training about as long as that of the run took."""
    if max_minutes is None:
        return Plan(
            rounds=MOST_ROUNDS, max_minutes=None, reverse=None, candidate=None, translating=translating, share=1.0
        )
    needed = translating + run_minutes * (1 if has_reverse else 2)
    rounds = min(MOST_ROUNDS, max(1, int(max_minutes // max(needed, 1e-9))))
    of_round = max_minutes / rounds
    share = min(1.0, TRANSLATING * of_round / max(translating, 1e-9))
    training = of_round - share * translating
    reverse = 0.0 if has_reverse else REVERSE * training
    return Plan(
        rounds=rounds, max_minutes=max_minutes, reverse=reverse, candidate=training - reverse,
        translating=share * translating, share=share,
    )  # fmt: skip
