"""Does `heed generate` continue a prompt with any language model?"""

from __future__ import annotations

import json
from pathlib import Path

from command import call


def test_continuations_begin_with_the_prompt_and_follow_from_the_seed(bigram: Path) -> None:
    flags = ("--prompt", "the ba", "--samples", "3", "--temperature", "0.8", "--max-tokens", "7", "--seed", "4")
    result = call("generate", bigram, *flags)
    assert result.code == 0, result.err
    assert len(result.lines) == 3
    assert all(line.startswith("the ba ") for line in result.lines)
    assert all(len(line.split()) <= 2 + 7 for line in result.lines)
    assert call("generate", bigram, *flags).stdout == result.stdout
    assert call("generate", bigram, *flags[:-1], "5").stdout != result.stdout


def test_search_in_place_of_drawing_finds_the_most_likely(bigram: Path) -> None:
    result = call("generate", bigram, "--prompt", "sees", "--beam", "3", "--max-tokens", "1")
    assert result.lines == ["sees the"]


def test_the_text_ends_before_the_stop(bigram: Path) -> None:
    for line in call("generate", bigram, "--prompt", "the", "--samples", "5", "--stop", "sees").lines:
        assert "sees" not in line


def test_json_has_prompt_and_text_apart(bigram: Path) -> None:
    [line] = call("generate", bigram, "--prompt", "the", "--json").lines
    record = json.loads(line)
    assert record["prompt"] == "the"
    assert record["log_prob"] < 0


def test_wrong_calls_are_told(bigram: Path, translator: Path) -> None:
    several = call("generate", bigram, "--beam", "2", "--samples", "3")
    assert several.code == 2
    assert "nbest must not be above beam_size" in several.err
    other = call("generate", translator, "--prompt", "ba")
    assert other.code == 2
    assert "generate needs a language-model run" in other.err
