"""The dictionary of metrics: the facts that each declares, and metrics registered from outside."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from heed.core.errors import UsageError
from heed.metrics import METRICS, output_metric, score_likelihoods, score_outputs, sentence_scores
from heed.metrics.likelihood import LikelihoodMetric, TextLikelihood
from heed.metrics.metric import Metric, OutputMetric


class ExactMatch(OutputMetric):
    """Outputs that equal their reference, per 100."""

    title = "exact match"

    def counts(self, outputs: Sequence[str], references: Sequence[str]) -> list[list[float]]:
        return [[output == reference, 1] for output, reference in zip(outputs, references, strict=True)]

    def value(self, totals: NDArray[np.float64]) -> float:
        return float(100 * totals[0] / totals[1])


class BitsPerWord(LikelihoodMetric):
    title, unit = "bits per word", "word"

    def value(self, text: TextLikelihood) -> float:
        return text.bits(self.unit)


@pytest.fixture
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(METRICS, "exact_match", ExactMatch)
    monkeypatch.setitem(METRICS, "bits_per_word", BitsPerWord)


@pytest.mark.parametrize("metric", METRICS.values(), ids=METRICS)
def test_every_metric_declares_its_title_direction_and_needs(metric: type[Metric]):
    assert metric.title and isinstance(metric.higher_is_better, bool)
    assert issubclass(metric, OutputMetric) == (metric.needs == "outputs")


def test_scores_are_better_when_higher_and_errors_when_lower():
    better_if_high = {name for name, metric in METRICS.items() if metric.higher_is_better}
    assert better_if_high == {
        "bleu", "chrf", "chrf++", "cider", "accuracy", "macro_f1", "micro_f1", "exact_match", "pearson", "spearman",
        "entity_f1", "entity_precision", "entity_recall", "tag_accuracy", "masked_accuracy", "next_sentence_accuracy",
        "answer_match", "answer_f1", "choice_f1",
    }  # fmt: skip


@pytest.mark.usefixtures("registered")
def test_a_registered_metric_scores_outputs_with_intervals_and_for_each_sentence():
    outputs, references = ["a", "b", "c", "d"], ["a", "b", "x", "d"]
    [score] = score_outputs(outputs, references, names=["exact_match"], intervals=50)
    assert (score.name, score.value, score.signature) == ("exact match", 75.0, "nrefs:1|bs:50|seed:12345")
    assert score.low is not None and score.high is not None and score.low < 75 < score.high
    assert sentence_scores("exact_match", outputs, references) == [100.0, 100.0, 0.0, 100.0]


@pytest.mark.usefixtures("registered")
def test_a_registered_metric_of_likelihoods_is_scored_with_the_others():
    text = TextLikelihood.of_sentence("one two three", -8 * np.log(2), 4)
    assert score_likelihoods([text], intervals=0)["bits_per_word"].value == pytest.approx(2.0)


def test_an_unknown_name_or_the_wrong_kind_is_an_error():
    with pytest.raises(UsageError, match="unknown metric 'blue'"):
        output_metric("blue")
    with pytest.raises(UsageError, match="perplexity per token is computed from likelihoods"):
        output_metric("perplexity")
