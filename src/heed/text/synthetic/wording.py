"""How does a pair of clauses become a pair of sentences: commas, capitals, full stops, quotation marks?"""

from __future__ import annotations

from typing import NamedTuple

from heed.text.synthetic.lexicon import Words


class Sentence(NamedTuple):
    """A sentence in both languages, not yet polished: commas stand apart and may be doubled."""

    en: str
    de: str
    mark: str = "."


def both(template: str, *parts: Words) -> Words:
    """The same pattern filled in both languages: both("{} {}", subject, verb)."""
    return Words(template.format(*(part.en for part in parts)), template.format(*(part.de for part in parts)))


def capital(text: str) -> str:
    """The text with a capital letter first, after an opening quotation mark too."""
    first = 1 if text[0] in '"„' else 0
    return text[:first] + text[first].upper() + text[first + 1 :]


def polish(text: str, mark: str) -> str:
    """Join commas to the words before them, drop doubled and last ones, begin with a capital, end with the mark."""
    text = " ".join(text.split()).replace(" ,", ",")
    while ",," in text:
        text = text.replace(",,", ",")
    for stop in (".", "“", "?", "!"):
        text = text.replace(f",{stop}", stop)
    return capital(text.rstrip(",")) + mark
