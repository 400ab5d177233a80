"""Tests of `heed generate`: continuations of prompts by any language model."""

from __future__ import annotations

import json
import math
import shutil
from pathlib import Path

import pytest
from command import call

import heed


def test_continuations_begin_with_the_prompt_and_follow_from_the_seed(bigram: Path) -> None:
    flags = ("--prompt", "the ba", "--samples", "3", "--temperature", "0.8", "--max-tokens", "7", "--seed", "4")
    result = call("generate", bigram, *flags)
    assert result.code == 0, result.err
    assert len(result.lines) == 3
    assert all(line.startswith("the ba ") for line in result.lines)
    assert all(len(line.split()) <= 2 + 7 for line in result.lines)
    assert call("generate", bigram, *flags).stdout == result.stdout
    assert call("generate", bigram, *flags[:-1], "5").stdout != result.stdout


def test_beam_search_returns_the_most_likely_continuation(bigram: Path) -> None:
    result = call("generate", bigram, "--prompt", "sees", "--beam", "1", "--max-tokens", "1")
    assert result.lines == ["sees the"]  # wider beams: the next three, with the end, are equally likely


def test_the_text_ends_before_the_stop(bigram: Path) -> None:
    words = ("generate", bigram, "--prompt", "the", "--samples", "5")
    whole, cut = call(*words).lines, call(*words, "--stop", "sees", "--stop", "x")
    assert (cut.code, len(cut.lines)) == (0, 5), cut.err
    assert any("sees" in line for line in whole)
    assert sorted(cut.lines) == sorted(line.partition("sees")[0] for line in whole)  # the likeliest first


def test_the_search_options_of_the_recipe_apply(bigram: Path, tmp_path: Path) -> None:
    run = shutil.copytree(bigram, tmp_path / "run")
    recipe = (run / "recipe.toml").read_text()
    changed = recipe.replace("ban = []", 'ban = ["sees"]').replace("top_k = 0", "top_k = 1")
    (run / "recipe.toml").write_text(changed)
    flags = ("--prompt", "the", "--samples", "5", "--max-tokens", "8")
    assert any("sees" in line for line in call("generate", bigram, *flags).lines)
    found = call("generate", run, *flags).lines
    assert not any("sees" in line for line in found)
    assert len(set(found)) == 1, "the likeliest"
    assert len(set(call("generate", run, *flags, "--top-k", "0").lines)) > 1
    assert not any("sees" in text for text in heed.load(run).generate("the"))


def test_the_default_seed_is_that_of_the_recipe(bigram: Path, tmp_path: Path) -> None:
    run = shutil.copytree(bigram, tmp_path / "run")
    recipe = (run / "recipe.toml").read_text()
    head, decoding = recipe.split("[decoding]")
    (run / "recipe.toml").write_text(f"{head}[decoding]{decoding.replace('seed = 1', 'seed = 7')}")
    texts = {seed: call("generate", bigram, "--samples", "4", "--seed", str(seed)).lines for seed in (1, 7)}
    assert texts[1] != texts[7]
    assert call("generate", run, "--samples", "4").lines == texts[7]
    assert call("generate", bigram, "--samples", "4").lines == texts[1]


def test_a_recipe_may_raise_the_minimum_number_of_tokens(bigram: Path, tmp_path: Path) -> None:
    run = shutil.copytree(bigram, tmp_path / "run")
    recipe = (run / "recipe.toml").read_text()
    (run / "recipe.toml").write_text(recipe.replace("min_tokens = 0", "min_tokens = 300"))
    result = call("generate", run)
    assert result.code == 0, result.err
    assert len(result.lines[0].split()) == 300
    (run / "recipe.toml").write_text(recipe.replace("max_tokens = 0", "max_tokens = 3"))
    assert len(call("generate", run).lines[0].split()) <= 3


def test_json_separates_prompt_and_text_and_has_every_probability(bigram: Path) -> None:
    [line] = call("generate", bigram, "--prompt", "the", "--json").lines
    record = json.loads(line)
    assert record["prompt"] == "the"
    steps = [token["log_prob"] for token in record["tokens"]]
    assert record["log_prob"] == pytest.approx(math.fsum(steps))
    assert record["finished"]
    *pieces, end = (token["piece"] for token in record["tokens"])
    assert (" " + " ".join(pieces), end) == (record["text"], "</s>")


