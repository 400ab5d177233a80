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
        self.texts: list[Sequence[Part]] = []

    def mark(self, parts: Sequence[Part]) -> str:
        """Keep a text, and return the mark for its place."""
        self.texts.append(parts)
        return f"\0{len(self.texts) - 1}\0"

    def filled(self, outputs: Sequence[str], nested: Sequence[str]) -> list[str]:
        """Translations with those of the texts in their markup."""
        done: list[str] = []
        for output in [*nested, *outputs]:  # what is in the markup of a text was marked before it
            done.append(_MARK.sub(lambda mark: done[int(mark[1])], output))
        return done[len(nested) :]

    def translated(self, texts: Sequence[Sequence[Part]], translator: TextTranslator) -> list[str]:
        """Translations of texts together with the texts in their markup."""
        outputs = [each.text for each in translator.documents([*texts, *self.texts])]
        return self.filled(outputs[: len(texts)], outputs[len(texts) :])
