"""Metrics of outputs and of likelihoods, and scoring with 95 % bootstrap intervals.

A metric is one class (`heed.metrics.metric`) and one key of `METRICS`. Every score carries a signature.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from heed.core.errors import UsageError
from heed.metrics.answers import AnswerF1, AnswerMatch, ChoiceF1
from heed.metrics.cider import CiderD
from heed.metrics.classification import (
    Accuracy,
    ExactMatch,
    LogLoss,
    MacroF1,
    MeanAbsoluteError,
    MicroF1,
    Pearson,
    Spearman,
)
from heed.metrics.likelihood import (
    BitsPerByte,
    BitsPerCharacter,
    LikelihoodMetric,
    LikelihoodStatistics,
    PerplexityPerCharacter,
    PerplexityPerToken,
    PerplexityPerWord,
    TextLikelihood,
)
from heed.metrics.masked import MaskedAccuracy, MaskedPerplexity, NextSentenceAccuracy, NextSentenceLoss
from heed.metrics.metric import Metric, OutputMetric, Score, SentenceStatistics, require_parallel
from heed.metrics.significance import SEED, interval, resampled_totals
from heed.metrics.similarity import NegativeSampling
from heed.metrics.tagging import EntityF1, EntityPrecision, EntityRecall, TagAccuracy
from heed.metrics.translation import Bleu, Chrf, ChrfPlusPlus, Ter

METRICS: dict[str, type[Metric]] = {
    "bleu": Bleu,
    "chrf": Chrf,
    "chrf++": ChrfPlusPlus,
    "ter": Ter,
    "entity_f1": EntityF1,
    "entity_precision": EntityPrecision,
    "entity_recall": EntityRecall,
    "tag_accuracy": TagAccuracy,
    "cider": CiderD,
    "perplexity": PerplexityPerToken,
    "perplexity_per_word": PerplexityPerWord,
    "perplexity_per_character": PerplexityPerCharacter,
    "bits_per_character": BitsPerCharacter,
    "bits_per_byte": BitsPerByte,
    "masked_perplexity": MaskedPerplexity,
    "masked_accuracy": MaskedAccuracy,
    "next_sentence_loss": NextSentenceLoss,
    "next_sentence_accuracy": NextSentenceAccuracy,
    "negative_sampling": NegativeSampling,
    "accuracy": Accuracy,
    "macro_f1": MacroF1,
    "micro_f1": MicroF1,
    "exact_match": ExactMatch,
    "pearson": Pearson,
    "spearman": Spearman,
    "mean_absolute_error": MeanAbsoluteError,
    "log_loss": LogLoss,
    "answer_match": AnswerMatch,
    "answer_f1": AnswerF1,
    "choice_f1": ChoiceF1,
}

TRANSLATION_METRICS = ("bleu", "chrf", "ter")


def output_metric(name: str, language: str | None = None, tokenised: bool = False) -> OutputMetric:
    """The metric of this name for outputs in a language. Raises UsageError if there is none."""
    if name not in METRICS:
        raise UsageError(f"unknown metric {name!r}. Allowed: {', '.join(METRICS)}.")
    metric = METRICS[name]
    if not issubclass(metric, OutputMetric):
        raise UsageError(f"{metric.title} is computed from likelihoods and does not compare outputs with references.")
    return metric(language, tokenised)


def output_statistics(
    outputs: Sequence[str],
    references: Sequence[str],
    language: str | None = None,
    names: Sequence[str] = TRANSLATION_METRICS,
    *,
    tokenised: bool = False,
) -> dict[str, SentenceStatistics]:
    """The sentence statistics of each metric, by its name. Raises as `score_outputs`."""
    require_parallel(outputs, references)
    metrics = {name: output_metric(name, language, tokenised) for name in names}
    for metric in metrics.values():
        metric.check_references(references)
    return {name: metric.statistics(outputs, references) for name, metric in metrics.items()}


def score_outputs(
    outputs: Sequence[str],
    references: Sequence[str],
    language: str | None = None,
    names: Sequence[str] = TRANSLATION_METRICS,
    intervals: int = 1000,
    *,
    tokenised: bool = False,
) -> list[Score]:
    """Scores of outputs against one reference each, with intervals of `intervals` draws (0: none).

    Raises DataError without lines or if the numbers of lines differ; UsageError for a name that is not in METRICS.
    """
    statistics = output_statistics(outputs, references, language, names, tokenised=tokenised)
    return [each.score(intervals) for each in statistics.values()]


def statistics_of_several(
    outputs: Sequence[str], references: Sequence[Sequence[str]], language: str | None, names: Sequence[str]
) -> dict[str, SentenceStatistics]:
    """The sentence statistics of each metric against all references of each output. Raises as `score_several`."""
    metrics = {name: output_metric(name, language) for name in names}
    return {name: metric.statistics_of_several(outputs, references) for name, metric in metrics.items()}


def score_several(
    outputs: Sequence[str],
    references: Sequence[Sequence[str]],
    language: str | None = None,
    names: Sequence[str] = TRANSLATION_METRICS,
    intervals: int = 1000,
) -> dict[str, Score]:
    """Scores of outputs against one or more references each, by the metric's name.

    Raises DataError without outputs, or for one without references; UsageError for a name that is not in METRICS, and
    for a metric that takes one reference only.
    """
    statistics = statistics_of_several(outputs, references, language, names)
    return {name: each.score(intervals) for name, each in statistics.items()}


def sentence_scores(
    name: str,
    outputs: Sequence[str],
    references: Sequence[str],
    *,
    language: str | None = None,
    tokenised: bool = False,
) -> list[float]:
    """The score of each sentence by one metric. Raises as `score_outputs`."""
    return output_metric(name, language, tokenised).sentence_scores(outputs, references)


def score_likelihoods(
    sentences: Sequence[TextLikelihood], intervals: int = 1000, how: str = "", lines_per_block: int = 1,
    prefix: str = "",
) -> dict[str, Score]:  # fmt: skip
    """Scores by every metric of likelihoods, by the metric's name, over all sentences together.

    The signature gives the unit and its number, whether ends of sentences are included, how many tokens stood for
    unknown words, and `how` the text was read. Blocks of `lines_per_block` lines are drawn together, since neighbouring
    lines are not independent where a model reads across lines. A text of probability 0 has infinite perplexity and no
    interval; a draw of blank lines alone, whose ends do not count, is left out. `prefix`: before each title. Raises
    DataError for an empty text.
    """
    total = sum(sentences, start=TextLikelihood())
    draws: list[TextLikelihood] = []
    if intervals and len(sentences) and math.isfinite(total.log_prob_sum):
        rows = LikelihoodStatistics.of(sentences, lines_per_block).rows
        draws = [TextLikelihood(*row) for row in resampled_totals(rows, intervals).tolist()]
    ends = "yes" if total.num_sentences else "no"
    scores = {}
    metrics = {name: metric() for name, metric in METRICS.items() if issubclass(metric, LikelihoodMetric)}
    for name, metric in metrics.items():
        signature = f"unit:{metric.unit}|n:{total.count(metric.unit)}|eos:{ends}|unk:{total.num_unknown}"
        signature += f"|{how}" if how else ""
        value, low, high = metric.value(total), None, None
        if drawn := [metric.value(draw) for draw in draws if draw.count(metric.unit)]:
            signature += f"|bs:{intervals}|seed:{SEED}" + (f"|block:{lines_per_block}" if lines_per_block > 1 else "")
            low, high = interval(drawn)
        scores[name] = Score(prefix + metric.title, value, signature, low, high)
    return scores