def test_prompts_are_read_from_flags_a_file_and_stdin(bigram: Path, tmp_path: Path) -> None:
    (tmp_path / "prompts").write_text("the ce\nsees\n\n", encoding="utf-8")
    flags = ("--max-tokens", "4", "--beam", "1")
    from_file = call("generate", bigram, "--prompts", tmp_path / "prompts", *flags).lines
    assert len(from_file) == 3
    from_stdin = call("generate", bigram, "--prompts", "-", *flags, stdin="the ce\nsees\n\n").lines
    from_flags = call("generate", bigram, "--prompt", "the ce", "--prompt", "sees", "--prompt", "", *flags).lines
    assert from_file == from_stdin == from_flags
    both = call("generate", bigram, "--prompt", "the", "--prompts", tmp_path / "prompts", *flags).lines
    assert both[1:] == from_file
    places = ("-", tmp_path / "prompts")
    drawn = [call("generate", bigram, "--prompts", place, stdin="the ce\nsees\n\n") for place in places]
    assert drawn[0].stdout == drawn[1].stdout, "draws do not depend on how many prompts came at once"


def test_a_running_text_continues_over_line_breaks(speaker: Path) -> None:
    result = call("generate", speaker, "--prompt", "the ba sees", "--max-tokens", "80", "--temperature", "0.3")
    assert result.code == 0, result.err
    assert result.out.startswith("the ba sees")
    assert len(result.lines) > 2
    assert len(result.out) == len("the ba sees") + 80 + 1


def test_several_running_texts_are_separated(speaker: Path) -> None:
    result = call("generate", speaker, "--prompt", "the", "--samples", "3", "--max-tokens", "30")
    texts = result.out.split("---\n")
    assert len(texts) == 3
    assert all(text.startswith("the") and len(text) == 34 for text in texts)


def test_a_prompt_may_have_lines(speaker: Path) -> None:
    result = call("generate", speaker, "--prompt", "the ba\nthe", "--beam", "1", "--max-tokens", "5")
    assert result.out.startswith("the ba\nthe")
    assert len(result.out) == 10 + 5 + 1


@pytest.mark.parametrize("which", ["bigram", "speaker"])
def test_streamed_text_equals_written_text(which: str, request: pytest.FixtureRequest) -> None:
    folder = request.getfixturevalue(which)
    flags = ("--prompt", "the", "--prompt", "s", "--max-tokens", "40", "--seed", "3", "--stop", "fo")
    assert call("generate", folder, *flags, "--stream").stdout == call("generate", folder, *flags).stdout


def test_an_ensemble_of_language_models_is_the_mean_of_their_probabilities(bigram: Path) -> None:
    flags = ("generate", bigram, "--prompt", "the", "--beam", "1", "--max-tokens", "3", "--json")
    alone, together = (call(*flags, *more) for more in ((), ("--ensemble", bigram)))
    assert together.code == 0, together.err
    first, second = (json.loads(result.out) for result in (alone, together))
    assert first["text"] == second["text"]
    assert first["log_prob"] == pytest.approx(second["log_prob"], abs=1e-4)


def test_json_has_the_tokens_of_the_text_alone(bigram: Path) -> None:
    words = ("--prompt", "", "--samples", "20", "--json")
    whole = [json.loads(line)["text"] for line in call("generate", bigram, *words).lines]
    cut = [json.loads(line) for line in call("generate", bigram, *words, "--stop", "sees").lines]
    assert sorted(record["text"] for record in cut) == sorted(
        text.partition("sees")[0] for text in whole
    )  # likely first
    assert any("sees" in text for text in whole)
    assert not any(token["piece"] == "sees" for record in cut for token in record["tokens"])


def test_wrong_calls_are_refused(bigram: Path, translator: Path, speaker: Path) -> None:
    several = call("generate", bigram, "--beam", "2", "--samples", "3")
    assert several.code == 2
    assert "--samples 3 needs --beam 3 or more, got 2" in several.err
    shown = call("generate", bigram, "--stream", "--json")
    assert (shown.code, "--stream prints a single text" in shown.err) == (2, True)
    endless = call("generate", speaker, "--beam", "2")
    assert (endless.code, "beam search needs a model that has learned where texts end" in endless.err) == (2, True)
    other = call("generate", translator, "--prompt", "ba")
    assert other.code == 2
    assert "generate needs a run that can generate" in other.err
    missing = call("generate", bigram, "--prompts", "nowhere.txt")
    assert missing.code == 66
    strangers = call("generate", bigram, "--ensemble", speaker)
    assert strangers.code == 2
    assert "different vocabularies" in strangers.err
    both = call("generate", bigram, "--beam", "2", "--top-k", "5")
    assert (both.code, "cannot be combined with --beam" in both.err) == (2, True)
    seeded = call("generate", bigram, "--beam", "2", "--seed", "0")
    assert (seeded.code, "--seed cannot be combined with --beam" in seeded.err) == (2, True)
    stopped = call("generate", bigram, "--beam", "2", "--stop", "x")
    assert (stopped.code, "--stop needs sampling or --beam 1" in stopped.err) == (2, True)
    nothing = call("generate", bigram, "--stop", "")
    assert nothing.code == 2
