"""Predictor of a tagging run: tags of sentences, in Python, for CoNLL files and for plain text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from heed.evaluation.evaluation import Evaluation
from heed.report.validation import measured
from heed.run import Run
from heed.tasks.arguments import one_text, require_top, several_texts, texts_or_words
from heed.tasks.embedding import TokenVectors
from heed.tasks.predictor import AnswerOptions, Prediction, Predictor
from heed.tasks.reading import Reading
from heed.tasks.tagging.data import TagData
from heed.tasks.tagging.evaluation import evaluate_file, evaluate_valid
from heed.tasks.tagging.labels import TagLabels
from heed.tasks.tagging.prediction import prediction_of
from heed.tasks.tagging.reading import read
from heed.tasks.tagging.streams import answered
from heed.tasks.tagging.tagger import Tagger, Tagging
from heed.tasks.words import WordEncoder, Words
from heed.text.readers.lines import Errors
from heed.text.words import joined_words, split_words


class TaggingPredictor(Predictor):
    """A trained tagger."""

    abilities = frozenset({"predict", "annotate", "read", "embed"})
    run: Run

    @property
    def data(self) -> TagData:
        """The run's `[data]` table."""
        data: TagData = self.run.recipe.data
        return data

    @cached_property
    def labels(self) -> TagLabels:
        """The labels of the run."""
        return TagLabels.read(self.run.files)

    @cached_property
    def tagger(self) -> Tagger:
        """The model with its encoding of words."""
        encoder = WordEncoder(self.data, self.run.tokenizers["src"], self.labels)
        return Tagger(self.run.model, encoder, self.run.device)

    def predict(self, inputs: Sequence[Any], top: int = 1) -> list[list[Prediction]]:
        """Tag texts, which are split into words, or lists of words; with the `top` most probable taggings of each.

        The places of entities are characters of the text, or of the words joined by blanks.
        """
        require_top(top)
        given = texts_or_words(inputs)
        lines = [each if isinstance(each, str) else " ".join(each) for each in given]
        words = [split_words(each) if isinstance(each, str) else joined_words(each) for each in given]
        full = [Words([word.text for word in each]) for each in words if each]
        taggings = iter(self.tagger.taggings(full, top))
        return [
            [prediction_of(line, each, tagging) for tagging in (next(taggings) if each else [Tagging((), 1.0, ())])]
            for line, each in zip(lines, words, strict=True)
        ]

    def token_vectors(self, texts: Sequence[str]) -> list[TokenVectors]:
        """The features of the reader at each word of each text, as the tagger sees it."""
        words = [[word.text for word in split_words(text)] for text in several_texts(texts)]
        vectors = self.tagger.vectors([Words(each) for each in words])
        return [TokenVectors(each, table) for each, table in zip(words, vectors, strict=True)]

    def read(self, text: str) -> Reading:
        """The words of a text, its most probable taggings, the lattice of tags, and attention, if any."""
        return read(self.tagger, one_text(text))

    def annotate(self, groups: Iterable[Sequence[str]], options: AnswerOptions) -> Iterator[list[str]]:
        """Tag the lines of a CoNLL file or of plain text, which come in groups; yields the lines of output likewise."""
        return answered(groups, self.tagger, self.data.columns, options)

    def evaluate(self, table: Path, errors: Errors = "strict") -> Evaluation:
        """The scores on a CoNLL file with the columns of the training data."""
        return evaluate_file(self.run, self.tagger, table, self.data.errors_in_test(errors))

    def analyse(self, quiet: bool = False) -> Mapping[str, Any]:
        evaluation = evaluate_valid(self.run, self.tagger)
        return {**measured(evaluation), "by_label": list(evaluation.by_label)}

    def commands(self, name: str) -> Sequence[str]:
        return [
            f"heed predict {name} < in.conll > out.conll     # one token per line, or one sentence per line",
            f"heed predict {name} --json < in.txt",
            f"heed evaluate {name} --conll test.conll",
        ]

    def facts(self) -> Mapping[str, Any]:
        labels = self.labels
        return {"tags": len(labels.labels), "scheme": labels.written, "words that occur once": labels.num_singletons}
