"""Predictor of a tagging run: tags of sentences, in Python, for CoNLL files and for plain text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from heed.run import Run
from heed.tasks.predictor import Prediction, Predictor
from heed.tasks.tagging.labels import TagLabels
from heed.tasks.tagging.tagger import Tagger, Tagging
from heed.tasks.tagging.words import WordEncoder, Words
from heed.text.words import Word, split_words


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
    tags: tuple[str, ...] = ()
    entities: tuple[Entity, ...] = ()


class TaggingPredictor(Predictor):
    """A trained tagger."""

    run: Run

    @cached_property
    def labels(self) -> TagLabels:
        """The labels of the run."""
        return TagLabels.read(self.run.files)

    @cached_property
    def tagger(self) -> Tagger:
        """The model with its encoding of words."""
        data: Any = self.run.recipe.data
        return Tagger(self.run.model, WordEncoder(data, self.run.tokenizers["src"], self.labels), self.run.device)

    def predict(self, inputs: Sequence[Any], top: int = 1) -> list[list[Prediction]]:
        """Tag texts, which are split into words, or lists of words; with the `top` most probable taggings of each.

        The places of entities are characters of the text, or of the words joined by blanks.
        """
        lines = [line if isinstance(line, str) else " ".join(line) for line in inputs]
        words = [split_words(each) if isinstance(each, str) else joined_words(each) for each in inputs]
        sentences = [Words([word.text for word in each]) for each in words]
        full = [sentence for sentence in sentences if sentence.tokens]
        taggings = iter(self.tagger.taggings(full, top))
        return [
            [prediction_of(line, each, tagging) for tagging in (next(taggings) if each else [Tagging((), 1.0)])]
            for line, each in zip(lines, words, strict=True)
        ]

    def evaluate(self, table: Path) -> Any:
        from heed.tasks.tagging.evaluation import evaluate_tagger

        return evaluate_tagger(self, table)


def joined_words(tokens: Sequence[str]) -> list[Word]:
    """Tokens with their places in the text that joins them by blanks."""
    words: list[Word] = []
    start = 0
    for token in tokens:
        words.append(Word(token, start, start + len(token)))
        start += len(token) + 1
    return words


def prediction_of(line: str, words: Sequence[Word], tagging: Tagging) -> TagPrediction:
    """A tagging of the words of a line."""
    entities = [
        Entity(line[words[s.start].start : words[s.end - 1].end], s.type, words[s.start].start, words[s.end - 1].end, p)
        for s, p in tagging.spans
    ]
    tokens = tuple(word.text for word in words)
    return TagPrediction(" ".join(tagging.tags), tagging.probability, tokens, tagging.tags, tuple(entities))
