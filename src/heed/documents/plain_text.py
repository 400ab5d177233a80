"""Plain text: translates sentences. White space, lines and paragraphs stay."""

from __future__ import annotations

from heed.documents.file_format import FileContext, TextFormat
from heed.documents.text_translator import TextTranslator


def translate_text(text: str, translator: TextTranslator, context: FileContext) -> str:
    """The translated text."""
    return translator.text(text).text


PLAIN_TEXT = TextFormat(write=translate_text)
