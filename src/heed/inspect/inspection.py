"""What is there to see of one translation, or of one text that a language model reads? Plain values."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

from heed.core.errors import UsageError
from heed.decoding.hypothesis import Hypothesis
from heed.decoding.options import SearchOptions
from heed.decoding.translator import ModelTranslator
from heed.inspect.attention import Attention, word_attention
from heed.inspect.beam_tree import BeamRecorder, BeamTree, beam_tree
from heed.inspect.forced_pass import forced_pass
from heed.inspect.id_pair import IdPair
from heed.inspect.next_words import next_words
from heed.inspect.rounding import rounded
from heed.inspect.tokens import (
    Choice,
    Word,
    choices_of_words,
    source_slices,
    source_words,
    target_slices,
    target_words,
)
from heed.text.vocabulary import EOS_ID

MAX_SENTENCE = 2000
"""Characters of a source or a target: a sentence has fewer."""
MAX_TEXT = 20_000
"""Characters of a text that a language model reads."""


@dataclass(frozen=True)
class Alternative:
    """One of the n-best outputs."""

    text: str
    log_prob: float | None
    score: float | None
    """What it was ranked by."""
    finished: bool


@dataclass(frozen=True)
class Inspection:
    """Everything that is shown of a translation, or of a text."""

    task: Literal["translation", "language-model"]
    source: tuple[Word, ...]
    """With its tag and its end; a language model has none."""
    target: tuple[Word, ...]
    """The output with its end, or the text and what comes next."""
    attention: tuple[Attention, ...]
    """Of each kind that the model has."""
    alternatives: tuple[Alternative, ...] = ()
    """The n-best, the chosen one first; none where the target was given."""
    tree: BeamTree | None = None
    """None where there was no beam."""
    finished: bool = True
    """False where the longest allowed length cut the output off."""
    confidence: float | None = None
    """The probability that the output is good, where the run has learned to tell."""
    flags: tuple[str, ...] = ()
    """What the guard finds wrong with the best output."""
    fallback: bool = False
    """Whether the output was given in its place."""

    def to_json(self) -> dict[str, Any]:
        """As JSON holds it."""
        return asdict(self)


def inspect_translation(
    translator: ModelTranslator, source: str, target: str | None, options: SearchOptions
) -> Inspection:
    """A translation of one sentence: the best that is found, or the given `target`, which is not searched for.

    Raises UsageError for a side that is blank, or longer than MAX_SENTENCE.
    """
    for side, text in (("source", source), ("target", target)):
        if text is not None:
            _require_text(side, text, MAX_SENTENCE)
    if target is not None:
        return _inspection(translator, IdPair.of_translation(*translator.encoded(source, target)))
    best = translator.translate([source], options)[0]
    src_ids, text_ids = translator.encoded(source, best.text)
    pair = IdPair.of_translation(src_ids, list(best.ids) if best.ids else text_ids)
    found = [best, *best.alternatives] if best.ids else []
    return replace(
        _inspection(translator, pair),
        alternatives=tuple(map(_alternative, found)),
        tree=_tree(translator, source, best, options),
        finished=best.finished,
        confidence=None if best.confidence is None else rounded(best.confidence),
        flags=best.flags,
        fallback=best.fallback,
    )


def inspect_text(translator: ModelTranslator, text: str) -> Inspection:
    """A text as a language model reads it; the place behind it says what could follow.

    Raises UsageError for a text that is blank, or longer than MAX_TEXT.
    """
    _require_text("text", text, MAX_TEXT)
    return _inspection(translator, IdPair.of_text(translator, text))


def likely_words(translator: ModelTranslator, source: str | None, prefix: str) -> tuple[Choice, ...]:
    """The likeliest words behind the beginning of a translation, or of a text: put together they read right."""
    if source is None:
        pair = IdPair.of_text(translator, prefix)
    else:
        pair = IdPair.of_translation(*translator.encoded(source, prefix))
    choices = choices_of_words(next_words(translator, pair, [len(pair.said)])[0])
    form = translator.detokenizer
    if not form.space_after_words:
        return choices
    texts = ["" if choice.end else choice.text.rstrip() for choice in choices]
    return tuple(
        replace(choice, text=form.space_between(prefix, text) + text)
        for choice, text in zip(choices, texts, strict=True)
    )


def _require_text(side: str, text: str, longest: int) -> None:
    if not text.strip():
        raise UsageError(f"there is nothing to inspect: the {side} is blank. Give a sentence.")
    if len(text) > longest:
        raise UsageError(
            f"the {side} has {len(text):,} characters, and at most {longest:,} can be shown: give a sentence of it."
        )


def _inspection(translator: ModelTranslator, pair: IdPair) -> Inspection:
    """An output that was not searched for."""
    seen = forced_pass(translator, pair)
    src_slices, tgt_slices = source_slices(translator, pair), target_slices(translator, pair)
    return Inspection(
        task="language-model" if pair.src is None else "translation",
        source=source_words(translator, pair, src_slices),
        target=target_words(translator, pair, tgt_slices, seen),
        attention=tuple(word_attention(seen.trace, src_slices, tgt_slices)),
    )


def _alternative(hypothesis: Hypothesis) -> Alternative:
    return Alternative(hypothesis.text, rounded(hypothesis.log_prob), rounded(hypothesis.score), hypothesis.finished)


def _tree(translator: ModelTranslator, source: str, best: Hypothesis, options: SearchOptions) -> BeamTree | None:
    """The search once more, this time watched."""
    recorder = BeamRecorder(EOS_ID)
    translator.watched(source, options, recorder.see)
    return beam_tree(recorder, translator.tgt_tokenizer, (*best.ids, EOS_ID), options.width)
