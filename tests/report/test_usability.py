"""Usability: which validation scores are those of a model that has learned almost nothing."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from heed.report import usability
from heed.report.usability import usability_of

RUN: Any = SimpleNamespace(folder=Path("run"))


@pytest.mark.parametrize(
    ("scores", "expected"),
    [
        ({"bleu": 0.42, "chrf": 12.0, "perplexity": 300.0}, "BLEU 0.4 on validation: not usable yet"),
        ({"bleu": 3.0, "chrf": 34.0}, ""),  # many characters are right: a language with long words
        ({"bleu": 24.0, "chrf": 25.0}, ""),
        ({"chrf": 29.9}, "chrF2 29.9 on validation: not usable yet"),
        ({}, ""),
        ({"bleu": None}, ""),
    ],
)
def test_a_model_is_unusable_if_all_its_scores_are_below_their_limits(scores: dict[str, Any], expected: str) -> None:
    assert usability_of(RUN, scores) == expected


def test_a_log_that_cannot_be_read_says_nothing(tmp_path: Path) -> None:
    log = tmp_path / "metrics.jsonl"
    log.write_text('{"event": "validation", "step": 1, "best": true, "bleu": 0.4}\n')
    run: Any = SimpleNamespace(folder=tmp_path)
    assert usability.usability(run) == "BLEU 0.4 on validation: not usable yet"
    log.rename(tmp_path / "elsewhere")
    log.symlink_to("elsewhere")  # a run is not read through links
    assert usability.usability(run) == ""


def test_a_language_model_must_be_better_than_token_frequencies(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(usability, "unigram_perplexity", lambda run: 100.0)
    assert usability_of(RUN, {"perplexity": 89.0}) == ""
    assert usability_of(RUN, {"perplexity": 95.0}).endswith("token frequencies alone give 100.0: not usable yet")


def test_the_unigram_perplexity_is_that_of_the_frequencies(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(usability, "read_valid", lambda folder: [("ab",), ("ab",)])
    letters = SimpleNamespace(encode=lambda lines: [[ord(letter) for letter in line] for line in lines])
    data = SimpleNamespace(normaliser=SimpleNamespace(apply=str))
    run: Any = SimpleNamespace(folder=Path("run"), tokenizers={"tgt": letters}, recipe=SimpleNamespace(data=data))
    assert usability.unigram_perplexity(run) == pytest.approx(3.0)  # a, b and the end, equally frequent
