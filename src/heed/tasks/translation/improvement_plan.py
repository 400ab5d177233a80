"""Plan and record of an improvement: how its time is divided, what was done, and the rule that keeps a model."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import BaseModel, ConfigDict

from heed.evaluation.evaluation import Evaluation
from heed.evaluation.outputs import COMPARED
from heed.metrics.significance import Comparison
from heed.report.markdown import plain, table
from heed.tasks.translation.corrections import LEVEL, Decision
from heed.tasks.translation.monolingual import reasons

MOST_ROUNDS = 3
"""Hoang et al. (2018) gain little after the second."""
RESTORING, TRANSLATING, REVERSE = 0.25, 0.3, 0.4
"""Share of the whole time for restoring masked sentences; largest share of a round for translating; and the share
of the rest for the reverse model."""


class Plan(BaseModel):
    """How long each step of a round may take, in minutes; None where no time was given."""

    model_config = ConfigDict(frozen=True)

    rounds: int
    max_minutes: float | None
    restoring: float | None = 0.0
    """Before the first round; 0: the models begin otherwise."""
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

    def render(self, name: str, num_valid: int) -> str:
        """A table of what was tried, in Markdown. `name`: that of the run that was to be improved."""
        heading = ["round", "new", "trained on", "minutes", "BLEU", "chrF2", "p", ""]
        rows = [
            [
                str(trial.round), trial.model, trial.pairs, f"{trial.minutes:.1f}",
                *(f"{trial.before[name]:.2f} → {trial.after[name]:.2f}" for name in COMPARED),
                "" if trial.p is None else f"{trial.p:.3f}", "kept" if trial.kept else "not kept",
            ]
            for trial in self.trials
        ]  # fmt: skip
        steps = ", ".join(f"{name} {minutes:.1f}" for name, minutes in self.minutes.items())
        left_out = [
            f"Left out of --mono-{side}: {reasons(dropped)}." for side, dropped in self.left_out.items() if dropped
        ]
        facts = [
            f"From {plain(name)}, on its {num_valid:,} validation lines; p by paired bootstrap. Minutes: {steps}.",
            *left_out,
            "The weights of every model were chosen on these same lines, so measure the gain on a test set once.",
        ]
        return "\n".join([table([heading, *rows], right=[0, 3]), "", *facts])


def values(evaluation: Evaluation) -> dict[str, float]:
    """The scores of an evaluation, for a trial."""
    return {name: round(score.value, 4) for name, score in evaluation.scores.items()}


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


def plan_for(
    max_minutes: float | None, run_minutes: float, translating: float, has_reverse: bool, restores: bool
) -> Plan:
    """Divide the time among as many rounds as leave each training about as long as that of the run took.

    `restores`: the models begin with one that restores masked sentences, which is trained first.
    """
    if max_minutes is None:
        return Plan(
            rounds=MOST_ROUNDS, max_minutes=None, restoring=None if restores else 0.0, reverse=None, candidate=None,
            translating=translating, share=1.0,
        )  # fmt: skip
    restoring = RESTORING * max_minutes if restores else 0.0
    of_rounds = max_minutes - restoring
    needed = translating + run_minutes * (1 if has_reverse else 2)
    rounds = min(MOST_ROUNDS, max(1, int(of_rounds // max(needed, 1e-9))))
    of_round = of_rounds / rounds
    share = min(1.0, TRANSLATING * of_round / max(translating, 1e-9))
    training = of_round - share * translating
    reverse = 0.0 if has_reverse else REVERSE * training
    return Plan(
        rounds=rounds, max_minutes=max_minutes, restoring=restoring, reverse=reverse, candidate=training - reverse,
        translating=share * translating, share=share,
    )  # fmt: skip
