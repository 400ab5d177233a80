"""Tests of `heed score`: log-probabilities line by line."""

from __future__ import annotations

import json
import math
import re
import shutil
from pathlib import Path

import pytest
from command import call
from toy import pairs, write_lines


def test_a_translation_has_the_score_of_its_search(translator: Path, tmp_path: Path) -> None:
    sources = [src for src, _ in pairs(40)]
    found = call("translate", translator, "--json", stdin="\n".join(sources)).lines
    records = [json.loads(line) for line in found]
    src = write_lines(tmp_path / "src", sources)
    scored = call("score", translator, "--src", src, "--json", stdin="\n".join(r["translation"] for r in records)).lines
    compared = 0
    for record, line in zip(records, map(json.loads, scored), strict=True):
        assert line["text"] == record["translation"]
        # What was cut off has no end, and another cut into pieces is another event: neither can be compared.
        pieces = [token["piece"] for token in line["tokens"]]
        if pieces == [token["piece"] for token in record["tokens"]]:
            assert line["log_prob"] == pytest.approx(record["log_prob"], abs=1e-4)
            compared += 1
        assert pieces[-1] == "</s>"
        assert sum(token["log_prob"] for token in line["tokens"]) == pytest.approx(line["log_prob"])
    assert compared > 20


def test_each_line_gets_a_score_and_the_summary_is_on_stderr(bigram: Path) -> None:
    result = call("score", bigram, stdin="the ba sees the pi .\n\nba the the\n")
    assert result.code == 0
    assert len(result.lines) == 3
    log_probs = [float(line) for line in result.lines]
    assert log_probs[0] > log_probs[2]
    total = sum(log_probs)
    found = re.search(r"^perplexity per token ([\d.]+)  unit:token\|n:(\d+)", result.err, re.MULTILINE)
    assert found
    assert float(found[1]) == pytest.approx(math.exp(-total / int(found[2])), rel=1e-2)
    assert int(found[2]) == 6 + 0 + 3 + 3  # words and three ends
    assert "bits per byte" in result.err
    assert call("score", bigram, "--quiet", stdin="the\n").err == ""


def test_no_lines_are_no_scores(bigram: Path) -> None:
    result = call("score", bigram, stdin="")
    assert (result.code, result.stdout, result.err) == (0, b"", "")


@pytest.mark.parametrize(
    ("num_sources", "message"),
    [(1, "has 1 lines, stdin has more. They must be parallel"), (3, "has 3 lines, stdin has 2. They must be parallel")],
)
def test_sources_must_be_as_many_as_lines(translator: Path, tmp_path: Path, num_sources: int, message: str) -> None:
    src = write_lines(tmp_path / "src", ["ba"] * num_sources)
    result = call("score", translator, "--src", src, stdin="kan\nkan\n")
    assert result.code == 65
    assert message in result.err


def test_a_translation_run_needs_sources_and_a_language_model_none(translator: Path, bigram: Path) -> None:
    without, with_sources = call("score", translator, stdin="kan\n"), call("score", bigram, "--src", "x", stdin="kan\n")
    assert (without.code, with_sources.code) == (2, 2)
    assert "needs --src F" in without.err
    assert "--src is for translation runs" in with_sources.err
    missing = call("score", translator, "--src", "nowhere", stdin="kan\n")
    assert missing.code == 66
    assert "nowhere does not exist" in missing.err


def test_a_model_that_is_not_usable_yet_is_named(bigram: Path, tmp_path: Path) -> None:
    """By everything that computes with a language model."""
    run = shutil.copytree(bigram, tmp_path / "run")
    scores = {"event": "validation", "step": 1, "best": True, "perplexity": 5000.0}
    (run / "metrics.jsonl").write_text(json.dumps(scores) + "\n", encoding="utf-8")
    told = "perplexity per token 5000.0 on validation, where"
    assert told in call("score", run, stdin="the ba\n").err
    assert told not in call("score", run, "--quiet", stdin="the ba\n").err
    assert told in call("generate", run, "--prompt", "the").err
    assert told not in call("generate", bigram, "--prompt", "the").err
