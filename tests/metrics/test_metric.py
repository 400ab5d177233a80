"""Scores: how they are printed and saved."""

import json

from heed.metrics.metric import Score


def test_a_score_shows_its_value_its_interval_and_its_signature():
    score = Score("BLEU", 34.2149, "nrefs:1|tok:13a", 33.1, 35.3)
    assert score.render() == "BLEU 34.21 [33.10, 35.30]  nrefs:1|tok:13a"


def test_a_score_without_interval_shows_none():
    assert Score("TER", 51.0, "tok:tercom").render() == "TER 51.00  tok:tercom"


def test_small_values_get_a_third_decimal():
    assert Score("bits per byte", 1.0836, "unit:byte").render() == "bits per byte 1.084  unit:byte"


def test_a_score_is_restored_from_json():
    score = Score("BLEU", 34.2149, "nrefs:1|tok:13a", 33.1, 35.3)
    assert Score(**json.loads(json.dumps(score.to_json()))) == score


def test_a_value_without_bounds_is_short_and_json_has_no_infinity():
    score = Score("perplexity per word", 2.8e59, "unit:word", 2.3e58, float("inf"))
    assert score.numbers == "2.8e+59 [2.3e+58, inf]"
    assert Score.from_json(json.loads(json.dumps(score.to_json(), allow_nan=False))) == score


def test_small_errors_have_three_digits_and_other_scores_two_decimals() -> None:
    assert Score("mean absolute error", 0.00421, "", 0.0039, 0.004512).numbers == "0.00421 [0.0039, 0.00451]"
    assert Score("mean absolute error", 4.2104e-9, "").numbers == "4.21e-09"
    assert Score("mean absolute error", 0.0421, "").numbers == "0.0421"
    assert Score("mean absolute error", 12.3456, "").numbers == "12.35"
    assert Score("mean absolute error", 0.0, "").numbers == "0.00"
    assert Score("BLEU", 0.00421, "").numbers == "0.00"
