"""Translation of texts: required terms, options, placeholders, and sentences as they grow."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest
from hashed_model import HashedModel

from heed.decoding.hypothesis import Hypothesis
from heed.decoding.options import Constraints, Request, SearchOptions
from heed.documents.inline_tags import Links
from heed.documents.text_translator import TextTranslator
from heed.documents.translation import Partial, Step, TranslateOptions, Watch
from heed.inference.alignment import links_of_pairs
from heed.inference.translator import ModelTranslator
from heed.text.normalise import Normaliser
from heed.text.tokenizers import Tokenizer
from heed.text.tokenizers.byte_level import Byte
from heed.text.tokenizers.symbols import Word

WORDS = Word(["ein", "iPhone", "iphone", "café", "Kaffee", "der", "mein", "Hund"])
OPTIONS = SearchOptions(beam_size=3, max_tokens=8, guard=False)


class Here:
    """Searches in the calling thread."""

    def translate(
        self, step: Step, texts: Sequence[str], options: SearchOptions, constraints: Sequence[Constraints] | None,
        watch: Watch | None = None,
    ) -> list[Hypothesis]:  # fmt: skip
        """The translations; `watch` is ignored."""
        return step.translator.translate(texts, options, constraints)

    def links(self, step: Step, pairs: Sequence[tuple[str, str]]) -> Sequence[Links]:
        """The links by attention."""
        return links_of_pairs(step.translator, pairs)

    def check(self) -> None:
        """Nothing stops these."""


class Table:
    """A translator that looks translations up."""

    normaliser = Normaliser()

    def __init__(self, translations: dict[str, str]) -> None:
        self.translations = translations

    def num_source_tokens(self, _line: str) -> int:
        """Always one."""
        return 1

    def translate(self, lines: Sequence[str], _options: SearchOptions, _constraints: object) -> list[Hypothesis]:
        """One hypothesis for each line."""
        return [Hypothesis((), 0.0, 0.0, text=self.translations[line]) for line in lines]


def text_translator(
    translator: object, translate_options: TranslateOptions, options: SearchOptions = OPTIONS
) -> TextTranslator:
    """A translator from German with one model."""
    reads: Any = translator
    return TextTranslator(Here(), [Step("toy", reads, options, "de")], translate_options)


def model(tokenizer: Tokenizer = WORDS) -> ModelTranslator:
    """A model that was not trained."""
    return ModelTranslator(HashedModel(len(tokenizer.vocabulary), seed=2), tokenizer, tokenizer, Normaliser())


def test_sentences_without_a_space_between_them_get_one() -> None:
    found = text_translator(Table({"你好。": "Hello.", "你好吗？": "How are you?"}), TranslateOptions()).text(
        "你好。你好吗？"
    )
    assert found.text == "Hello. How are you?"


@pytest.mark.parametrize("form", ["NFC", "NFD"])
def test_terms_match_both_forms_of_accents(form: Any) -> None:
    text = unicodedata.normalize(form, "ein café")
    assert "Kaffee" in text_translator(model(), TranslateOptions(glossary={"café": "Kaffee"})).text(text).text
    assert "café" in text_translator(model(), TranslateOptions(keep=["café"])).text(text).text


def test_a_term_is_applied_in_its_part_of_a_sentence_that_is_too_long() -> None:
    """A Thai letter takes three bytes."""
    text = "ก" * 900 + "ข"
    plain = text_translator(model(Byte()), TranslateOptions()).text(text).sentences
    found = text_translator(model(Byte()), TranslateOptions(glossary={"ข": "x"})).text(text).sentences
    assert len(plain) >= 3
    assert found[:-1] == plain[:-1]
    assert "x" in found[-1].texts[-1]


def test_a_kept_term_is_written_as_in_the_text() -> None:
    found = text_translator(model(), TranslateOptions(keep=["iphone"])).text("mein iPhone")
    assert "iPhone" in found.text.split()


@pytest.mark.parametrize("changes", [{"diversity": 1.0, "nbest": 3}, {"sample": True}])
def test_terms_need_a_plain_beam_and_override_the_recipe(changes: dict[str, Any]) -> None:
    options = SearchOptions(**{**OPTIONS.model_dump(), **changes})
    found = text_translator(model(), TranslateOptions(glossary={"ein": "Hund"}), options).text("ein")
    assert "Hund" in found.text.split()


def test_a_single_output_is_searched_without_diversity() -> None:
    diverse = OPTIONS.model_copy(update={"diversity": 0.5, "nbest": 3})
    assert (
        TranslateOptions().search_options(diverse).diversity
        == TranslateOptions(nbest=3).search_options(diverse, is_last=False).diversity
        == 0.0
    )
    assert TranslateOptions(nbest=2).search_options(diverse).diversity == 0.5
    assert TranslateOptions().search_options(diverse.model_copy(update={"mbr": "chrf"})).diversity == 0.5
    assert TranslateOptions().search_options(OPTIONS.model_copy(update={"sample": True})).sample


def test_an_incomplete_character_is_not_reported() -> None:
    texts: list[str] = []
    letters = Byte()
    [ids] = letters.encode(["aé日�"])
    direction: Any = SimpleNamespace(translator=ModelTranslator(HashedModel(260), letters, letters, Normaliser()))
    partial = Partial(lambda _number, _source, text: texts.append(text))
    request = Request((4,))
    partial.numbers[request] = [0]
    see = partial.watch(direction, ["a"])
    for length in range(1, len(ids) + 1):
        see(request, ids[:length])
    assert texts == ["a", "aé", "aé日", "aé日�"]
