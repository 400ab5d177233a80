"""Confidence follows the calibration file of a run; a damaged file is an error."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest
from random_models import half_trained

from heed.core.errors import DataError
from heed.decoding.hypothesis import Hypothesis
from heed.decoding.options import SearchOptions
from heed.inference.output_checks import CONFIDENCE, FEATURES, Confidence, Guard, OutputChecks, features
from heed.inference.translator import ModelTranslator
from heed.text.normalise import Normaliser
from heed.text.tokenizers.symbols import Word

LEARNED = Confidence(
    mean=(-0.5, -2.0, 2.0, 0.1), scale=(0.25, 1.0, 0.5, 0.3), weights=(1.0, 0.5, -0.5, -0.2), bias=0.1,
    good_chrf=55.0, num_sentences=1000, beam_size=5, calibration_error=0.02,
)  # fmt: skip
WORDS = Word("abcdefgh")


def test_features_are_in_the_order_of_their_names() -> None:
    actual = features(Hypothesis((5, 6), -1.4, 0.0, (-0.2, -0.9, -0.3), flags=("loop",)))
    assert len(actual) == len(FEATURES)
    assert actual == pytest.approx((-1.4 / 3, -0.9, math.log(3), 1.0))
    assert features(Hypothesis((), 0.0, 0.0, (), finished=False)) == (0.0, 0.0, 0.0, 0.0)


def test_a_confidence_is_the_logistic_function_of_the_weighted_features() -> None:
    hypothesis = Hypothesis((5,), -0.9, 0.0, (-0.2, -0.7))
    total = 0.1 + (-0.45 + 0.5) / 0.25 + 0.5 * (-0.7 + 2) - 0.5 * (math.log(2) - 2) / 0.5 - 0.2 * (0 - 0.1) / 0.3
    assert LEARNED.of(hypothesis) == pytest.approx(1 / (1 + math.exp(-total)))


def test_a_defective_output_has_an_upper_limit() -> None:
    sure = Hypothesis((5,), -0.01, 0.0, (-0.005, -0.005))
    assert LEARNED.of(sure) > 0.9
    assert LEARNED.of(replace(sure, flags=("loop",))) == LEARNED.of(replace(sure, finished=False)) == 0.1
    assert LEARNED.of(replace(sure, flags=("loop",), fallback=True)) > 0.9, "these are the flags of another output"
    unsure = replace(sure, token_log_probs=(-9.0,) * 9, flags=("loop",))
    assert LEARNED.of(unsure) < 0.01


def test_a_calibration_is_read_as_it_was_written(tmp_path: Path) -> None:
    assert Confidence.read(tmp_path) is None
    LEARNED.write(tmp_path)
    assert Confidence.read(tmp_path) == LEARNED


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"format": 2}', "\x00"])
def test_a_damaged_file_is_an_error(tmp_path: Path, text: str) -> None:
    (tmp_path / CONFIDENCE).write_text(text, encoding="utf-8")
    with pytest.raises(DataError, match="is damaged or was written by an incompatible version"):
        Confidence.read(tmp_path)


def test_every_searched_output_has_a_confidence_and_samples_have_none() -> None:
    translator = ModelTranslator(
        half_trained("transformer"), WORDS, WORDS, Normaliser(), checks=OutputChecks(confidence=LEARNED)
    )
    actual = translator.translate(["a b", " ", "c"], SearchOptions(beam_size=2, max_tokens=8))
    assert actual[1].confidence is None
    for h in (actual[0], actual[2]):
        assert h.confidence == pytest.approx(LEARNED.of(h))
    assert translator.translate(["a b"], SearchOptions(sample=True, max_tokens=8))[0].confidence is None


def test_flags_are_a_feature_even_if_the_guard_is_off() -> None:
    checks = OutputChecks(guard=Guard(longest=0.0), confidence=LEARNED)  # everything is too long
    translator = ModelTranslator(half_trained("transformer"), WORDS, WORDS, Normaliser(), checks=checks)
    greedy = SearchOptions(beam_size=1, max_tokens=8)
    [flagged] = translator.translate(["a b"], greedy)
    [silent] = translator.translate(["a b"], greedy.model_copy(update={"guard": False}))
    assert "long" in flagged.flags and silent.flags == ()
    assert silent.confidence == flagged.confidence
