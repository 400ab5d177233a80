"""Tagging task: a tag for each word of a sentence, independent or by a linear-chain CRF; F1 of spans or accuracy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from heed.core.config import Config
from heed.core.run_files import RunFiles
from heed.data.batch import Ids
from heed.data.validation import read_valid
from heed.models import ReaderModel, build_model
from heed.nn.contract import State, Vocabularies
from heed.nn.dropout_keys import DropoutKeys
from heed.nn.reader_heads import ReaderWithHead
from heed.nn.tag_head import TAG_HEADS
from heed.tasks import prepare
from heed.tasks.defaults import Choices, CorpusStats, Machine
from heed.tasks.predictor import ALONE, Combination
from heed.tasks.reader_task import ReaderTask
from heed.tasks.tagging.batch import TagBatch, collate
from heed.tasks.tagging.data import TagData
from heed.tasks.tagging.defaults import choose_tagger
from heed.tasks.tagging.evaluation import marked_text, statistics_of
from heed.tasks.tagging.labels import TagLabels, TagVocabularies
from heed.tasks.tagging.predictor import TaggingPredictor
from heed.tasks.tagging.prepare import SIDES, prepare_tagging, words_of
from heed.tasks.tagging.tagger import Tagger
from heed.tasks.task import Examination, Loss, Sample, Validation
from heed.tasks.words import LABELS, WordEncoder, random_ids, trial_columns
from heed.text.doctor.findings import Diagnosis
from heed.text.doctor.tags import diagnose_conll_files
from heed.text.tokenizers import Tokenizer

EXPECTED_LABELS = TagLabels(labels=tuple(map(str, range(20))), scheme="plain", written="plain")
"""For estimates before the labels are known."""


class TagHeadConfig(Config):
    """The head of a tagger."""

    kind: Literal["crf", "softmax"] = "crf"
    """Tags that depend on their neighbours (a linear-chain CRF), or independent ones."""


class TaggingTask(ReaderTask):
    """Prediction of the tag of each word."""

    name = "tagging"
    title = "Tagger"
    row = "sentence"
    Data = TagData
    Head = TagHeadConfig
    sides = SIDES
    metrics = ("entity_f1", "tag_accuracy")
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
        if training.label_smoothing and recipe.head.kind == "crf":
            raise ValueError('a CRF has no label smoothing: set training.label_smoothing = 0 or head.kind = "softmax"')
        if training.label_smoothing and training.smoothing_kind != "uniform":
            raise ValueError('tags are smoothed with training.smoothing_kind = "uniform"')
        if is_new:
            cls.require_positions(recipe)

    @classmethod
    def examine(cls, data: TagData, quiet: bool) -> Examination:
        data.require("conll")
        valid = data.resolve(data.valid_conll) if data.valid_conll else None
        return Examination(
            diagnose_conll_files(
                data.resolve(data.conll),
                valid,
                columns=data.columns,
                errors=data.errors,
                normaliser=data.normaliser,
                quiet=quiet,
            )
        )

    @classmethod
    def defaults(cls, stats: CorpusStats, machine: Machine, given: Mapping[str, Any]) -> Choices:
        return choose_tagger(stats, machine, given)

    @classmethod
    def prepare(
        cls, recipe: Any, folder: Path, diagnosis: Diagnosis, reuse: Mapping[str, Tokenizer] | None, quiet: bool
    ) -> prepare.Corpus:
        data, number = recipe.data, diagnosis.num_pairs
        return prepare_tagging(data, recipe.tokenizer, recipe.seed, folder, number, reuse, quiet)

    @classmethod
    def vocabularies(cls, sizes: Mapping[str, int]) -> Vocabularies:
        return TagVocabularies(
            sizes["src"], len(EXPECTED_LABELS.labels), num_characters=100, num_marks=2, labels=EXPECTED_LABELS
        )

    @classmethod
    def read_vocabularies(cls, files: RunFiles, tokenizers: Mapping[str, Tokenizer]) -> Vocabularies:
        return TagVocabularies.of(len(tokenizers["src"].vocabulary), TagLabels.read(files))

    @classmethod
    def new_model(cls, recipe: Any, vocabularies: Any) -> Any:
        reader: Any = build_model(recipe.model, vocabularies)
        return ReaderWithHead(reader, TAG_HEADS[recipe.head.kind](reader.num_features, vocabularies.labels.legal()))

    # --- training on a prepared run folder --------------------------------------------------------------

    @cached_property
    def labels(self) -> TagLabels:
        """The labels of the run."""
        return TagLabels.read(RunFiles(self.folder))

    @cached_property
    def encoder(self) -> WordEncoder[TagLabels]:
        """The encoding of words."""
        return WordEncoder(self.recipe.data, self.tokenizers["src"], self.labels)

    def collate(self, ids: Mapping[str, Sequence[Ids]], rows: Sequence[int] | NDArray[np.int64]) -> TagBatch:
        return collate(ids, rows)

    def loss(self, model: Any, batch: TagBatch, dropout_keys: DropoutKeys | None, carried: State | None = None) -> Loss:
        features = batch.source.of_words(model.read(batch.source, dropout_keys))
        loss, nll = model.head.loss(features, batch.tags, batch.source.words, self.recipe.training.smoothing)
        return Loss(loss, nll)

    def validate(self, model: Any, metrics: Sequence[str]) -> Validation:
        """F1, precision and recall of spans, and accuracy; of plain tags accuracy alone."""
        rows = read_valid(self.folder)
        tagger = Tagger(model, self.encoder, self.device)
        outputs = [" ".join(tags) for tags in tagger.tags([words_of(row) for row in rows])]
        written = self.labels.written
        statistics = statistics_of(outputs, [row[1] for row in rows], written)
        samples = [
            Sample(row[0], *(marked_text(row, tags.split(), written) for tags in (output, row[1])))
            for row, output in zip(rows[:2], outputs[:2], strict=True)
        ]
        return Validation({name: each.score() for name, each in statistics.items()}, samples)

    def trial_batch(self, vocabularies: Vocabularies, length: float, processes: int) -> TagBatch:
        """Random words of the average length in training batches of the usual size."""
        tokens_per_batch = self.recipe.training.tokens_per_batch
        words = max(1, min(round(length), tokens_per_batch) - 1)
        num_rows = max(1, tokens_per_batch // (words + 1))

        columns = trial_columns(vocabularies, num_rows, words)
        return collate({**columns, "tags": random_ids(vocabularies.tgt_size, num_rows, words)}, range(num_rows))

    @classmethod
    def predictor(cls, run: Any, combined: Combination = ALONE) -> TaggingPredictor:
        return TaggingPredictor(run, combined)
