"""Texts inside the markup of other texts: a footnote, the description of an image, the forms of a plural."""

from __future__ import annotations

import re
from collections.abc import Sequence

from heed.documents.spans import Part
from heed.documents.text_translator import TextTranslator

_MARK = re.compile("\0(\\d+)\0")


class NestedTexts:
    """Texts that are translated for themselves, and then put into the markup of others.

    The markup has a mark in the place of such a text. No text that is read may contain U+0000, of which
    marks are made.
    """

    def __init__(self) -> None:
        self._texts: list[Sequence[Part]] = []

    def mark(self, parts: Sequence[Part]) -> str:
        """Keep a text, and return the mark for its place."""
        self._texts.append(parts)
        return f"\0{len(self._texts) - 1}\0"

    def translated(self, texts: Sequence[Sequence[Part]], translator: TextTranslator) -> list[str]:
        """Translations of texts together with the texts in their markup."""
        outputs = [each.text for each in translator.documents([*texts, *self._texts])]
        nested = outputs[len(texts) :]
        for number, output in enumerate(nested):  # what is nested in a text was marked before it
            nested[number] = _MARK.sub(lambda mark: nested[int(mark[1])], output)
        return [_MARK.sub(lambda mark: nested[int(mark[1])], output) for output in outputs[: len(texts)]]
