"""Translators with a vocabulary of eight words, for tests of inspections."""

from __future__ import annotations

from typing import Any

from heed.inference.translator import ModelTranslator
from heed.text.normalise import Normaliser
from heed.text.tokenizers.symbols import Word

WORDS = Word("abcdefgh")
"""Eight words and four special pieces, as many as the vocabularies of the random models have."""
TOKENS = WORDS.vocabulary.pieces


def translator_of(model: Any) -> ModelTranslator:
    """A translator whose source and target consist of these words."""
    return ModelTranslator(model, WORDS, WORDS, Normaliser())
