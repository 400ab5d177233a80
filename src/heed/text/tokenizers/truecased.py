"""Byte pair encoding of lines whose first word is written as inside a sentence (truecasing; Lita et al. 2003).

    The dog sleeps.    is encoded as    " the dog sleeps."
    Paris sleeps.                       " Paris sleeps."
    iPhones sleep.                      "iPhones sleep."

A word that begins a line gets the space that it has elsewhere, and the lower case, if that is its more frequent form
elsewhere. So both places share pieces and their vectors, of which few pairs teach little. Decoding undoes this: it
drops the space and capitalises a letter that follows it. A line that would not be restored exactly stays as it is.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Self

from heed.core.errors import DataError
from heed.core.json_text import parse_json
from heed.text.language.scripts import is_unseparated
from heed.text.tokenizers.hugging_face import Bpe
from heed.text.tokenizers.tokenizer import Tokenizer, TokenizerOptions, checked, checked_for_training

KIND, VERSION = "truecased-bpe", 1

_WORD = re.compile(r"[^\W\d_]+")
_INSIDE = re.compile(r"(?<=[\w,] )[^\W\d_]+")
"""Words that certainly do not begin a sentence."""


class TruecasedBpe(Tokenizer):
    """The pieces of another tokenizer, and the words that are written in lower case inside a sentence."""

    lossless = True
    begins_as_inside = True

    def __init__(self, bpe: Bpe, lowered: Iterable[str]) -> None:
        self._bpe = bpe
        self._lowered = frozenset(lowered)
        self.vocabulary = bpe.vocabulary
        self._bytes = bpe._bytes

    @classmethod
    def min_vocab_size(cls, options: TokenizerOptions) -> tuple[int, str]:
        return Bpe.min_vocab_size(options)

    @classmethod
    def train(cls, options: TokenizerOptions, lines: Iterable[str]) -> Self:
        lines = list(checked_for_training(lines))
        inside = Counter(word for line in lines for word in _INSIDE.findall(line))
        lowered = frozenset(
            word for word, count in inside.items() if count > inside[_capitalised(word)] and word.islower()
        )
        return cls(Bpe.train(options, (_written_inside(line, lowered) for line in lines)), lowered)

    @classmethod
    def from_json(cls, text: str) -> Self:
        document = parse_json(text)
        header = {"tokenizer": KIND, "version": VERSION}
        if document.get("heed") != header:
            raise DataError(f"its header is {document.get('heed')}, but this version of heed reads {header}.")
        lowered = document.get("lowered")
        if not isinstance(lowered, list) or not all(isinstance(word, str) for word in lowered):
            raise DataError("its 'lowered' is not a list of strings.")
        return cls(Bpe.from_json(json.dumps(document.get("bpe"))), lowered)

    def to_json(self) -> str:
        header = {"tokenizer": KIND, "version": VERSION}
        document = {"heed": header, "lowered": sorted(self._lowered), "bpe": parse_json(self._bpe.to_json())}
        return json.dumps(document, ensure_ascii=False, indent=1) + "\n"

    def with_tags(self, tags: Sequence[str]) -> Self:
        return type(self)(self._bpe.with_tags(tags), self._lowered)

    def encode(self, lines: Sequence[str]) -> list[list[int]]:
        return self._bpe.encode([_written_inside(line, self._lowered) for line in checked(lines)])

    def encode_inside(self, texts: Sequence[str]) -> list[list[int]]:
        return self._bpe.encode(texts)

    def restored(self, text: str) -> str:
        return _restored(text)

    def pieces(self, ids: Sequence[int]) -> list[str]:
        return self._bpe.pieces(ids)

    def word_ids(self, line: str) -> list[int | None]:
        return self._bpe.word_ids(_written_inside(line, self._lowered))

    def encode_with_dropout(self, ids: Sequence[int], p: float, key: tuple[int, int, int]) -> list[int]:
        return self._bpe.encode_with_dropout(ids, p, key)


def _written_inside(line: str, lowered: frozenset[str]) -> str:
    """A line as it would be written inside a sentence; the line itself if `_restored` would not give it back."""
    if not line or is_unseparated(line[0]):
        return line
    word = _WORD.match(line)
    first = word.group() if word else ""
    lower = first[:1].lower() + first[1:]
    written = f" {lower if lower in lowered else first}{line[len(first) :]}"
    return written if _restored(written) == line else line


def _restored(text: str) -> str:
    is_as_inside = text.startswith((" ", "\n"))  # a line feed would be a space in an output of one line
    return _capitalised(text[1:]) if is_as_inside else text


def _capitalised(text: str) -> str:
    """A text with its first letter in upper case, if that is one character."""
    capital = text[:1].upper()
    return capital + text[1:] if len(capital) == 1 else text
