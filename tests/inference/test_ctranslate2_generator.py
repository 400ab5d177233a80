"""The CTranslate2 engine of language models: the same output as PyTorch's search."""

from __future__ import annotations

import copy
import functools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from random_models import half_trained
from word_translator import WORDS

from heed.decoding.detokenizer import Detokenizer
from heed.decoding.hypothesis import Hypothesis
from heed.decoding.options import SearchOptions
from heed.export.ctranslate2 import write_model
from heed.inference.ctranslate2_engine import searcher_with_fallback
from heed.inference.ctranslate2_generator import CTranslate2Generator
from heed.inference.translator import ModelTranslator
from heed.text.normalise import Normaliser
from heed.text.tokenizers import LineEnd

pytest.importorskip("ctranslate2")

PROMPTS = ["", "a", "b c", "h h", "a b c d", "d c b a", "e f g h a b", "c"]
GREEDY = SearchOptions(beam_size=1, max_tokens=9)


@functools.cache
def gpt() -> Any:
    """A half-trained model that gives no probability to special tokens, as it would after a long training."""
    model: Any = copy.deepcopy(half_trained("gpt"))
    bias = torch.zeros(len(WORDS.vocabulary))
    bias[list(Detokenizer(WORDS).never)] = -30.0
    model.head.bias = torch.nn.Parameter(bias, requires_grad=False)
    return model


def refused(*_: object) -> dict[Any, Hypothesis]:
    raise AssertionError("PyTorch was asked")


def pair_of(folder: Path, line_end: LineEnd | None, fallback: Any = None) -> tuple[ModelTranslator, ModelTranslator]:
    """Generators of one model, with CTranslate2 and with PyTorch."""
    oracle = ModelTranslator(gpt(), None, WORDS, Normaliser(), line_end=line_end)
    write_model(gpt(), [WORDS.vocabulary], 0, folder)
    engine = CTranslate2Generator(folder, gpt().config.max_len, Detokenizer(WORDS, line_end), num_workers=2)
    search = searcher_with_fallback(engine, oracle.best_of, fallback or oracle.search_in_batches, True)
    return oracle.searched_by(search), oracle


def assert_equal(actual: Sequence[list[Hypothesis]], expected: Sequence[list[Hypothesis]]) -> None:
    assert len(actual) == len(expected)
    for some, others in zip(actual, expected, strict=True):
        for ours, theirs in zip(some, others, strict=True):
            assert (ours.text, ours.ids, ours.finished) == (theirs.text, theirs.ids, theirs.finished)
            assert ours.token_log_probs == pytest.approx(theirs.token_log_probs, abs=1e-4)
            assert (ours.log_prob, ours.score) == pytest.approx((theirs.log_prob, theirs.score), abs=1e-4)


@pytest.mark.parametrize("line_end", [None, "eos", "newline"])
def test_greedy_continuations_equal_those_of_pytorch(line_end: LineEnd | None, tmp_path: Path) -> None:
    ours, oracle = pair_of(tmp_path, line_end, refused)
    found = ours.generate(PROMPTS, GREEDY)
    assert_equal(found, oracle.generate(PROMPTS, GREEDY))
    if line_end == "eos":
        assert any("\n" in hypotheses[0].text for hypotheses in found)
        assert_equal(ours.generate(["a\nb"], GREEDY), oracle.generate(["a\nb"], GREEDY))


def test_a_prompt_without_room_for_the_output_is_left_to_pytorch(tmp_path: Path) -> None:
    ours, oracle = pair_of(tmp_path, "eos")
    prompts = ["a b c d e f g h " * 3, "a b c d e f g h " * 6, "a"]
    assert_equal(ours.generate(prompts, GREEDY), oracle.generate(prompts, GREEDY))
    with pytest.raises(AssertionError, match="PyTorch was asked"):
        pair_of(tmp_path, "eos", refused)[0].generate(prompts, GREEDY)


@pytest.mark.parametrize(
    "changes", [{"sample": True}, {"beam_size": 2}, {"no_repeat": 2}, {"stop": ("b",)}, {"min_tokens": 2}], ids=str
)
def test_sampling_and_other_options_are_left_to_pytorch(changes: dict[str, Any], tmp_path: Path) -> None:
    ours, _ = pair_of(tmp_path, None, refused)
    with pytest.raises(AssertionError, match="PyTorch was asked"):
        ours.generate(["a"], GREEDY.model_copy(update=changes))
