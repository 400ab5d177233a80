"""A text as a reader read it: its words, the attention between them, the answer, and what the answer rests on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Literal

from heed.nn.contract import Trace
from heed.tasks.predictor import Explanation, Prediction
from heed.text.token_words import Token, Word, continues_word, word_slices
from heed.text.tokenizers import Tokenizer
from heed.text.vocabulary import EOS_ID
from heed.text.words import Word as Place


@dataclass(frozen=True)
class Lattice:
    """The tags that a tagger considers at each word, with their probabilities over all taggings of the text."""

    tags: tuple[str, ...]
    """The tags in the model's own scheme; those that are improbable at all words are left out."""
    marginals: tuple[tuple[float, ...], ...]
    """P(y_t = tag) [W][K]."""
    steps: tuple[tuple[tuple[int, int, float], ...], ...]
    """From each word to the next [W - 1]: tag, next tag, and P(y_t, y_t+1), unless it is improbable."""
    best: tuple[int, ...]
    """The tag of each word in the most probable tagging."""


@dataclass(frozen=True)
class SpanMarginals:
    """Where an answer is in a context, over all spans that it may be."""

    first: int
    """The number of the context's first word among the words of the text."""
    starts: tuple[float, ...]
    """The probability that the answer begins with each word of the context [W]."""
    ends: tuple[float, ...]
    """The probability that it ends with each [W]."""
    none: float | None
    """The probability that there is no answer; None if there always is one."""


@dataclass(frozen=True)
class Reading:
    """A text as a reader read it."""

    words: tuple[Word, ...]
    """The words of the text, with what the model reads before, between and after them."""
    places: tuple[slice, ...] = ()
    """The positions of each word in the trace."""
    trace: Trace = field(default_factory=Trace)
    """The attention of the reader and of its head."""
    answers: tuple[Prediction, ...] = ()
    """The answers to the whole text, the most probable one first; none for answers at each word."""
    explanation: Explanation | None = None
    lattice: Lattice | None = None
    spans: SpanMarginals | None = None


def spelled_words(text: str, places: Sequence[Place]) -> list[Word]:
    """The words of a text, which has them at these places, each with the blanks around it."""
    ends = [*(place.start for place in places[1:]), len(text)]
    spelled = (text[begin:end] for begin, end in pairwise([0, *ends]))
    return [Word(each, "word", None, (Token(each, False),)) for each in spelled]


def text_words(tokenizer: Tokenizer, ids: Sequence[int], has_begin: bool) -> tuple[tuple[Word, ...], tuple[slice, ...]]:
    """The words of the positions that a reader has: a begin, if it reads one, the tokens, and the end."""
    parts, pieces = tokenizer.bytes_of(ids), tokenizer.pieces(ids)
    tokens = [
        Token("" if id == EOS_ID else piece, continues_word(previous, part))
        for id, piece, previous, part in zip(ids, pieces, [b"", *parts], parts, strict=False)
    ]
    places = word_slices(parts)
    first = int(has_begin)
    moved = [slice(place.start + first, place.stop + first) for place in places]
    last = first + len(ids)
    words = (
        *[of_kind("begin")] * has_begin, *(_word(parts[place], tokens[place]) for place in places), of_kind("end"),
    )  # fmt: skip
    return words, (*[slice(0, 1)] * has_begin, *moved, slice(last, last + 1))


def _word(parts: Sequence[bytes], tokens: Sequence[Token]) -> Word:
    text = b"".join(parts).decode("utf-8", "replace")
    shown = text or "".join(token.text for token in tokens)
    return Word(shown, "word" if text else "tag", None, tuple(tokens)) if shown else of_kind("end")


def of_kind(kind: Literal["begin", "end"]) -> Word:
    """The begin or the end of a text."""
    return Word("", kind, None, (Token("", False),))
