"""Translators without a model: one into capitals, one into the same text; each word is linked to itself."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any, cast

from heed.decoding.hypothesis import Hypothesis
from heed.decoding.options import SearchOptions
from heed.documents.file_format import FileContext
from heed.documents.formats import translate_file
from heed.documents.inline_tags import Links
from heed.documents.text_translator import TextTranslator
from heed.documents.translation import Step, TranslateOptions
from heed.text.normalise import Normaliser
from heed.text.readers.columns import Sides

WORDS = SimpleNamespace(num_source_tokens=lambda text: len(text.split()), normaliser=Normaliser())
STEP = Step("words", cast(Any, WORDS), SearchOptions(), "en")
EN_DE = Sides("en", "de")


class Each:
    """A searcher whose model applies a function to each sentence."""

    def __init__(self, function: Callable[[str], str]) -> None:
        self.function = function
        self.given: list[str] = []
        """The sentences that the model got."""

    def check(self) -> None:
        """Somebody always waits."""

    def translate(self, step: object, texts: Sequence[str], *_: object) -> list[Hypothesis]:
        """Each text through the function."""
        self.given += texts
        return [Hypothesis((), 0.0, 0.0, text=self.function(text.strip())) for text in texts]

    def links(self, step: object, pairs: Sequence[tuple[str, str]]) -> list[Links]:
        """Links of each word to itself."""
        return [[(word, word) for word in range(len(source.split()))] for source, _ in pairs]


def translated(name: str, data: bytes | str, function: Callable[[str], str] = str.upper, **context: Any) -> bytes:
    """A file with a function applied to each sentence."""
    translator = TextTranslator(Each(function), [STEP], TranslateOptions())
    raw = data.encode() if isinstance(data, str) else data
    return translate_file(raw, translator, FileContext(name, context.pop("sides", EN_DE), **context))


def given(name: str, data: bytes | str) -> list[str]:
    """The sentences of a file that the model gets."""
    searcher = Each(str)
    raw = data.encode() if isinstance(data, str) else data
    translate_file(raw, TextTranslator(searcher, [STEP], TranslateOptions()), FileContext(name, EN_DE))
    return searcher.given
