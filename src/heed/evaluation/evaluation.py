"""Evaluation of one system on one test set: scores, significance tests, leakage, and an analysis of the outputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from heed.core.errors import UsageError
from heed.evaluation.leakage import Leakage, check_leakage
from heed.evaluation.test_set import HeldOut
from heed.metrics.metric import Score
from heed.metrics.sentence_length import LengthBucket
from heed.metrics.significance import Comparison, Statistics, compare
from heed.metrics.word_frequency import FrequencyBand, WordMatches
from heed.run import Run

INTERVALS = 1000
"""Draws of each bootstrap interval."""


class AnySystem(Protocol):
    """A system to evaluate: a run, an ensemble, or another toolkit."""

    @property
    def name(self) -> str: ...
    @property
    def run(self) -> Run | None: ...
    @property
    def members(self) -> Sequence[Run]: ...


@dataclass(frozen=True)
class ScoredSentence:
    """A line of a test set with its output and score."""

    line: int
    """The line of the test files, or the pair of a file of pairs, counted from 1."""
    chrf: float
    source: str
    output: str
    reference: str
    alignment: str = ""
    """Word links by the model's attention, `0-0 1-2`: source and output, counted from 0."""
    links: str = ""
    """The same links as words: `Two=Zwei dogs=Hunde`."""


@dataclass(frozen=True)
class Evaluation:
    """Scores of one system on one test set, with tests against the first system and an analysis of its outputs."""

    system: str
    test: HeldOut
    run: Run | None
    scores: Mapping[str, Score]
    """By metric, with 95 % intervals."""
    how: Mapping[str, Any] = field(default_factory=dict)
    """Options of the search, of reading and of scoring."""
    length_ratio: float | None = None
    """Words of the outputs per word of the references."""
    against_first: Mapping[str, Comparison] = field(default_factory=dict)
    """By metric; empty for the first system."""
    leakage: Leakage | None = None
    """None for a system without fingerprints of its training data."""
    without_leaked: Mapping[str, Score] = field(default_factory=dict)
    """Scores on the lines that no run was trained on, if there are others."""
    num_clean: int | None = None
    """The number of these lines."""
    by_length: Sequence[LengthBucket] = ()
    by_frequency: Sequence[FrequencyBand] = ()
    """Empty if no run records the word counts of its training data."""
    unigram_f1: Mapping[str, WordMatches] = field(default_factory=dict)
    """For `all`, `rare` and `unseen` words; empty likewise."""
    words_as: str = ""
    """How words of `by_frequency` and `unigram_f1` are split, and which of them are rare."""
    words_of: str = ""
    """The system whose training data gives the frequencies."""
    num_rows: int = 0
    """Lines, or blocks of lines, that intervals and tests draw; 0 if unknown."""
    worst: Sequence[ScoredSentence] = ()
    members: Sequence[Run] = ()
    """The runs of an ensemble."""
    statistics: Mapping[str, Statistics] = field(default_factory=dict, repr=False)
    """The counts of each score for each row, for tests against other systems; not part of the JSON."""
    by_label: Sequence[Mapping[str, Any]] = ()
    """For labels and types of spans: number, precision, recall and F1 of each."""
    confusions: Sequence[tuple[str, str, int]] = ()
    """The most frequent errors: reference, answer, and their number."""

    def __repr__(self) -> str:
        scores = ", ".join(f"{name} {score.value:.4g}" for name, score in self.scores.items())
        return f"<Evaluation of {self.system!r} on {self.test.label}: {scores}>"

    @property
    def synthetic(self) -> bool:
        """Whether a run was trained on the built-in corpus."""
        return any(run.recipe.data.synthetic for run in (self.run, *self.members) if run is not None)

    def to_json(self) -> dict[str, Any]:
        """All fields in types that `json` writes; scores in the order of the table."""
        return {
            "system": self.system,
            "run": str(self.run.folder) if self.run else None,
            "test": self.test.fingerprint(),
            "counted": self.test.unit,
            "synthetic": self.synthetic,
            **self.how,
            "scores": [score.to_json() for score in self.scores.values()],
            "length_ratio": self.length_ratio,
            "against_first": {name: asdict(comparison) for name, comparison in self.against_first.items()},
            "leakage": asdict(self.leakage) if self.leakage else None,
            "without_leaked": [score.to_json() for score in self.without_leaked.values()],
            "by_length": [bucket.to_json() for bucket in self.by_length],
            "by_frequency": [band.to_json() for band in self.by_frequency],
            "words_as": self.words_as,
            "unigram_f1": {kind: matches.to_json() for kind, matches in self.unigram_f1.items()},
            "worst": [asdict(sentence) for sentence in self.worst],
            **({"by_label": list(self.by_label), "confusions": list(self.confusions)} if self.by_label else {}),
        }


