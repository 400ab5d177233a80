"""Scores of extractive answers: SQuAD's normalisation, the closest of several references, and no answer."""

from __future__ import annotations

import json

import pytest

from heed.metrics import METRICS

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
