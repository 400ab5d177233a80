"""Usability: which validation scores are those of a model that has learned almost nothing."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from heed.data.store import TRAIN, write_store
from heed.report import usability
from heed.report.usability import usability_of
from heed.text.tokenizers.symbols import Character

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


def test_the_unigram_perplexity_is_that_of_the_training_text(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    letters = Character("ab")
    monkeypatch.setattr(usability, "read_valid", lambda folder: [("ab",)])
    rows = [(ids,) for ids in letters.encode(["aaaa", "b"])]
    size = len(letters.vocabulary)
    (tmp_path / "data").mkdir()
    write_store(tmp_path / TRAIN, ("tgt",), rows, [size], {})
    data = SimpleNamespace(normaliser=SimpleNamespace(apply=str), line_end="none")
    run: Any = SimpleNamespace(folder=tmp_path, tokenizers={"tgt": letters}, recipe=SimpleNamespace(data=data))
    a, b = 5 / (5 + size), 2 / (5 + size)  # each count plus one
    assert usability.unigram_perplexity(run) == pytest.approx((a * b) ** -0.5)
    data.line_end, data.text_as = "eos", "lines"
    a, b, end = (count / (7 + size) for count in (5, 2, 3))
    assert usability.unigram_perplexity(run) == pytest.approx((a * b * end) ** (-1 / 3)), "two lines end"
    data.text_as = "stream"  # whose store has the ends
    a, b, end = (count / (5 + size) for count in (5, 2, 1))
    assert usability.unigram_perplexity(run) == pytest.approx((a * b * end) ** (-1 / 3))
    run.folder = tmp_path / "elsewhere"
    assert usability.unigram_perplexity(run) is None
