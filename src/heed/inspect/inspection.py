"""Inspection of one translation, or of one text of a language model, as plain values."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

from heed.core.errors import UsageError
from heed.decoding.detokenizer import Detokenizer
from heed.decoding.hypothesis import Hypothesis
from heed.decoding.options import SearchOptions
from heed.decoding.scoring import TokenStats
from heed.inference.translator import ModelTranslator
from heed.inspect.attention import Attention, word_attention
from heed.inspect.beam_tree import BeamRecorder, BeamTree, beam_tree
from heed.inspect.next_words import next_words
from heed.inspect.teacher_forcing import EncodedPair, inspected_pass
from heed.text.token_words import Choice, Token, Word, continues_word, probability, word_slices
from heed.text.tokenizers import Tokenizer
from heed.text.vocabulary import EOS_ID

MAX_SENTENCE = 2000
"""Maximum characters of a source or a translation."""
MAX_TEXT = 20_000
"""Maximum characters of a text of a language model."""
MAX_POSITIONS = 48
"""Maximum words of an output with likely words at every position; a longer one has them only at its end."""


@dataclass(frozen=True)
class Alternative:
    """One of the n-best outputs."""

    text: str
    log_prob: float | None
    score: float | None
    """The score that ranks it."""
    finished: bool


@dataclass(frozen=True)
class Inspection:
    """Everything that is shown of a translation, or of a text."""

    task: Literal["translation", "language-model"]
    source: tuple[Word, ...]
    """The words of the source with its tag and its end; empty for a language model."""
    target: tuple[Word, ...]
    """The words of the output and its end, or of the text and the position after it."""
    attention: tuple[Attention, ...]
    """Each kind of attention that the model has."""
    alternatives: tuple[Alternative, ...] = ()
    """The n-best outputs, the best first; empty if the output was given."""
    tree: BeamTree | None = None
    """None without a beam."""
    finished: bool = True
    """False if the output was cut off at its maximum length."""
    confidence: float | None = None
    """Probability that the output is good; None for a run without calibrated confidences."""
    flags: tuple[str, ...] = ()
    """Output checks that the best output failed."""
    fallback: bool = False
    """Whether this output replaces a better-scored one that failed the checks."""

    def to_json(self) -> dict[str, Any]:
        """The fields as a JSON object."""
        return asdict(self)


def inspect_translation(
    translator: ModelTranslator, source: str, target: str | None, options: SearchOptions
) -> Inspection:
    """Inspect the translation of a sentence: the given `target`, or the best output of a search.

    Raises UsageError for a side that is blank, or longer than MAX_SENTENCE.
    """
    for side, text in (("source", source), ("target", target)):
        if text is not None:
            require_text(side, text, MAX_SENTENCE)
    if target is not None:
        return _inspection(translator, EncodedPair.of_translation(*translator.encoded(source, target)))
    best = translator.translate([source], options)[0]
    src_ids, text_ids = translator.encoded(source, best.text)
    pair = EncodedPair.of_translation(src_ids, list(best.ids) if best.ids else text_ids)
    hypotheses = [best, *best.alternatives] if best.ids else []
    return replace(
        _inspection(translator, pair),
        alternatives=tuple(map(_alternative, hypotheses)),
        tree=_tree(translator, source, best, options),
        finished=best.finished,
        confidence=None if best.confidence is None else _rounded(best.confidence),
        flags=best.flags,
        fallback=best.fallback,
    )


def inspect_text(translator: ModelTranslator, text: str) -> Inspection:
    """Inspect a text of a language model, and what could follow it.

    Raises UsageError for a text that is blank, or longer than MAX_TEXT.
    """
    require_text("text", text, MAX_TEXT)
    return _inspection(translator, EncodedPair.of_text(translator, text))


def likely_words(translator: ModelTranslator, source: str | None, prefix: str) -> tuple[Choice, ...]:
    """The likeliest words after a prefix of a translation or, without a source, of a text, ready to be appended."""
    if source is None:
        pair = EncodedPair.of_text(translator, prefix)
    else:
        pair = EncodedPair.of_translation(*translator.encoded(source, prefix.rstrip()))
    [choices] = next_words(translator, pair, [len(pair.output)])
    form = translator.detokenizer
    if form.space_after_words:
        texts = ["" if choice.end else choice.text.rstrip() for choice in choices]
        texts = [form.space_between(prefix, text) + text for text in texts]
    else:
        texts = [choice.text if source is None else without_space(prefix, choice.text) for choice in choices]
    words = [replace(choice, text=text) for choice, text in zip(choices, texts, strict=True)]
    return tuple(word for word in words if word.text or word.end)


def without_space(prefix: str, text: str) -> str:
    """The continuation of a prefix whose white space at the end was not read, without that space.

    It is empty if it would continue a word that has ended.
    """
    if not prefix.strip() or not prefix[-1].isspace():
        return text
    return text.lstrip() if text[:1].isspace() else ""


def require_text(side: str, text: str, limit: int) -> None:
    """Raise UsageError for a text that is blank, or longer than `limit` characters."""
    if not text.strip():
        raise UsageError(f"the {side} is blank. Give a sentence to inspect.")
    if len(text) > limit:
        raise UsageError(f"the {side} has {len(text):,} characters; the limit is {limit:,}. Give a part of it.")


def _inspection(translator: ModelTranslator, pair: EncodedPair) -> Inspection:
    """The inspection of a given output."""
    forced = inspected_pass(translator, pair)
    form, src = translator.detokenizer, pair.src or ()
    src_tokenizer = None if pair.src is None else translator.src_tokenizer
    src_slices = _with_end(src_tokenizer.bytes_of(src)) if src_tokenizer else []
    tgt_slices = _with_end([form.token_bytes[id] for id in pair.output])
    return Inspection(
        task="language-model" if pair.src is None else "translation",
        source=_source_words(src_tokenizer, src, src_slices) if src_tokenizer else (),
        target=_target_words(translator, pair, tgt_slices, forced.stats),
        attention=tuple(word_attention(forced.trace, src_slices, tgt_slices)),
    )


def _with_end(parts: Sequence[bytes]) -> list[slice]:
    """The tokens of each word, and the position after the last one."""
    return [*word_slices(parts), slice(len(parts), len(parts) + 1)]


def _source_words(tokenizer: Tokenizer, ids: Sequence[int], slices: Sequence[slice]) -> tuple[Word, ...]:
    parts, pieces = tokenizer.bytes_of(ids), tokenizer.pieces(ids)
    tokens = [
        Token(piece, continues_word(previous, part))
        for piece, previous, part in zip(pieces, [b"", *parts], parts, strict=False)
    ]
    words = [_word(parts[place], tokens[place]) for place in slices[:-1]]
    return (*words, Word("", "end", None, (Token("", False),)))


def _target_words(
    translator: ModelTranslator, pair: EncodedPair, slices: Sequence[slice], stats: Sequence[TokenStats]
) -> tuple[Word, ...]:
    form = translator.detokenizer
    parts = [form.token_bytes[id] for id in pair.output]
    tokens = [
        _token(id, previous, stat, form)
        for id, previous, stat in zip([*pair.output, EOS_ID], [b"", *parts], stats, strict=True)
    ]
    words = [_word(parts[place], tokens[place], stats[place]) for place in slices[:-1]]
    words.append(_last_word(tokens[-1], stats[-1], form))
    first = 0 if len(words) <= MAX_POSITIONS else len(words) - 1
    choices = next_words(translator, pair, [place.start for place in slices[first:]])
    with_choices = [replace(word, choices=each) for word, each in zip(words[first:], choices, strict=True)]
    return (*words[:first], *with_choices)


def _word(parts: Sequence[bytes], tokens: Sequence[Token], stats: Sequence[TokenStats] | None = None) -> Word:
    text = b"".join(parts).decode("utf-8", "replace")
    prob = None if stats is None else probability(math.fsum(stat.log_prob for stat in stats))
    return Word(text or "".join(token.text for token in tokens), "word" if text else "tag", prob, tuple(tokens))


def _last_word(token: Token, stat: TokenStats, form: Detokenizer) -> Word:
    """The end of the sentence; for texts without an end, the position after the text."""
    if form.line_end is None:
        return Word("", "end", probability(stat.log_prob), (token,))
    return Word("", "next", None, (replace(token, text="", prob=None, rank=None),))


def _token(id: int, previous: bytes, stat: TokenStats, form: Detokenizer) -> Token:
    """A token of an output, after a token that adds `previous` to the text."""
    choices = tuple(
        Choice(
            text := _piece(form, other), continues_word(previous, form.token_bytes[other]), probability(value), not text
        )
        for other, value in stat.choices
    )
    goes_on = continues_word(previous, form.token_bytes[id])
    return Token(_piece(form, id), goes_on, probability(stat.log_prob), stat.rank, choices)


def _piece(form: Detokenizer, id: int) -> str:
    """A token as text; empty for the end of the sentence."""
    if id == EOS_ID:
        return form.token_bytes[EOS_ID].decode()
    return form.tokenizer.pieces([id])[0]


def _rounded(number: float) -> float | None:
    """Rounded to four places; None if it is not finite, as JSON has no infinity."""
    return round(number, 4) if math.isfinite(number) else None


def _alternative(hypothesis: Hypothesis) -> Alternative:
    return Alternative(hypothesis.text, _rounded(hypothesis.log_prob), _rounded(hypothesis.score), hypothesis.finished)


def _tree(translator: ModelTranslator, source: str, best: Hypothesis, options: SearchOptions) -> BeamTree | None:
    """The tree of a second, recorded search."""
    recorder = BeamRecorder(EOS_ID)
    translator.watched(source, options, recorder.record)
    return beam_tree(recorder, translator.tgt_tokenizer, (*best.ids, EOS_ID), options.width)
