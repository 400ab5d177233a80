"""Inspection of a text that a reader read: attention between words, answers, and what they rest on."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

from heed.inspect.attention import Attention, pooled_words, word_attention_within
from heed.inspect.inspection import MAX_SENTENCE, MAX_TEXT, require_text
from heed.inspect.teacher_forcing import MAX_TRACED
from heed.nn.contract import Trace
from heed.tasks.predictor import Explanation, Prediction, Predictor
from heed.tasks.reading import Lattice, SpanMarginals
from heed.text.token_words import Word


@dataclass(frozen=True)
class ReaderInspection:
    """Everything that is shown of a text that a reader read."""

    target: tuple[Word, ...]
    """The words of the text, with the begin and the end that the model reads."""
    attention: tuple[Attention, ...]
    """Attention between the words, if the model has any; the text is not too long for it."""
    pooling: tuple[float, ...] | None
    """The share of each word in the vector that the answer is computed from; None without attention over words."""
    answers: tuple[Prediction, ...]
    """Answers to the whole text, the most probable one first."""
    explanation: Explanation | None
    """What the most probable answer rests on."""
    lattice: Lattice | None
    """The tags of each word with their probabilities."""
    spans: SpanMarginals | None
    """Where the answer to a question begins and ends."""
    task: Literal["reader"] = "reader"

    def to_json(self) -> dict[str, Any]:
        """The fields as a JSON object."""
        return asdict(self)


def inspect_reader(predictor: Predictor, text: str) -> ReaderInspection:
    """Inspect a text that a reader reads. Raises UsageError for a text that is blank or too long.

    The limit is MAX_SENTENCE characters, and MAX_TEXT for models with an answer to a whole text.
    """
    long = predictor.can("explain") or predictor.can("extract")
    require_text("text", text, MAX_TEXT if long else MAX_SENTENCE)
    reading = predictor.read(text)
    places = reading.places
    trace = reading.trace if places and places[-1].stop <= MAX_TRACED else Trace()
    return ReaderInspection(
        target=reading.words,
        attention=tuple(word_attention_within(trace, places)),
        pooling=pooled_words(trace, places),
        answers=reading.answers,
        explanation=reading.explanation,
        lattice=reading.lattice,
        spans=reading.spans,
    )
