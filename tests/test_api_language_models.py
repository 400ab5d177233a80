"""Python API of language models, alone and in ensembles."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from tiny_speakers import CHARACTERS, LINES, WORDS_OF_STREAM, train_speaker
from wrong_arguments import refuses_wrong_tops

import heed
from heed.core.errors import DataError, UsageError
from heed.decoding.options import SearchOptions

GREEDY = SearchOptions(beam_size=1, max_tokens=12)


@pytest.fixture(scope="module", params=[WORDS_OF_STREAM, CHARACTERS], ids=["words", "characters"])
def speakers(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Two that were trained on the same text with other seeds."""
    keys: dict[str, Any] = request.param
    folders = [tmp_path_factory.mktemp("speaker") for _ in range(2)]
    return [train_speaker(folder, {**keys, "seed": seed}, num_steps=15) for seed, folder in enumerate(folders)]


def test_an_ensemble_of_a_run_with_itself_equals_the_run(speakers: list[Path]) -> None:
    alone, twice = heed.load(speakers[0]), heed.load(speakers[0], ensemble=speakers[:1])
    for expected, found in zip(alone.score(LINES[:4]), twice.score(LINES[:4]), strict=True):
        assert found.ids == expected.ids
        assert found.log_probs == pytest.approx(expected.log_probs, abs=1e-4)
    assert twice.generate("the", GREEDY) == alone.generate("the", GREEDY)


def test_all_runs_of_an_ensemble_contribute(speakers: list[Path]) -> None:
    alone, together = heed.load(speakers[0]), heed.load(speakers[0], ensemble=speakers[1:])
    [one], [both] = (loaded.continuations("the", GREEDY) for loaded in (alone, together))
    assert both.token_log_probs[0] != pytest.approx(one.token_log_probs[0], abs=1e-3)


def test_a_model_that_is_not_usable_yet_says_so(speakers: list[Path], tmp_path: Path) -> None:
    poor = shutil.copytree(speakers[0], tmp_path / "poor")
    scores = {"event": "validation", "step": 1, "best": True, "perplexity": 5000.0}
    (poor / "metrics.jsonl").write_text(json.dumps(scores) + "\n", encoding="utf-8")
    assert "perplexity per token 5000.0 on validation" in heed.load(poor).not_usable


def test_a_prompt_is_one_text_and_unknown_words_have_no_neighbours(speakers: list[Path]) -> None:
    loaded = heed.load(speakers[0])
    with pytest.raises(UsageError, match="a prompt is one text, got list: call generate for each prompt"):
        loaded.generate(["the", "a"])
    refuses_wrong_tops(loaded.neighbours, "the")
    if loaded.run.recipe.tokenizer.kind == "word":
        with pytest.raises(DataError, match="no vector for qqq: not in its vocabulary"):
            loaded.neighbours("qqq")


@pytest.mark.parametrize("wrong", [{"beam_size": 3}, 3, SearchOptions])
def test_options_of_another_type_are_refused(wrong: Any, speakers: list[Path]) -> None:
    loaded = heed.load(speakers[0])
    for method in (loaded.generate, loaded.continuations):
        with pytest.raises(UsageError, match=f"options must be a heed.SearchOptions, got {type(wrong).__name__}"):
            method("the", wrong)


def test_the_default_length_does_not_depend_on_the_options(speakers: list[Path]) -> None:
    loaded = heed.load(speakers[0])
    [found] = loaded.continuations("the", SearchOptions(sample=True))
    assert len(found.ids) == 200


def test_a_model_that_predicts_blank_lines_is_evaluated_on_them(speakers: list[Path], tmp_path: Path) -> None:
    (tmp_path / "test.txt").write_text("the dog\n\na cat\n")
    [evaluation] = heed.evaluate(speakers[0], text=tmp_path / "test.txt")
    assert evaluation.run is not None
    assert evaluation.test.sources == ["the dog", *[""] * evaluation.run.recipe.data.keep_blank_lines, "a cat"]


def test_beam_search_requires_line_ends(speakers: list[Path]) -> None:
    loaded = heed.load(speakers[0])
    beam = SearchOptions(beam_size=3, nbest=3, max_tokens=30)
    if loaded.run.recipe.data.line_end == "eos":
        assert all("\n" not in text for text in loaded.generate("the", beam))
        return
    with pytest.raises(UsageError, match="beam search needs a model that has learned where texts end"):
        loaded.generate("the", beam)
