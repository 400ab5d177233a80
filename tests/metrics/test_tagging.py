"""Scores of tags: spans as the CoNLL script counts them, and accuracy; seqeval as the oracle where it is installed."""

from __future__ import annotations

import random

import pytest

from heed.core.errors import DataError
from heed.metrics import output_metric
from heed.metrics.tagging import scores_by_type

# The example of a true and a predicted tagging, whose spans are counted by hand.
TRUE = ["B-NP I-NP O B-VP B-NP", "O O", "I-NP I-NP B-NP O"]
OUTPUT = ["B-NP I-NP O B-VP I-NP", "O B-VP", "B-NP I-NP I-NP O"]
# True: NP 0-2, VP 3, NP 4 | - | NP 0-2, NP 2.
# Predicted: NP 0-2, VP 3, NP 4 (I after another type begins) | VP 1 | NP 0-3.
CORRECT, PREDICTED, GOLD = 3, 5, 5
NAMES = ("entity_f1", "entity_precision", "entity_recall")


def test_scores_of_a_small_example_are_those_counted_by_hand() -> None:
    values = [output_metric(name).score(OUTPUT, TRUE).value for name in NAMES]
    precision, recall = 100 * CORRECT / PREDICTED, 100 * CORRECT / GOLD
    assert values == pytest.approx([2 * precision * recall / (precision + recall), precision, recall])
    assert output_metric("tag_accuracy").score(OUTPUT, TRUE).value == pytest.approx(100 * 7 / 11)


def test_each_type_has_its_own_scores() -> None:
    nouns, verbs = scores_by_type(OUTPUT, TRUE, plain=False)
    assert (nouns.type, nouns.correct, nouns.predicted, nouns.true) == ("NP", 2, 3, 4)
    assert (verbs.type, verbs.correct, verbs.predicted, verbs.true) == ("VP", 1, 2, 1)
    assert (verbs.precision, verbs.recall) == (50, 100)
    assert verbs.to_json()["f1"] == pytest.approx(200 / 3)


def test_plain_tags_are_counted_by_token() -> None:
    [a, b] = scores_by_type(["A A B"], ["A B B"], plain=True)
    assert (a.type, a.correct, a.predicted, a.true) == ("A", 1, 2, 1)
    assert (b.type, b.correct, b.predicted, b.true) == ("B", 1, 1, 2)


def test_the_scheme_of_the_tags_does_not_change_f1() -> None:
    other = ["B-NP E-NP O S-VP S-NP", "O S-VP", "B-NP I-NP E-NP O"]
    assert output_metric("entity_f1").score(other, TRUE).value == output_metric("entity_f1").score(OUTPUT, TRUE).value


def test_nothing_predicted_and_nothing_true_are_0() -> None:
    assert [output_metric(name).score(["O"], ["O"]).value for name in NAMES] == [0, 0, 0]
    assert output_metric("entity_recall").score(["O"], ["B-X"]).value == 0


def test_another_number_of_tags_is_refused() -> None:
    with pytest.raises(DataError, match="1 tags for 2 tokens"):
        output_metric("entity_f1").score(["O"], ["O O"])


def test_scores_of_random_tags_are_those_of_seqeval() -> None:
    seqeval = pytest.importorskip("seqeval.metrics", reason="seqeval is not installed")
    dice = random.Random(3)
    tags = ["O", "O", *(f"{letter}-{type}" for letter in "BIES" for type in "XYZ")]
    true, output = ([[dice.choice(tags) for _ in range(n)] for n in range(1, 30)] for _ in range(2))
    outputs, references = ([" ".join(row) for row in rows] for rows in (output, true))
    values = [output_metric(name).score(outputs, references).value / 100 for name in NAMES]
    oracle = [getattr(seqeval, name)(true, output) for name in ("f1_score", "precision_score", "recall_score")]
    assert values == pytest.approx(oracle)
    report = seqeval.classification_report(true, output, output_dict=True)
    for scores in scores_by_type(outputs, references, plain=False):
        assert scores.f1 / 100 == pytest.approx(report[scores.type]["f1-score"])
        assert scores.true == report[scores.type]["support"]
