"""Known weaknesses in a report: each follows from scores on validation data."""

from __future__ import annotations

from typing import Any

import pytest

from heed.report.weaknesses import weaknesses


def score(name: str, value: float, half: float = 2.0) -> dict[str, Any]:
    """A score with its interval."""
    return {"name": name, "value": value, "low": value - half, "high": value + half, "signature": ""}


def bucket(label: str, lines: int, chrf: float, half: float = 2.0) -> dict[str, Any]:
    """A bucket of length."""
    scores = {"bleu": score("BLEU", chrf / 2), "chrf": score("chrF2", chrf, half)}
    return {"label": label, "unit": "words", "num_sentences": lines, "scores": scores}


def band(rarest: int, label: str, reference: int, output: int, right: int) -> dict[str, Any]:
    """A band of frequency."""
    shares = {"precision": right / output, "recall": right / reference, "f1": 2 * right / (output + reference)}
    counts = {"num_reference": reference, "num_output": output, "num_right": right}
    return {"rarest": rarest, "label": label, **counts, **shares}


SOUND: dict[str, Any] = {
    "num_lines": 1000, "leaked": 10, "scores": [score("BLEU", 38), score("chrF2", 61.7)], "length_ratio": 0.99,
    "by_length": [bucket("6–10", 600, 62.0), bucket("11–15", 400, 61.0)], "by_frequency": [],
    "flagged": {"num_lines": 0, "num_replaced": 0, "reasons": {}},
}  # fmt: skip
VALIDATIONS = [{"best": True}, {"best": False}]


def test_a_score_of_one_line_has_no_interval() -> None:
    single = bucket("31–50", 1, 50.0)
    single["scores"] = {name: {**found, "low": None, "high": None} for name, found in single["scores"].items()}
    assert "| 31–50 | 1 | 25.0 | 50.0 |" in weaknesses({**SOUND, "by_length": [single]}, VALIDATIONS, "done")


def test_a_model_without_weaknesses_reports_none() -> None:
    text = weaknesses(SOUND, VALIDATIONS, "done")
    assert "None visible in the scores on validation data." in text
    assert "| 6–10 | 600 | 31.0 [29.0, 33.0] | 62.0 [60.0, 64.0] |" in text


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        (
            {"by_length": [bucket("31–50", 84, 50.0)]},
            "Sentences of 31–50 words (84 of 1,000) score chrF2 50.0 [48.0, 52.0], all sentences 61.7.",
        ),
        (
            {"by_frequency": [band(0, "never", 312, 205, 85), band(100, "100–999", 50, 50, 40),
                              band(1000, "1,000 or more", 100, 100, 80)]},
            "Words that never occur in training (312 of 462): F1 0.33; that occur 100 times or more: F1 0.80.",
        ),
        (
            {"by_frequency": [band(0, "never", 10, 10, 0), band(1, "once", 10, 10, 4)]},
            "Words that never occur in training (10 of 20): F1 0.00; that occur once (10 of 20): F1 0.40.",
        ),
        ({"length_ratio": 0.93}, "Outputs are shorter than the references: 0.93 words per word of the references."),
        ({"length_ratio": 1.2}, "Outputs are longer than the references: 1.20 words per word of the references."),
        (
            {"flagged": {"num_lines": 3, "num_replaced": 2, "reasons": {"loop": 2, "copy": 1}}},
            "3 of 1,000 outputs (0.3 %) failed the output checks (loop 2, copy 1). "
            "The next best hypothesis replaced 2.",
        ),
        ({"num_lines": 120, "leaked": 0}, "There are only 120 validation lines"),
        ({"leaked": 17}, "17 of 1,000 validation lines (1.7 %) have a side that is also in the training data"),
    ],
)  # fmt: skip
def test_each_weakness_is_a_sentence_with_its_numbers(changes: dict[str, Any], sentence: str) -> None:
    text = weaknesses({**SOUND, **changes}, VALIDATIONS, "done")
    assert f"- {sentence}" in text
    assert text.count("\n- ") == 1


def test_differences_explained_by_chance_or_few_sentences_are_not_weaknesses() -> None:
    for found in (bucket("31–50", 84, 59.0, half=4.0), bucket("over 50", 9, 20.0)):
        assert "Sentences of" not in weaknesses({**SOUND, "by_length": [found]}, VALIDATIONS, "done")


def test_a_training_that_ended_too_early_is_reported() -> None:
    text = weaknesses(SOUND, [{"best": True}, {"best": True}], "reached 45 minutes")
    assert "- Training ended early (reached 45 minutes): the last validation was the best. Train longer." in text


def test_empty_bands_are_left_out_of_the_frequency_table() -> None:
    empty = {**band(2, "2–4", 1, 1, 0), "num_reference": 0, "num_output": 0}
    text = weaknesses({**SOUND, "by_frequency": [band(0, "never", 312, 205, 85), empty]}, VALIDATIONS, "done")
    assert "| never | 312 | 205 | 85 | 0.41 | 0.27 | 0.33 |" in text
    assert "2–4" not in text


def test_without_anything_examined_the_section_is_empty() -> None:
    assert weaknesses({}, VALIDATIONS, "done") == ""
    assert weaknesses({"num_lines": 1000, "scores": [score("bits per byte", 1.1)]}, VALIDATIONS, "done") == ""


@pytest.mark.parametrize(("training", "validation", "is_reported"), [(20.0, 150.0, True), (100.0, 110.0, False)])
def test_overfitting_is_reported_with_training_and_validation_perplexity(
    training: float, validation: float, is_reported: bool
) -> None:
    kept = {"best": True, "perplexity": validation, "training_perplexity": training}
    found = weaknesses({"num_lines": 1000, "scores": []}, [kept, {"best": False}], "done")
    assert ("perplexity per token is 20.0 on training text and 150.0 on validation text" in found) == is_reported
