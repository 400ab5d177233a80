"""The task of classification: one label, several labels or a number for each text or pair of texts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from jaxtyping import Float, Int
from numpy.typing import NDArray
from torch import Tensor

from heed.core.run_files import RunFiles
from heed.data.batch import Ids, SourceBatch
from heed.data.validation import VALID, Row, read_valid
from heed.metrics.metric import Score
from heed.models import ReaderModel, build_model
from heed.models.linear import LinearNgrams
from heed.nn.contract import Source, State, Vocabularies
from heed.nn.dropout_keys import DropoutKeys
from heed.nn.pooling import PoolingHead
from heed.nn.reader_heads import ReaderWithHead
from heed.tasks import prepare
from heed.tasks.classification.answer import ANSWER, BOTH, combinations
from heed.tasks.classification.answer import Combination as Answer
from heed.tasks.classification.data import HeadConfig, TableData
from heed.tasks.classification.defaults import choose_classifier
from heed.tasks.classification.labels import LABELS, Labels
from heed.tasks.classification.linear_part import (
    HELD_OUT,
    LINEAR,
    fit_linear,
    outputs_on_valid,
    read_linear,
    write_held_out,
)
from heed.tasks.classification.predictor import ClassificationPredictor
from heed.tasks.classification.prepare import (
    SIDES,
    examples,
    prepare_classifier,
    targets_of,
)
from heed.tasks.classification.reading import Encoding, neural_outputs, outputs_of
from heed.tasks.classification.rows import split
from heed.tasks.classification.scores import METRICS_OF, scores_of
from heed.tasks.defaults import Choices, CorpusStats, Machine
from heed.tasks.predictor import ALONE, Combination
from heed.tasks.reader_task import ReaderTask
from heed.tasks.task import Examination, Loss, Validation
from heed.text.doctor.findings import Diagnosis
from heed.text.doctor.tables import diagnose_table
from heed.text.tokenizers import Tokenizer

LOSS = "log_loss"


@dataclass(frozen=True)
class LabelledBatch(SourceBatch):
    """Texts with their targets."""

    source: Source
    targets: Float[Tensor, "B K"]
    rows: Int[Tensor, " B"]

    @property
    def num_targets(self) -> int:
        return len(self.rows)

    def part(self, rows: slice) -> LabelledBatch:
        return LabelledBatch(self.source.part(rows), self.targets[rows], self.rows[rows])


class ClassificationTask(ReaderTask):
    """From a text to its label, labels or number."""

    name = "classification"
    title = "Classifier"
    row = "text"
    targets = "texts"
    Data = TableData
    Head = HeadConfig
    sides = SIDES
    model_files = (LABELS, ANSWER, LINEAR, HELD_OUT)
    metrics = ("log_loss", *dict.fromkeys(name for names in METRICS_OF.values() for name in names))

    # --- settings and preparation -----------------------------------------------------------------------

    @classmethod
    def fits(cls, model: Any) -> bool:
        return issubclass(model, ReaderModel | LinearNgrams)

    @classmethod
    def check(cls, recipe: Any, is_new: bool) -> None:
        super().check(recipe, is_new)
        answer, metric = recipe.data.answer, recipe.training.stop_metric
        if answer != "auto" and metric not in (LOSS, *METRICS_OF[answer]):
            allowed = " or ".join(f'"{name}"' for name in (LOSS, *METRICS_OF[answer]))
            raise ValueError(f'data.answer = "{answer}" needs training.stop_metric = {allowed}, got "{metric}"')
        if is_new:
            cls.require_positions(recipe)

    @classmethod
    def examine(cls, data: TableData, quiet: bool) -> Examination:
        data.require("table")
        valid = data.labelled(data.valid_table) if data.valid_table else None
        return Examination(
            diagnose_table(
                data.labelled(data.table), valid, errors=data.errors, normaliser=data.normaliser, quiet=quiet
            )
        )

    @classmethod
    def defaults(cls, stats: CorpusStats, machine: Machine, given: Mapping[str, Any]) -> Choices:
        return choose_classifier(stats, machine, given)

    @classmethod
    def prepare(
        cls, recipe: Any, folder: Path, diagnosis: Diagnosis, reuse: Mapping[str, Tokenizer] | None, quiet: bool
    ) -> prepare.Corpus:
        corpus = prepare_classifier(recipe, folder, diagnosis, reuse, quiet)
        if recipe.head.linear and recipe.model.kind != "linear":
            fit_linear(recipe, folder, quiet)
        return corpus

    @classmethod
    def vocabularies(cls, sizes: Mapping[str, int]) -> Vocabularies:
        return Vocabularies(sizes["src"], 2)  # the number of labels hardly changes the time

    @classmethod
    def read_vocabularies(cls, files: RunFiles, tokenizers: Mapping[str, Tokenizer]) -> Vocabularies:
        return Vocabularies(len(tokenizers["src"].vocabulary), len(Labels.read(files)))

    @classmethod
    def new_model(cls, recipe: Any, vocabularies: Vocabularies) -> Any:
        model = build_model(recipe.model, vocabularies)
        if model.count_based:
            return model
        head = recipe.head
        return ReaderWithHead(model, PoolingHead(model.num_features, vocabularies.tgt_size, head.pooling, head.dropout))

    # --- training on a prepared run folder --------------------------------------------------------------

    @cached_property
    def labels(self) -> Labels:
        """The labels of the run."""
        return Labels.read(RunFiles(self.folder))

    @cached_property
    def encoding(self) -> Encoding:
        """How texts become what the model reads."""
        return Encoding.of(self.recipe)

    @cached_property
    def valid(self) -> list[Row]:
        """The validation rows."""
        return read_valid(self.folder)

    def collate(self, ids: Mapping[str, Sequence[Ids]], rows: Sequence[int] | NDArray[np.int64]) -> LabelledBatch:
        targets = self.labels.targets(cast(Any, ids["label"]))
        return LabelledBatch(
            self.encoding.source(ids["src"]), targets, torch.from_numpy(np.array(rows, dtype=np.int64))
        )

    def sequences(self) -> Iterable[Sequence[int]]:
        """The texts and targets that a linear model is estimated from (`heed.models.linear.Examples`)."""
        return cast(Iterable[Sequence[int]], examples(self.recipe, self.labels, self.valid))

    def loss(self, model: Any, batch: Any, dropout_keys: DropoutKeys | None, carried: State | None = None) -> Loss:
        """-log p of the targets; for one of several labels, with label smoothing."""
        outputs = outputs_of(model, batch.source, dropout_keys).float()
        link, targets = self.labels.link, batch.targets
        nll = link.full_loss(outputs, targets)
        epsilon = self.recipe.training.label_smoothing
        if not epsilon or self.labels.kind != "label":
            return Loss(nll, nll.detach())
        smooth = (1 - epsilon) * targets + epsilon / targets.shape[1]
        return Loss(link.full_loss(outputs, smooth), nll.detach())

    def trial_batch(self, vocabularies: Vocabularies, length: float, processes: int) -> LabelledBatch:
        size = max(2, min(round(length), self.recipe.data.max_tokens))
        rows = max(1, self.recipe.training.tokens_per_batch // size)
        ids = self.encoding.trial(rows, size - 1, vocabularies.src_size)
        targets = torch.nn.functional.one_hot(torch.arange(rows) % vocabularies.tgt_size, vocabularies.tgt_size)
        self.__dict__["labels"] = Labels("label", ("0", "1"))
        return LabelledBatch(self.encoding.source(ids), targets.float(), torch.arange(rows))

    # --- validation -------------------------------------------------------------------------------------

    @cached_property
    def valid_targets(self) -> Tensor:
        """Targets of the validation rows."""
        return targets_of(self.labels, [row[-1] for row in self.valid])

    @cached_property
    def linear_outputs(self) -> Tensor | None:
        """Outputs of the linear model for the validation rows, if the run has one."""
        model = read_linear(self.folder, len(self.labels))
        return outputs_on_valid(self.folder, model, [split(row)[0] for row in self.valid]) if model else None

    def validate(self, model: Any, metrics: Sequence[str]) -> Validation:
        """Scores of the best combination of the linear and the neural part, which is kept with the weights."""
        link = self.labels.link
        texts = [split(row)[0] for row in self.valid]
        parts: dict[str, Tensor] = {}
        if model.count_based:
            write_held_out(self.folder, model)
            parts["linear"] = outputs_on_valid(self.folder, model, texts)
        else:
            if self.linear_outputs is not None:
                parts["linear"] = self.linear_outputs
            ids = self.encoding.encode(texts, self.tokenizers["src"])
            parts["neural"] = neural_outputs(model, self.encoding, ids, self.device)
        references = [row[-1] for row in self.valid]
        tried = [self._tried(answer, parts, references) for answer in combinations(link, parts, self.valid_targets)]
        name = METRICS_OF[self.labels.kind][0]
        best = max(tried, key=lambda each: each.scores[name].value)  # of equal ones the first, which is the simplest
        self.answer = best.answer
        of_parts = [(each.answer.name, each.scores[name]) for each in tried if each.answer.name != BOTH]
        alone = {f"{name}_{part}": replace(score, name=f"{score.name} ({part})") for part, score in of_parts}
        loss = Score("-log p per text", min(each.loss for each in tried), f"unit:nat|n:{len(texts)}")
        if model.count_based:
            self.weights_changed()
        return Validation({**best.scores, **(alone if len(alone) > 1 else {}), LOSS: loss})

    def _tried(self, answer: Answer, parts: Mapping[str, Tensor], references: Sequence[str]) -> _Tried:
        outputs = answer.outputs(parts)
        answers = [self.labels.answer(row) for row in self.labels.link.probabilities(outputs).tolist()]
        loss = float(self.labels.link.full_loss(outputs, self.valid_targets)) / len(references)
        return _Tried(answer, scores_of(self.labels.kind, answers, references), loss)

    answer: Answer | None = None
    """The combination of the last validation."""

    def weights_changed(self) -> None:
        """Keep the combination that belongs to the weights that were just saved."""
        if self.answer is not None:
            self.answer.write(RunFiles(self.folder))

    def refit(self, model: Any) -> None:
        if RunFiles(self.folder).has(VALID):
            self.validate(model, ())
            self.weights_changed()

    # --- prediction -------------------------------------------------------------------------------------

    @classmethod
    def predictor(cls, run: Any, combined: Combination = ALONE) -> ClassificationPredictor:
        return ClassificationPredictor(run, combined)


@dataclass(frozen=True)
class _Tried:
    """A combination with its scores on the validation data."""

    answer: Answer
    scores: Mapping[str, Score]
    loss: float
