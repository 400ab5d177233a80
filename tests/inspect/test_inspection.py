"""An inspection agrees with the searches and the scores of the translator."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hashed_model import HashedModel, Prefixes
from random_models import BOS, EOS, NAMES, model_of
from torch import Tensor
from word_translator import TOKENS, WORDS, translator_of

import heed
from heed.core.errors import UsageError
from heed.decoding.options import SearchOptions
from heed.inference.translator import ModelTranslator
from heed.inspect import Inspection, inspect_text, inspect_translation, likely_words
from heed.inspect import inspection as inspection_module
from heed.nn.contract import Trace
from heed.tasks.predictor import Predictor
from heed.text.normalise import Normaliser
from heed.text.token_words import Word
from heed.text.tokenizers.symbols import Character

FIXTURES = Path(__file__).resolve().parent.parent / "fixtures" / "run-v1"
BEAM = SearchOptions(beam_size=3, nbest=3)


def spelled(words: Sequence[Word]) -> str:
    """The text of the words; a tokenizer of words adds a space after each."""
    return "".join(word.text for word in words if word.kind == "word").rstrip()


@pytest.fixture(scope="module")
def run() -> Predictor:
    """A tiny translation run."""
    return heed.load(FIXTURES / "translation")


@pytest.fixture(scope="module")
def inspected(run: Predictor) -> Inspection:
    """The inspection of a sentence."""
    return inspect_translation(run.translator, "ba ce di fo", None, BEAM)


def test_words_tokens_and_probabilities_are_those_of_the_translator(run: Predictor, inspected: Inspection) -> None:
    [best] = run.translator.translate(["ba ce di fo"], BEAM)
    assert spelled(inspected.source) == "ba ce di fo"
    assert spelled(inspected.target) == best.text
    [scored] = run.translator.score([best.text], ["ba ce di fo"])
    tokens = [token for word in inspected.target for token in word.tokens]
    assert [token.prob for token in tokens] == pytest.approx([math.exp(x) for x in scored.log_probs], rel=1e-2)
    for word in inspected.target:
        assert word.prob == pytest.approx(math.prod(token.prob or 0.0 for token in word.tokens), rel=1e-2)


def test_choices_are_ranked_and_include_the_token_of_the_output(inspected: Inspection) -> None:
    for token in (token for word in inspected.target for token in word.tokens):
        probs = [choice.prob for choice in token.choices]
        assert probs == sorted(probs, reverse=True)
        assert sum(probs) <= 1.001
        if token.rank is not None and token.rank <= len(token.choices):
            assert token.choices[token.rank - 1].prob == token.prob
            assert token.choices[token.rank - 1].text == token.text


def test_alternatives_are_the_n_best_list(run: Predictor, inspected: Inspection) -> None:
    [best] = run.translator.translate(["ba ce di fo"], BEAM)
    assert [each.text for each in inspected.alternatives] == [h.text for h in (best, *best.alternatives)]
    assert inspected.tree is not None
    assert inspected.tree.beam_size == 3


def test_attention_has_a_row_for_each_output_word_and_a_column_for_each_attended_word(inspected: Inspection) -> None:
    kinds = {attention.kind: attention for attention in inspected.attention}
    assert set(kinds) == {"source", "self"}
    for kind, columns in (("source", len(inspected.source)), ("self", len(inspected.target))):
        for layer in kinds[kind].layers:
            assert all(len(head) == len(inspected.target) and len(head[0]) == columns for head in layer.heads)


def test_a_given_output_is_inspected_without_a_search(run: Predictor) -> None:
    given = inspect_translation(run.translator, "ba ce", "kan kan kan", BEAM)
    assert spelled(given.target) == "kan kan kan"
    assert given.tree is None
    assert given.alternatives == ()


OF_TEXT = [name for name in NAMES if getattr(model_of(name), "source", "tokens") == "tokens"]


@pytest.mark.parametrize("name", OF_TEXT)
def test_every_model_can_be_inspected(name: str) -> None:
    model, text = model_of(name), " ".join("abcdefgh" * 2)
    try:
        model.start(None)
    except ValueError:  # it needs a source
        inspected = inspect_translation(translator_of(model), text, text, BEAM)
    else:
        inspected = inspect_text(ModelTranslator(model, None, WORDS, Normaliser()), text)
    json.dumps(inspected.to_json(), allow_nan=False)
    assert spelled(inspected.target) == text
    if name.startswith(("transformer", "gpt")):
        attends = getattr(model.config, "decoder_attends", True)
        assert inspected.attention[-1].kind == ("self" if attends else "source")


def test_a_text_of_a_language_model() -> None:
    translator = heed.load(FIXTURES / "bigram").translator
    inspected = inspect_text(translator, "the old dog")
    assert (inspected.task, inspected.source, inspected.attention) == ("language-model", (), ())
    assert inspected.target[-1].kind == "end"
    words = [choice.text.strip() for choice in inspected.target[-1].choices]
    assert words == [choice.text.strip() for choice in likely_words(translator, None, "the old dog")]
    [scored] = translator.score(["the old dog"])
    tokens = [token.prob for word in inspected.target for token in word.tokens]
    assert tokens == pytest.approx([math.exp(x) for x in scored.log_probs], rel=1e-2)


def test_the_json_is_complete_and_has_no_infinite_number(inspected: Inspection) -> None:
    document: dict[str, Any] = json.loads(json.dumps(inspected.to_json(), allow_nan=False))
    assert document["target"][0]["tokens"][0]["choices"]
    assert set(document) == {
        "task", "source", "target", "attention", "alternatives", "tree", "finished", "confidence", "flags", "fallback",
    }  # fmt: skip


def test_likely_words_of_a_character_model_have_the_spaces_that_it_predicts() -> None:
    characters = Character("ab ")
    translator = ModelTranslator(HashedModel(len(characters.vocabulary)), None, characters, Normaliser())
    choices = likely_words(translator, None, "ab")
    assert any(choice.text and not choice.text.startswith(" ") for choice in choices)


class Recording(HashedModel):
    """Records the ids of the first call of `advance`."""

    read: list[int] | None = None

    def advance(self, ids: Tensor, state: Prefixes, trace: Trace | None = None) -> tuple[Tensor, Prefixes]:
        """As before."""
        self.read = self.read or ids[0].tolist()
        return super().advance(ids, state, trace)


def test_a_model_of_several_lines_reads_begin_of_sentence_after_each_line() -> None:
    model = Recording(len(TOKENS))
    translator = ModelTranslator(model, None, WORDS, Normaliser(), line_end="eos")
    inspected = inspect_text(translator, "a b\nc")
    assert [(word.text, word.kind) for word in inspected.target] == [
        ("a ", "word"), ("b ", "word"), ("\n", "word"), ("c ", "word"), ("", "next"),
    ]  # fmt: skip
    a, b, c = (TOKENS.index(word) for word in "abc")
    assert model.read == [BOS, a, b, BOS, c]
    assert inspected.target[2].prob == pytest.approx(
        math.exp(model.distribution((-1 - BOS, -1 - a, -1 - b))[EOS]), rel=1e-3
    )
    assert inspected.target[-1].prob is None
    assert "\n" in [choice.text for choice in inspected.target[-1].tokens[0].choices]


@pytest.mark.parametrize(("prefix", "expected"), [("the old", " dog"), ("the old ", "dog"), ("", "the")])
def test_a_likely_word_can_be_appended_to_the_prefix(prefix: str, expected: str) -> None:
    choices = likely_words(heed.load(FIXTURES / "bigram").translator, None, prefix)
    assert expected in [choice.text for choice in choices]


def test_likely_words_after_a_space_are_those_that_begin_after_the_word_before(run: Predictor) -> None:
    """The space belongs to the tokens of these words, so a model never reads it alone."""
    for prefix in ("", "kan", "kan ler"):
        expected = [(choice.text, choice.prob) for choice in likely_words(run.translator, "ba ce di", prefix)]
        if prefix:
            expected = [(text[1:], prob) for text, prob in expected if text.startswith(" ") or not text]
        found = likely_words(run.translator, "ba ce di", f"{prefix} ")
        assert [(choice.text, choice.prob) for choice in found] == expected != []


@pytest.mark.parametrize(
    ("source", "target", "message"),
    [(" ", None, "blank"), ("ba", "\t", "blank"), ("ba " * 800, None, "the limit is 2,000")],
)
def test_a_blank_or_too_long_text_is_refused(run: Predictor, source: str, target: str | None, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        inspect_translation(run.translator, source, target, BEAM)


def test_a_long_output_has_likely_words_only_at_its_end(run: Predictor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inspection_module, "MAX_POSITIONS", 3)
    inspected = inspect_translation(run.translator, "ba", "kan ler mis not", BEAM)
    assert [bool(word.choices) for word in inspected.target] == [False] * (len(inspected.target) - 1) + [True]
