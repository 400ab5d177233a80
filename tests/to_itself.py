"""Identity translation of marked-up text: each sentence is its own translation, linked word by word."""

from __future__ import annotations

from collections.abc import Sequence

from heed.documents.spans import Part, Span, write_span
from heed.text.sentences import split_paragraph


def to_itself(parts: Sequence[Part]) -> str:
    """The text of these parts after an identity translation."""
    out = ""
    for part in parts:
        if isinstance(part, Span):
            pieces = split_paragraph(part.plain, "en")
            sentences = [piece.text for piece in pieces if piece.is_sentence]
            links = [[(n, n) for n in range(len(sentence.split()))] for sentence in sentences]
            out += write_span(part, pieces, sentences, links)
        else:
            out += part
    return out
