"""Which translators are small enough to be inspected, and known well enough to say what must be seen?"""

from __future__ import annotations

from typing import Any

from heed.decoding.translator import ModelTranslator
from heed.text.normalise import Normaliser
from heed.text.tokenizers.symbols import Word

WORDS = Word("abcdefgh")
"""With the four special pieces the twelve of the random models."""
TOKENS = WORDS.vocabulary.pieces


def translator_of(model: Any) -> ModelTranslator:
    """A model whose source and target are written in these words."""
    return ModelTranslator(model, WORDS, WORDS, Normaliser())
