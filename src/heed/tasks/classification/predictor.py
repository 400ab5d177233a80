"""Predictor of classifiers: labels with probabilities, evaluation on tables, analysis of the validation data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from heed.core.errors import MissingInputError, UsageError
from heed.core.run_files import RESTORE
from heed.models.linear import LinearNgrams
from heed.tasks.arguments import one_text, require_top, several_texts
from heed.tasks.classification.answer import Combination as Answer
from heed.tasks.classification.attending import attended_sentences
from heed.tasks.classification.explaining import explain
from heed.tasks.classification.labels import THRESHOLD, Labels
from heed.tasks.classification.linear_part import LINEAR, outputs_on_valid, read_linear
from heed.tasks.classification.reading import Encoding, neural_outputs
from heed.tasks.classification.scoring import analyse, evaluate_table, open_test
from heed.tasks.classification.text_reading import read
from heed.tasks.embedding import TokenVectors, vectors_of_ids
from heed.tasks.predictor import AttendedSentence, Explanation, Prediction, Predictor
from heed.tasks.prepare import chunks
from heed.tasks.reading import Reading
from heed.text.readers.corpus import format_of
from heed.text.readers.labelled import cells_of
from heed.text.readers.lines import Errors

Texts = tuple[str, ...]


def _cells(answer: Prediction, with_probability: bool) -> list[str]:
    """An answer and, if asked, its probability."""
    probability = "" if answer.probability is None else f"{answer.probability:.4f}"
    return [answer.text, probability][: 1 + with_probability]


class ClassificationPredictor(Predictor):
    """A trained classifier."""

    abilities = frozenset({"predict", "explain", "read", "embed"})

    @cached_property
    def labels(self) -> Labels:
        """The labels of the run."""
        return Labels.read(self.run.files)

    @cached_property
    def answer(self) -> Answer:
        """How the parts are combined."""
        default = "linear" if self.run.recipe.model.kind == "linear" else "neural"
        return Answer.read(self.run.files) or Answer(default, {default: 1.0})

    @cached_property
    def linear(self) -> LinearNgrams | None:
        """The linear model, if the run has one. Raises MissingInputError if the answers need it and it was lost."""
        if self.run.recipe.model.kind == "linear":
            model: LinearNgrams = self.run.model
            return model
        linear = read_linear(self.run.folder, len(self.labels))
        if linear is None and "linear" in self.answer.factors:
            raise MissingInputError(f"{self.run.folder / LINEAR} is missing. {RESTORE}")
        return linear

    def can(self, ability: str) -> bool:
        has_vectors = self.run.recipe.model.kind != "linear" and not self.encoding.as_documents
        return super().can(ability) and (ability != "embed" or has_vectors)

    @property
    def encoding(self) -> Encoding:
        """How texts become what the neural part reads."""
        return Encoding.of(self.run.recipe)

    @property
    def num_texts(self) -> int:
        """Texts of a row: 1, or 2 of pairs."""
        return (
            max(1, len(self.labels.columns) - 1) if self.labels.columns else len(self.run.recipe.data.text_column) or 1
        )

    def open(self) -> None:
        """Read the parts that are used."""
        for name in self.answer.factors:
            _ = self.linear if name == "linear" else self.run.model

    def warm_up(self) -> None:
        self.predict_texts([("1",) * self.num_texts])

    def predict(self, inputs: Sequence[str], top: int = 1) -> list[list[Prediction]]:
        """The `top` most probable labels of each text, the likeliest first; the texts of a pair are separated by a tab.

        Several labels at once are one answer, a JSON list, unless `top` is more than 1. A number has no probability.
        """
        return self.predict_texts([self.split(line) for line in several_texts(inputs)], top)

    def predict_texts(self, texts: Sequence[Texts], top: int = 1) -> list[list[Prediction]]:
        """As `predict`, for texts or pairs."""
        require_top(top)
        if not texts:
            return []
        return [self._predictions(row, top) for row in self.probabilities(texts).tolist()]

    def split(self, line: str) -> Texts:
        """The texts of a line. Raises UsageError for a wrong number of them, and for what is not a line."""
        line = one_text(line)
        texts = tuple(line.split("\t")) if self.num_texts > 1 else (line,)
        if len(texts) != self.num_texts:
            raise UsageError(f"expected {self.num_texts} texts separated by tabs, got {len(texts)}: {line[:80]!r}.")
        return texts

    def _predictions(self, probabilities: Sequence[float], top: int) -> list[Prediction]:
        labels = self.labels
        if labels.kind == "number":
            return [Prediction(labels.answer(probabilities))]
        if labels.kind == "labels" and top == 1:
            chosen = [p for p in probabilities if p > THRESHOLD]
            return [Prediction(labels.answer(probabilities), min(chosen, default=1 - max(probabilities)))]
        order = sorted(range(len(probabilities)), key=lambda at: -probabilities[at])
        return [Prediction(labels.names[at], probabilities[at]) for at in order[:top]]

    def probabilities(self, texts: Sequence[Texts]) -> Tensor:
        """The probability of each label [N, K]; the number in units of its deviation."""
        normalise = self.run.recipe.data.normaliser.apply
        return self.labels.link.probabilities(self.outputs([tuple(map(normalise, row)) for row in texts]))

    def outputs(self, texts: Sequence[Texts]) -> Tensor:
        """The combined outputs [N, K] for normalised texts."""
        return self.answer.outputs(self.parts(texts))

    @torch.no_grad()
    def parts(self, texts: Sequence[Texts], names: Sequence[str] | None = None) -> dict[str, Tensor]:
        """The outputs of each part that is used, or of those in `names`."""
        parts = {}
        names = list(self.answer.factors) if names is None else names
        if "linear" in names and self.linear is not None:
            parts["linear"] = self.linear.logits(texts)
        if "neural" in names:
            ids = self.encoding.encode(texts, self.tokenizers["src"])
            parts["neural"] = neural_outputs(self.run.model, self.encoding, ids, self.run.device)
        return parts

    def parts_on_valid(self, texts: Sequence[Texts]) -> dict[str, Tensor]:
        """The outputs of each part that the run has for its validation texts, as if no part had been fitted on them."""
        parts = self.parts(texts, ["neural"] if self.run.recipe.model.kind != "linear" else [])
        if self.linear is not None:
            parts["linear"] = outputs_on_valid(self.run.folder, self.linear, texts)
        return parts

    def explain(self, text: str) -> Explanation:
        """The words and n-grams that the most probable label of a text rests on."""
        return self.explain_texts(self.split(text))

    def explain_texts(self, texts: Texts) -> Explanation:
        """As `explain`, for a text or a pair."""
        return replace(explain(self, texts), sentences=attended_sentences(self, texts))

    def attend(self, text: str) -> tuple[AttendedSentence, ...]:
        """The attention to sentences and words, if the answer uses a reader that has both."""
        return attended_sentences(self, self.split(text))

    def read(self, text: str) -> Reading:
        """The words of a text, the probability of each label, what the likeliest rests on, and attention, if any."""
        return read(self, self.split(text))

    def require_probabilities(self) -> None:
        if self.labels.kind == "number":
            raise UsageError(f"{self.run.folder} predicts numbers, which have no probabilities.")

    def predict_table(
        self, table: Path, top: int = 1, probabilities: bool = False, errors: Errors = "strict"
    ) -> Iterator[str]:
        """The rows of a table, as CSV (a TSV stays one), with columns for the answers.

        Texts are read from the columns with the headings of the training table. A row without a text has empty answers.
        """
        require_top(top)
        opened = open_test(self, table, errors, with_labels=False)
        separator = "\t" if format_of(table) == "tsv" else ","
        names = [f"prediction{number or ''}" for number in [0, *range(2, top + 1)]]
        heads = [cell for name in names for cell in (name, f"{name} probability")[: 1 + probabilities]]
        if opened.heading is not None:
            yield cells_of([*opened.heading, *heads], separator)
        width = len(opened.heading or ())
        for rows in chunks(opened.rows, 1024):
            width = width or len(rows[0].cells)
            found = iter(self.predict_texts([row.texts for row in rows if all(map(str.strip, row.texts))], top))
            for row in rows:
                answers = next(found) if all(map(str.strip, row.texts)) else []
                cells = [cell for answer in answers for cell in _cells(answer, probabilities)]
                own = [*row.cells[:width], *[""] * (width - len(row.cells))]  # a row may lack its last cells
                yield cells_of([*own, *cells, *[""] * (len(heads) - len(cells))], separator)

    def token_vectors(self, texts: Sequence[str]) -> list[TokenVectors]:
        """The features of the reader at each token of each text; those of a pair follow each other.

        A text is cut where the classifier cuts it (`data.max_tokens`).
        """
        self.require("embed")
        normalise, tokenizer = self.run.recipe.data.normaliser.apply, self.tokenizers["src"]
        rows = [self.split(text) if text else ("",) * self.num_texts for text in several_texts(texts)]
        ids = self.encoding.encode([tuple(map(normalise, row)) for row in rows], tokenizer)
        return vectors_of_ids(self.run.model.reader, tokenizer, ids, self.run.device)

    def word_vectors(self, words: Sequence[str]) -> NDArray[np.float32]:
        """As for other predictors; of pairs, the word is the first text and the second one is empty."""
        empty = "\t" * (self.num_texts - 1)
        return self.embed([f" {word}{empty}" for word in several_texts(words)])

    # --- evaluation -------------------------------------------------------------------------------------

    def evaluate(self, table: Path, errors: Errors = "strict") -> Any:
        """Score the run on a table of texts and labels."""
        return evaluate_table(self, table, self.run.recipe.data.errors_in_test(errors))

    def analyse(self, quiet: bool = False) -> Mapping[str, Any]:
        """Scores of the linear part, the neural one and both on the validation data, errors and calibration."""
        return analyse(self)

    def commands(self, name: str) -> Sequence[str]:
        return [
            f"heed predict {name} < texts.txt > labels.txt",
            f"heed predict {name} --table new.csv > predicted.csv",
            f"heed evaluate {name} --table test.csv",
        ]

    def facts(self) -> Mapping[str, Any]:
        labels = self.labels
        facts: dict[str, Any] = {"answer": labels.kind}
        if labels.kind != "number":
            facts["labels"] = ", ".join(labels.names[:10]) + (", …" if len(labels.names) > 10 else "")
        factors = ", ".join(f"{name} × {factor:.3g}" for name, factor in self.answer.factors.items())
        return {**facts, "uses": f"{self.answer.name} ({factors})"}
