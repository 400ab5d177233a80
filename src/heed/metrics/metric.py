"""Metric interface, scores with signatures, and the sentence statistics that scores and tests are computed from."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from heed.core.errors import DataError, UsageError
from heed.metrics.significance import SEED, interval, resampled_totals, values

Rows = NDArray[np.float64] | Sequence[Sequence[float]]


@dataclass(frozen=True)
class Score:
    """A number with its signature: scores with different signatures are not comparable."""

    name: str
    """As papers write it: `BLEU`, `chrF2`, `perplexity per word`."""
    value: float
    signature: str
    """The settings that must be equal for two scores to be comparable: `nrefs:1|case:mixed|eff:no|tok:13a|...`."""
    low: float | None = None
    """Lower end of the 95 % interval; None without an interval."""
    high: float | None = None

    def render(self) -> str:
        """The score on one line: `BLEU 34.21 [33.10, 35.30]  nrefs:1|bs:1000|...`."""
        return f"{self.name} {self.numbers}  {self.signature}"

    @property
    def numbers(self) -> str:
        """The value and its interval: `34.21 [33.10, 35.30]`.

        Small scores per unit of text have three decimals, and small errors, in units of the data, three digits.
        """
        decimals = 3 if " per " in self.name and abs(self.value) < 10 else 2
        is_small_error = " error" in self.name and 0 < abs(self.value) < 0.1
        form = ".3g" if is_small_error or abs(self.value) >= 1e7 else f".{decimals}f"
        value, *ends = (format(x, form) for x in (self.value, self.low, self.high) if x is not None)
        return f"{value} [{', '.join(ends)}]" if ends else value

    def to_json(self) -> dict[str, str | float | None]:
        """The fields in types that `json` writes; infinity becomes null."""
        return {
            name: None if isinstance(value, float) and not math.isfinite(value) else value
            for name, value in asdict(self).items()
        }

    @classmethod
    def from_json(cls, fields: Mapping[str, Any]) -> Score:
        """Read what `to_json` returned. Raises TypeError for anything else."""
        value = math.inf if fields.get("value") is None else fields["value"]
        is_endless = fields.get("low") is not None and fields.get("high") is None
        return cls(**{**fields, "value": value, **({"high": math.inf} if is_endless else {})})


class Metric(ABC):
    """A measure of quality. Its class is a value of `heed.metrics.METRICS`."""

    title: ClassVar[str]
    """As papers write it: `BLEU`, `perplexity per word`."""
    higher_is_better: ClassVar[bool] = True
    usable_from: ClassVar[float | None] = None
    """Below this score (above it, if lower is better) a model has learned almost nothing; None: unknown."""
    needs: ClassVar[Literal["outputs", "likelihoods", "vectors"]]
    """What it is computed from: outputs and their references, the likelihood of a text, or vectors of words."""


@dataclass(frozen=True)
class OutputMetric(Metric):
    """Compares outputs with one reference each.

    A corpus score is a function of counts summed over sentences. A metric defines `counts` and `value`; intervals,
    scores of single sentences and of parts of a test set, and significance tests follow from them.
    """

    language: str | None = None
    """Code of the target language, such as `de`, `zh-CN` or `jpn_Jpan`, for metrics that split text into words."""
    tokenised: bool = False
    """Whether outputs and references are tokenised, with blanks between the tokens."""
    num_references: int = 1
    """References of each output; 0 if outputs have different numbers."""

    needs = "outputs"

    @abstractmethod
    def counts(self, outputs: Sequence[str], references: Sequence[str]) -> Rows:
        """The counts [S sentences, K] of each sentence."""

    def counts_of_several(self, outputs: Sequence[str], references: Sequence[Sequence[str]]) -> Rows:
        """The counts [S sentences, K] of each sentence against all its references.

        Raises UsageError for a metric that compares with one reference only.
        """
        raise UsageError(f"{self.title} compares an output with one reference; leave it out for several.")

    @abstractmethod
    def value(self, totals: NDArray[np.float64]) -> float:
        """The score of summed counts [K]."""

    def of_part(self, rows: NDArray[np.float64]) -> NDArray[np.float64]:
        """The counts [S, K] of some sentences of a test set; by default, other sentences do not affect them."""
        return rows

    def sentence_value(self, counts: NDArray[np.float64]) -> float:
        """The score of a single sentence from its counts [K]; by default, that of a corpus of one sentence."""
        return self.value(counts)

    def signature(self, intervals: int) -> str:
        """Settings that must be equal for two scores to be comparable; `intervals`: number of bootstrap draws."""
        return f"nrefs:{self.num_references or 'var'}" + (f"|bs:{intervals}|seed:{SEED}" if intervals else "")

    def check_references(self, references: Sequence[str]) -> None:
        """Warn of references that this metric cannot score meaningfully; by default, of none."""

    def statistics(self, outputs: Sequence[str], references: Sequence[str]) -> SentenceStatistics:
        """The counts of each sentence. Raises DataError without lines, or if the numbers of lines differ."""
        require_parallel(outputs, references)
        return SentenceStatistics(self, np.asarray(self.counts(outputs, references), dtype=np.float64))

    def statistics_of_several(self, outputs: Sequence[str], references: Sequence[Sequence[str]]) -> SentenceStatistics:
        """The counts of each sentence against all its references; raises as `statistics` and `counts_of_several`."""
        require_parallel(outputs, references)
        sizes = {len(of_one) for of_one in references}
        if 0 in sizes:
            raise DataError("an output has no reference to be compared with.")
        metric = replace(self, num_references=sizes.pop() if len(sizes) == 1 else 0)
        return SentenceStatistics(metric, np.asarray(metric.counts_of_several(outputs, references), dtype=np.float64))

    def score(self, outputs: Sequence[str], references: Sequence[str], *, intervals: int = 0) -> Score:
        """The corpus score, with a 95 % interval from `intervals` bootstrap draws (0: none). Raises DataError."""
        return self.statistics(outputs, references).score(intervals)

    def sentence_scores(self, outputs: Sequence[str], references: Sequence[str]) -> list[float]:
        """The score of each sentence. Raises DataError."""
        return self.statistics(outputs, references).sentence_scores()


@dataclass(frozen=True)
class SentenceStatistics:
    """The counts of a metric for each sentence of one system; those of a corpus are their sum."""

    metric: OutputMetric
    rows: NDArray[np.float64]
    """[S sentences, K]."""

    def value(self, totals: NDArray[np.float64]) -> float:
        """The score of summed counts [K]."""
        return self.metric.value(totals)

    def score(self, intervals: int = 0) -> Score:
        """The corpus score, with a 95 % interval from `intervals` bootstrap draws (0: none).

        A single sentence has no interval, since every draw is the same.
        """
        intervals = intervals if len(self.rows) > 1 else 0
        low = high = None
        if intervals:
            low, high = interval(values(self, resampled_totals(self.rows, intervals)))
        value = self.value(self.rows.sum(axis=0))
        return Score(self.metric.title, value, self.metric.signature(intervals), low, high)

    def sentence_scores(self) -> list[float]:
        return [self.metric.sentence_value(row) for row in self.rows]

    def select(self, chosen: NDArray[np.bool_]) -> SentenceStatistics:
        """The statistics of the sentences for which `chosen` [S] is True."""
        return SentenceStatistics(self.metric, self.metric.of_part(self.rows[chosen]))


def require_parallel(outputs: Sequence[object], references: Sequence[object]) -> None:
    """Raise DataError unless there is one reference for each output, and at least one line."""
    if len(outputs) != len(references):
        raise DataError(
            f"{len(outputs):,} hypotheses for {len(references):,} references: "
            "line n of one must belong to line n of the other."
        )
    if not outputs:
        raise DataError("nothing to score: no hypotheses and no references were given.")
