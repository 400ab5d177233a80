"""Predictions of a tagger: the tags of a sentence, and its entities with their places in the text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from heed.tasks.predictor import Prediction
from heed.tasks.tagging.tagger import Tagging
from heed.text.words import Word


@dataclass(frozen=True)
class Entity:
    """A span of words in a text."""

    text: str
    type: str
    start: int
    """The first character in the text, counted from 0."""
    end: int
    """The character after the last one."""
    probability: float
    """The probability that exactly this span is in the text."""


@dataclass(frozen=True)
class TagPrediction(Prediction):
    """The tags of a sentence; `text` has them separated by blanks."""

    tokens: tuple[str, ...] = ()
    entities: tuple[Entity, ...] = ()

    @property
    def tags(self) -> list[str]:
        """The tag of each token."""
        return self.text.split()


def prediction_of(line: str, words: Sequence[Word], tagging: Tagging) -> TagPrediction:
    """A tagging of the words of a line."""
    entities = []
    for span, probability in tagging.spans:
        start, end = words[span.start].start, words[span.end - 1].end
        entities.append(Entity(line[start:end], span.type, start, end, probability))
    tokens = tuple(word.text for word in words)
    return TagPrediction(" ".join(tagging.tags), tagging.probability, tokens, tuple(entities))
