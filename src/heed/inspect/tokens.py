"""What is shown of the words of an output and their tokens: how likely were they, and what else could stand there?"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from heed.decoding.detokenizer import Detokenizer
from heed.decoding.scoring import TokenStats
from heed.decoding.translator import ModelTranslator
from heed.inspect.forced_pass import ForcedPass
from heed.inspect.id_pair import IdPair
from heed.inspect.next_words import MAX_PLACES, Found, next_words
from heed.inspect.rounding import probability
from heed.inspect.words import goes_on, word_slices
from heed.text.vocabulary import EOS_ID

WordKind = Literal["word", "tag", "end", "next"]
"""Text; a tag before a source; the end of a sentence; what a language model says behind a text that does not end."""


@dataclass(frozen=True)
class Choice:
    """One of the likeliest tokens or words at a place; `end` is the end of the sentence or text."""

    text: str
    goes_on: bool
    """Whether it goes on with the word before it."""
    prob: float
    end: bool


@dataclass(frozen=True)
class Token:
    """A piece of a word. Only the tokens of an output have a probability, a rank (1: the likeliest) and choices."""

    text: str
    goes_on: bool
    prob: float | None = None
    rank: int | None = None
    choices: tuple[Choice, ...] = ()


@dataclass(frozen=True)
class Word:
    """The texts of the words of kind "word", one after the other, are the text; ends and tags show what they are."""

    text: str
    kind: WordKind
    prob: float | None
    """The product of its tokens' probabilities."""
    tokens: tuple[Token, ...]
    choices: tuple[Choice, ...] = ()
    """The likeliest words in its place: of an output that is not too long, and behind any."""


def source_slices(translator: ModelTranslator, pair: IdPair) -> list[slice]:
    """The places of the tokens of each word of the source, and of its end."""
    if translator.src_tokenizer is None or pair.src is None:
        return []
    return _slices(translator.src_tokenizer.bytes_of(pair.src))


def target_slices(translator: ModelTranslator, pair: IdPair) -> list[slice]:
    """The places of the tokens of each word of the output, and that behind them."""
    return _slices([translator.detokenizer.token_bytes[id] for id in pair.said])


def _slices(parts: Sequence[bytes]) -> list[slice]:
    return [*word_slices(parts), slice(len(parts), len(parts) + 1)]


def source_words(translator: ModelTranslator, pair: IdPair, slices: Sequence[slice]) -> tuple[Word, ...]:
    """The words of the source and its end."""
    tokenizer = translator.src_tokenizer
    if tokenizer is None or pair.src is None:
        return ()
    parts, spelled = tokenizer.bytes_of(pair.src), tokenizer.pieces(pair.src)
    tokens = [Token(text, goes_on(b"".join(parts[:place][-1:]), parts[place])) for place, text in enumerate(spelled)]
    words = [_word(parts[place], tokens[place]) for place in slices[:-1]]
    return (*words, Word("", "end", None, (Token("", False),)))


def target_words(
    translator: ModelTranslator, pair: IdPair, slices: Sequence[slice], seen: ForcedPass
) -> tuple[Word, ...]:
    """The words of the output and what comes behind, each with what the model says of it."""
    form = translator.detokenizer
    parts = [form.token_bytes[id] for id in pair.said]
    tokens = []
    for place, (id, facts) in enumerate(zip([*pair.said, EOS_ID], seen.places, strict=True)):
        before = parts[place - 1] if place else b""
        tokens.append(_judged(Token(_piece(form, id), goes_on(before, form.token_bytes[id])), before, facts, form))
    words = [_word(parts[place], tokens[place], seen.places[place]) for place in slices[:-1]]
    words.append(_behind(tokens[-1], seen.places[-1], form))
    first = 0 if len(slices) <= MAX_PLACES else len(slices) - 1  # of a long output only what comes behind it
    found = next_words(translator, pair, [place.start for place in slices[first:]])
    choices = map(choices_of_words, found)
    return (*words[:first], *(replace(word, choices=each) for word, each in zip(words[first:], choices, strict=True)))


def _word(parts: Sequence[bytes], tokens: Sequence[Token], places: Sequence[TokenStats] | None = None) -> Word:
    text = b"".join(parts).decode("utf-8", "replace")
    prob = None if places is None else probability(math.fsum(place.log_prob for place in places))
    return Word(text or "".join(token.text for token in tokens), "word" if text else "tag", prob, tuple(tokens))


def _behind(token: Token, place: TokenStats, form: Detokenizer) -> Word:
    """The end; where a text does not end, what comes next: nothing stands there yet."""
    if form.line_end is None:
        return Word("", "end", probability(place.log_prob), (token,))
    return Word("", "next", None, (replace(token, text="", prob=None, rank=None),))


def _judged(token: Token, before: bytes, place: TokenStats, form: Detokenizer) -> Token:
    """With what the model says where it stands, behind a token that adds `before`."""
    choices = tuple(
        Choice(text := _piece(form, id), goes_on(before, form.token_bytes[id]), probability(log_prob), not text)
        for id, log_prob in place.choices
    )
    return replace(token, prob=probability(place.log_prob), rank=place.rank, choices=choices)


def _piece(form: Detokenizer, id: int) -> str:
    """A token as text to show; nothing for the end."""
    if id == EOS_ID:
        return form.token_bytes[EOS_ID].decode()
    return form.tokenizer.pieces([id])[0]


def choices_of_words(found: Found) -> tuple[Choice, ...]:
    """The likeliest words of a place."""
    return tuple(Choice(text, False, probability(total), not text) for text, total in found.items())