def check_leakages(test: HeldOut, systems: Sequence[AnySystem]) -> tuple[list[Leakage | None], NDArray[np.bool_]]:
    """The leakage of each system, and which lines no run was trained on."""
    leaks = [check_leakage(system.run, test.rows) if system.run else None for system in systems]
    clean = np.ones(len(test.rows), dtype=bool)
    for leakage in filter(None, leaks):
        clean[np.array(leakage.lines, dtype=np.int64) - 1] = False
    return leaks, clean


def compare_all(first: Mapping[str, Statistics], other: Mapping[str, Statistics]) -> dict[str, Comparison]:
    """Tests against the first system by metric; empty for a single sentence, where every draw is the same."""
    return {name: compare(statistics, other[name]) for name, statistics in first.items() if len(statistics.rows) > 1}


def compared(evaluations: Sequence[Evaluation]) -> list[Evaluation]:
    """The evaluations of one test set, each after the first with tests against it.

    Raises UsageError if one has other metrics, other rows or other right answers than the first.
    """
    if not evaluations:
        return []
    first, *others = evaluations
    for each in others:
        if each.scores.keys() != first.scores.keys() or each.num_rows != first.num_rows:
            one, other = (
                f"{', '.join(score.name for score in e.scores.values())} on {e.num_rows:,} {e.test.unit}s"
                for e in (first, each)
            )
            raise UsageError(
                f"{each.system} cannot be compared with {first.system}, because they answer differently: the scores "
                f"are {one} for the first, and {other} for this one. Evaluate it by itself."
            )
        if each.test.references != first.test.references:
            raise UsageError(
                f"{each.system} cannot be compared with {first.system}, because the right answers differ: they are in "
                "another column for this one. Evaluate it by itself."
            )
    return [first, *(replace(each, against_first=compare_all(first.statistics, each.statistics)) for each in others)]


def with_clean_scores(evaluations: Sequence[Evaluation]) -> list[Evaluation]:
    """The evaluations of one test set, with scores on the rows that no run was trained on, from their statistics.

    There are none if no row, or every row that was compared, is in the training data of a run.
    """
    leaked = leaked_rows(evaluations)
    clean = np.array([row not in leaked for row in range(len(evaluations[0].test.rows))], dtype=bool)
    number = int(clean.sum())

    def scores(statistics: Mapping[str, Any]) -> dict[str, Score]:
        some = statistics if leaked and not all_leaked(evaluations) else {}
        return {name: each.select(clean).score(INTERVALS) for name, each in some.items()}

    return [replace(each, without_leaked=scores(each.statistics), num_clean=number) for each in evaluations]


def leaked_rows(evaluations: Sequence[Evaluation]) -> set[int]:
    """The rows of the test set, counted from 0, that are in the training data of a run."""
    return {line - 1 for each in evaluations if each.leakage for line in each.leakage.lines}


def all_leaked(evaluations: Sequence[Evaluation]) -> bool:
    """Whether every row that is long enough to be compared is in the training data of a run."""
    compared = max((each.leakage.num_compared for each in evaluations if each.leakage), default=0)
    return 0 < compared <= len(leaked_rows(evaluations))


def precision_of(system: AnySystem) -> dict[str, Any]:
    """The number format of the weights of a run, or of an ensemble's members."""
    runs = [run for run in (system.run, *system.members) if run is not None]
    if not runs:
        return {}
    run = runs[0]
    by_pytorch = f" (PyTorch: {run.pytorch_precision})" if run.pytorch_precision else ""
    return {"precision": run.precision + by_pytorch}


def differ_in_unknown(evaluations: Sequence[Evaluation]) -> bool:
    """Whether language models treat different numbers of tokens as unknown words, so their scores are incomparable."""
    return len({evaluation.how["unknown"] for evaluation in evaluations if "unknown" in evaluation.how}) > 1
