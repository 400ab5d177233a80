"""CIDEr-D by hand and by its definition, and scores against several references."""

from __future__ import annotations

import math

import numpy as np
import pytest
import sacrebleu

from heed.core.errors import DataError, UsageError
from heed.metrics import output_metric, score_several, statistics_of_several
from heed.metrics.metric import OutputMetric, Rows

REFERENCES = [["a dog runs", "the dog is running fast"], ["a red car", "a car that is red"], ["two men", "men at work"]]
OUTPUTS = ["a dog runs fast", "a red dog", "two men"]


def definition(outputs: list[str], references: list[list[str]]) -> list[float]:
    """CIDEr-D of each sentence with dense vectors over all n-grams, straight from the formula."""

    def ngrams(text: str, n: int) -> list[tuple[str, ...]]:
        words = text.split()
        return [tuple(words[i : i + n]) for i in range(len(words) - n + 1)]

    scores = np.zeros(len(outputs))
    for n in range(1, 5):
        texts = [*outputs, *(text for of_one in references for text in of_one)]
        vocabulary = sorted({ngram for text in texts for ngram in ngrams(text, n)})
        frequency = [
            sum(any(ngram in ngrams(text, n) for text in of_one) for of_one in references) for ngram in vocabulary
        ]
        idf = np.log(len(references) / np.maximum(1, frequency))

        def vector(text: str, n: int = n, vocabulary: list = vocabulary, idf: np.ndarray = idf) -> np.ndarray:
            return np.array([ngrams(text, n).count(ngram) for ngram in vocabulary]) * idf

        for row, (output, of_one) in enumerate(zip(outputs, references, strict=True)):
            for reference in of_one:
                c, r = vector(output), vector(reference)
                norms = np.linalg.norm(c) * np.linalg.norm(r)
                closeness = math.exp(-((len(output.split()) - len(reference.split())) ** 2) / 72)
                if norms:
                    scores[row] += 10 * closeness * (np.minimum(c, r) @ r) / norms / len(of_one) / 4
    return [100 * score for score in scores]


def test_cider_is_its_definition() -> None:
    metric = output_metric("cider")
    rows = statistics_of_several(OUTPUTS, REFERENCES, None, ["cider"])["cider"].rows
    assert rows[:, 0].tolist() == pytest.approx(definition(OUTPUTS, REFERENCES), rel=1e-12)
    assert metric.value(rows.sum(0)) == pytest.approx(np.mean(definition(OUTPUTS, REFERENCES)), rel=1e-12)


def test_cider_of_two_words_by_hand() -> None:
    """All n-grams of "two men" have the weight log 3, so two of four lengths are perfectly similar, in one of three."""
    score = score_several(["x", "y", "two men"], [["a"], ["b"], ["two men"]], names=["cider"], intervals=0)["cider"]
    assert score.value == pytest.approx(1000 * (2 / 4) / 3)


def test_cider_ignores_case_and_punctuation() -> None:
    references = [["A dog runs ."], ["Two men ."]]
    plain, marked = (
        score_several(outputs, references, names=["cider"], intervals=0)["cider"]
        for outputs in (["a dog runs", "two men"], ["A DOG, runs!", '"Two men".'])
    )
    assert plain == marked
    assert plain.signature == "nrefs:1|case:lc|tok:13a|punct:no|n:4|sigma:6|df:test"


@pytest.mark.parametrize(
    ("name", "oracle"), [("bleu", sacrebleu.BLEU), ("chrf", sacrebleu.CHRF), ("ter", sacrebleu.TER)]
)
def test_scores_against_several_references_are_those_of_sacrebleu(name: str, oracle: type) -> None:
    metric = oracle()
    expected = metric.corpus_score(OUTPUTS, [list(stream) for stream in zip(*REFERENCES, strict=True)])
    score = score_several(OUTPUTS, REFERENCES, names=[name], intervals=0)[name]
    assert score.value == pytest.approx(expected.score, rel=1e-12)
    assert score.signature == metric.get_signature().format()
    assert "nrefs:2" in score.signature


def test_outputs_may_have_different_numbers_of_references() -> None:
    references = [REFERENCES[0], REFERENCES[1][:1], REFERENCES[2]]
    score = score_several(OUTPUTS, references, names=["bleu"], intervals=0)["bleu"]
    metric = sacrebleu.BLEU()
    expected = metric.corpus_score(
        OUTPUTS, [["a dog runs", "a red car", "two men"], [REFERENCES[0][1], None, "men at work"]]
    )
    assert (score.value, "nrefs:var" in score.signature) == (pytest.approx(expected.score), True)


def test_more_references_never_lower_bleu() -> None:
    one = score_several(OUTPUTS, [each[:1] for each in REFERENCES], names=["bleu"], intervals=0)["bleu"]
    assert one.value == pytest.approx(output_metric("bleu").score(OUTPUTS, [each[0] for each in REFERENCES]).value)
    assert score_several(OUTPUTS, REFERENCES, names=["bleu"], intervals=0)["bleu"].value >= one.value


def test_missing_references_and_metrics_of_one_reference_are_refused() -> None:
    class OfOne(OutputMetric):
        title = "same"

        def counts(self, outputs, references) -> Rows:
            return [[1.0] for _ in outputs]

        def value(self, totals) -> float:
            return float(totals[0])

    with pytest.raises(DataError, match="an output has no reference"):
        score_several(["a", "b"], [["a"], []], names=["bleu"])
    with pytest.raises(UsageError, match="same compares an output with one reference; leave it out for several"):
        OfOne().statistics_of_several(["a"], [["a", "b"]])
