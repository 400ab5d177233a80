"""The task of extractive answers: the span of a context that answers a question."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heed.core.run_files import RunFiles
from heed.data.batch import Ids
from heed.data.validation import read_valid
from heed.models import ReaderModel, build_model
from heed.nn.contract import State, Vocabularies
from heed.nn.dropout_keys import DropoutKeys
from heed.nn.reader_heads import ReaderWithHead
from heed.nn.span_head import SpanHead
from heed.tasks import prepare
from heed.tasks.defaults import Choices, CorpusStats, Machine
from heed.tasks.predictor import ALONE, Combination
from heed.tasks.reader_task import ReaderTask
from heed.tasks.span.answering import Answerer
from heed.tasks.span.batch import SpanBatch, collate
from heed.tasks.span.data import SpanData, SpanHeadConfig
from heed.tasks.span.defaults import choose_span_reader
from heed.tasks.span.evaluation import CHOICE, SCORES, statistics_of
from heed.tasks.span.predictor import SpanPredictor
from heed.tasks.span.prepare import SIDES, prepare_spans
from heed.tasks.span.rows import question_of
from heed.tasks.span.words import PairEncoder, SpanWords
from heed.tasks.task import Examination, Loss, Sample, Validation
from heed.tasks.words import LABELS, WordEncoder, trial_columns
from heed.text.doctor.findings import Diagnosis
from heed.text.doctor.questions import diagnose_questions
from heed.text.tokenizers import Tokenizer

EXPECTED = SpanWords(characters=tuple(map(chr, range(33, 127))))
"""For estimates before the characters are known."""
SHOWN = 300
"""Characters of a context that samples show."""


class SpanTask(ReaderTask):
    """From a question and a context to the answer in it."""

    name = "span"
    title = "Extractive answers"
    row = "question"
    Data = SpanData
    Head = SpanHeadConfig
    sides = SIDES
    metrics = (*SCORES, CHOICE)
    headline = ("exact match", "F1", "F1 of choices")
    refuses_unknown = False
    model_files = (LABELS,)

    # --- settings and preparation -----------------------------------------------------------------------

    @classmethod
    def fits(cls, model: Any) -> bool:
        return issubclass(model, ReaderModel) and model.source == "tokens"

    @classmethod
    def check(cls, recipe: Any, is_new: bool) -> None:
        super().check(recipe, is_new)
        training = recipe.training
        if training.label_smoothing:
            raise ValueError("spans have no label smoothing: set training.label_smoothing = 0")
        if recipe.data.overlap >= recipe.data.max_tokens:
            raise ValueError(
                "windows must be longer than the words that they share: set data.overlap below data.max_tokens"
            )

    @classmethod
    def shorter_texts(cls, most: int) -> Mapping[str, Any]:
        return {"data.max_tokens": most, "data.overlap": most // 3}

    @classmethod
    def examine(cls, data: SpanData, quiet: bool) -> Examination:
        data.require("table")
        valid = data.questions(data.valid_table) if data.valid_table else None
        return Examination(
            diagnose_questions(data.questions(data.table), valid, normaliser=data.normaliser, quiet=quiet)
        )

    @classmethod
    def defaults(cls, stats: CorpusStats, machine: Machine, given: Mapping[str, Any]) -> Choices:
        return choose_span_reader(stats, machine, given)

    @classmethod
    def prepare(
        cls, recipe: Any, folder: Path, diagnosis: Diagnosis, reuse: Mapping[str, Tokenizer] | None, quiet: bool
    ) -> prepare.Corpus:
        return prepare_spans(recipe, folder, diagnosis.num_pairs, reuse, quiet)

    @classmethod
    def vocabularies(cls, sizes: Mapping[str, int]) -> Vocabularies:
        return EXPECTED.vocabularies(sizes["src"])

    @classmethod
    def read_vocabularies(cls, files: RunFiles, tokenizers: Mapping[str, Tokenizer]) -> Vocabularies:
        return SpanWords.read(files).vocabularies(len(tokenizers["src"].vocabulary))

    @classmethod
    def new_model(cls, recipe: Any, vocabularies: Any) -> Any:
        reader: Any = build_model(recipe.model, vocabularies)
        head = recipe.head
        return ReaderWithHead(reader, SpanHead(reader.num_features, head.hidden_size, head.max_words, head.no_answer))

    # --- training on a prepared run folder --------------------------------------------------------------

    @cached_property
    def encoder(self) -> PairEncoder:
        """The encoding of questions and contexts."""
        data = self.recipe.data
        words = WordEncoder(data, self.tokenizers["src"], SpanWords.read(RunFiles(self.folder)))
        return PairEncoder(words, data.max_tokens, data.overlap, self.recipe.model.max_positions)

    def collate(self, ids: Mapping[str, Sequence[Ids]], rows: Sequence[int] | NDArray[np.int64]) -> SpanBatch:
        return collate(ids, rows)

    def loss(
        self, model: Any, batch: SpanBatch, dropout_keys: DropoutKeys | None, carried: State | None = None
    ) -> Loss:
        """-log p of the answers among all spans."""
        source, head = batch.source, model.head
        features = source.words.of_words(model.read(source.words, dropout_keys))
        scores = head(features, source.context, source.grid(head.max_words))
        loss = head.loss(scores, batch.answers, batch.weights)
        return Loss(loss, loss.detach())

    def validate(self, model: Any, metrics: Sequence[str]) -> Validation:
        """Exact match and F1 of the best answers, and F1 of choices."""
        rows = read_valid(self.folder)
        answerer = Answerer(model, self.encoder, self.device)
        questions = [question_of(row) for row in rows]
        outputs = [found[0].text for found in answerer.answers(questions)]
        has_choices = any(each.candidates for each in questions) or self.recipe.training.stop_metric == CHOICE
        statistics = statistics_of(outputs, questions, (*SCORES, *[CHOICE] * has_choices))
        samples = [
            Sample(f"{row[0]} {row[1][:SHOWN]}", output, row[-1])
            for row, output in zip(rows[:4], outputs[:4], strict=True)
        ]
        return Validation({name: each.score() for name, each in statistics.items()}, samples)

    def trial_batch(self, vocabularies: Vocabularies, length: float, processes: int) -> SpanBatch:
        """Random words of the average length in training batches of the usual size."""
        tokens_per_batch = self.recipe.training.tokens_per_batch
        words = max(4, min(round(length), tokens_per_batch, self.recipe.data.max_tokens) - 1)
        num_rows = max(1, tokens_per_batch // (words + 1))

        columns = trial_columns(vocabularies, num_rows, words)
        of_question = {"asked": [2], "answers": [3, 0], "candidates": []}
        return collate({**columns, **{name: [row] * num_rows for name, row in of_question.items()}}, range(num_rows))

    @classmethod
    def predictor(cls, run: Any, combined: Combination = ALONE) -> SpanPredictor:
        return SpanPredictor(run, combined)
