"""The first word of a sentence as it is written inside one, and back (truecasing; Lita et al. 2003).

A sentence begins without a space and mostly with a capital letter. Inside, its first word is in the more frequent of
its two forms, as it is and in lower case, so that counts of both places add up. The first word of a translation is
capitalised if that of its source was. A word that the vocabulary does not have is spelled by bytes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heed.statistical.predictor import Bools, Ints, starts
from heed.statistical.saved_arrays import Arrays, read_bounds, read_numbers
from heed.text.language.codes import code_of

_SPACE, _LETTER = 1, 2
_TURKIC = ("tr", "az")
"""Languages with an i with a dot in both cases, and one without."""


@dataclass(frozen=True, eq=False)
class SentenceCase:
    """The forms of V words."""

    inner: Ints
    """[V]: the form inside a sentence of each word that begins one."""
    is_capital: Bools
    """[V]: whether it begins with a capital letter."""
    spells: Ints
    """[V]: 1 for the byte of a space, 2 for other bytes that unknown words are spelled by, otherwise 0."""
    outer_bounds: Ints
    """[2 V + 1]: the forms at the beginning of a sentence in `outer_ids`, as they are and capitalised for each word."""
    outer_ids: Ints

    @property
    def is_letter(self) -> Bools:
        """[V]: whether it is a byte of a letter that unknown words are spelled by; it may be a word as well."""
        return np.asarray(self.spells == _LETTER)

    @classmethod
    def of(
        cls, tokenizer: Any, sentences: Sequence[Sequence[int]], languages: tuple[str, str] = ("", "")
    ) -> SentenceCase:
        """From the words of a lossless tokenizer and from sentences that it encoded.

        `languages`: codes or names of source and target; empty if unknown.
        """
        is_turkic = [code_of(language) in _TURKIC for language in languages]
        texts = tokenizer.texts()
        size = len(texts)
        inside = np.zeros(size, dtype=np.int64)
        for ids in sentences:
            np.add.at(inside, np.asarray(ids[1:], dtype=np.int64), 1)
        spelled = tokenizer.bytes_of(range(size))
        is_whole = [text.encode() == own for text, own in zip(texts, spelled, strict=True)]
        id_of = {text: id for id, text in enumerate(texts) if text and is_whole[id]}
        inner = np.arange(size)
        for id, text in enumerate(texts):
            if text and is_whole[id] and not text.startswith(" "):
                lowered = [text.lower(), _turkic_lower(text)] if any(is_turkic) else [text.lower()]
                forms = [id_of[f" {form}"] for form in (text, *lowered) if f" {form}" in id_of]
                inner[id] = max(forms, key=lambda form: inside[form]) if forms else id
        plain = [text.removeprefix(" ") for text in texts]
        outer = tokenizer.encode([form for text in plain for form in (text, _capitalised(text, is_turkic[1]))])
        for id in (id for id in range(size) if not is_whole[id]):  # it has part of a character, which no text has
            outer[2 * id : 2 * id + 2] = [[id], [id]]
        return cls(
            inner,
            np.array([text[:1].isupper() for text in plain]),
            _spells(tokenizer),
            starts(np.array([len(ids) for ids in outer])),
            np.array([id for ids in outer for id in ids], dtype=np.int64),
        )

    @classmethod
    def none(cls, num_words: int) -> SentenceCase:
        """Words have one form each."""
        same = np.arange(num_words)
        return cls(
            same, np.zeros(num_words, dtype=np.bool_), np.zeros(num_words, dtype=np.int64),
            np.arange(2 * num_words + 1), np.repeat(same, 2),
        )  # fmt: skip

    def enter(self, ids: Sequence[int]) -> tuple[list[tuple[int, ...]], bool]:
        """The words of a sentence, the first as it is inside one, and whether it began with a capital letter."""
        words = list(self.words(ids))
        if not words:
            return [], False
        first = words[0]
        if len(first) == 1:
            words[0] = (int(self.inner[first[0]]),)
        elif self.spells[first[0]] != _SPACE and (spaces := np.flatnonzero(self.spells == _SPACE)).size:
            words[0] = (int(spaces[0]), *first)
        return words, bool(self.is_capital[first[0]])

    def enter_with_places(self, ids: Sequence[int]) -> tuple[list[tuple[int, ...]], list[int], bool]:
        """As `enter`, with the token that each word begins at, and at the end the number of tokens."""
        words, capital = self.enter(ids)
        sizes = [len(word) for word in words]
        if sum(sizes) > len(ids):  # a space that the first word lacks in the sentence
            sizes[0] -= 1
        return words, np.concatenate([[0], np.cumsum(sizes)]).tolist(), capital

    def words(self, ids: Sequence[int]) -> Iterator[tuple[int, ...]]:
        """The words of tokens: one of the vocabulary is one token, an unknown one has those of its spelling."""
        word: list[int] = []
        for id in ids:
            if word and not (self.spells[id] == _LETTER and self.spells[word[-1]]):
                yield tuple(word)
                word = []
            word.append(id)
        if word:
            yield tuple(word)

    def leave(self, word: tuple[int, ...], capital: bool) -> tuple[int, ...]:
        """The first word of a translation as a sentence begins with it."""
        if len(word) > 1 and self.spells[word[0]] == _SPACE:
            return self.leave(word[1:2], capital) + word[2:]
        place = 2 * word[0] + capital
        outer = self.outer_ids[self.outer_bounds[place] : self.outer_bounds[place + 1]].tolist()
        if not outer and self.spells[word[0]] == _LETTER:  # part of a character, in a run of an earlier version
            return word
        return (*outer, *word[1:])

    def arrays(self) -> dict[str, NDArray[np.generic]]:
        """The arrays to save."""
        return {each.name: getattr(self, each.name) for each in fields(self)}

    @classmethod
    def from_arrays(cls, arrays: Arrays, num_words: int) -> SentenceCase:
        """Read what `arrays` returned. Raises DataError for anything else."""
        what = "the forms of words of this vocabulary"
        outer_ids = read_numbers(arrays, "outer_ids", what, num_words)
        return cls(
            read_numbers(arrays, "inner", what, num_words, num_words),
            read_numbers(arrays, "is_capital", what, 2, num_words).astype(np.bool_),
            read_numbers(arrays, "spells", what, _LETTER + 1, num_words),
            read_bounds(arrays, "outer_bounds", what, 2 * num_words, len(outer_ids)),
            outer_ids,
        )


def _turkic_lower(text: str) -> str:
    return text.replace("İ", "i").replace("I", "ı").lower()


def _capitalised(text: str, is_turkic: bool) -> str:
    """With the form of its first letter that begins a sentence: Georgian has capitals, but not for that."""
    return ("İ" if is_turkic and text[:1] == "i" else text[:1].title()) + text[1:]


def _spells(tokenizer: Any) -> Ints:
    """Which tokens are bytes of unknown words: letters, digits, parts of characters, and the space before them."""
    kinds = np.zeros(len(tokenizer.vocabulary), dtype=np.int64)
    for id, spelled in enumerate(tokenizer.bytes_of(range(len(kinds)))):
        if len(spelled) == 1:
            is_letter = spelled.isalnum() or spelled[0] >= 128
            kinds[id] = _SPACE if spelled == b" " else _LETTER if is_letter else 0
    return kinds
