"""Scores of extractive answers: SQuAD's normalisation, the closest of several references, and no answer."""

from __future__ import annotations

import json

import numpy as np
import pytest

from heed.metrics import METRICS
from heed.metrics.answers import ChoiceBias, ChoiceF1, agreement, rates

CASES = [
    ("The Amazon River!", ["amazon river"], 1.0, 1.0),
    ("in 1542", ["1542", "in the year 1542"], 0.0, 2 * 2 / (2 + 3)),
    ("Francisco de Orellana", ["Orellana"], 0.0, 0.5),
    ("a b b", ["b b b"], 0.0, 2 * 2 / (2 + 3)),
    ("U.S.", ["US"], 1.0, 1.0),
    ("Rome", ["Oslo"], 0.0, 0.0),
    ("", [], 1.0, 1.0),
    ("", ["Oslo"], 0.0, 0.0),
    ("Oslo", [], 0.0, 0.0),
    ("the", [], 1.0, 1.0),
]


@pytest.mark.parametrize(("output", "references", "match", "f1"), CASES)
def test_an_answer_is_compared_as_squad_does(output: str, references: list[str], match: float, f1: float) -> None:
    reference = json.dumps(references)
    for name, expected in (("answer_match", match), ("answer_f1", f1)):
        assert METRICS[name]().score([output], [reference]).value == pytest.approx(100 * expected)  # type: ignore[attr-defined]


def test_scores_are_means_with_intervals() -> None:
    outputs, references = [case[0] for case in CASES], [json.dumps(case[1]) for case in CASES]
    score = METRICS["answer_f1"]().score(outputs, references, intervals=200)  # type: ignore[attr-defined]
    assert score.value == pytest.approx(100 * sum(case[3] for case in CASES) / len(CASES))
    assert score.name == "F1" and score.low < score.value < score.high
    assert score.signature.startswith("nrefs:all|norm:squad|bs:200")


CHOICES = [("Ann", ["Ann"], True), ("Eve", ["Ann"], True), ("", ["Bo"], False), ("Bo", [], False), ("", [], True),
           ("Dan", ["Dan"], False)]  # fmt: skip
"""Answers, references, and whether the question is about a woman."""


def test_choices_are_scored_as_links_from_pronouns_to_names() -> None:
    outputs, references = [case[0] for case in CHOICES], [json.dumps(case[1]) for case in CHOICES]
    f1 = ChoiceF1().score(outputs, references, intervals=100)
    assert f1.value == pytest.approx(100 * 2 * 2 / (2 * 2 + 2 + 2)), "2 right, 2 wrong, 2 missing"
    assert f1.signature.startswith("links|bs:100")
    bias = ChoiceBias(groups=tuple(case[2] for case in CHOICES)).score(outputs, references)
    assert bias.value == pytest.approx((2 / (2 + 1 + 1)) / (2 / (2 + 1 + 1)))
    women = ChoiceBias(groups=(True, True, False)).score(["Ann", "", "Bo"], ['["Ann"]', '["Eve"]', '["Bo"]'])
    assert women.value == pytest.approx((2 / 3) / 1)


def test_agreement_is_the_share_of_annotators() -> None:
    assert agreement("Oslo", '["oslo", "Rome", "the Oslo", "Oslo!"]') == 0.75
    assert agreement("", "[]") == 1.0


def test_rates_of_nothing_are_zero() -> None:
    assert rates(np.zeros(3)) == {"precision": 0.0, "recall": 0.0, "f1": 0.0}
    assert rates(np.array([3.0, 1.0, 2.0])) == pytest.approx({"precision": 75.0, "recall": 60.0, "f1": 100 * 6 / 9})
