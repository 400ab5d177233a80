"""A task from outside heed: the number of words of a line."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from heed.data.batch import SourceBatch, source_from_ids
from heed.data.loader import BatchLoader
from heed.data.store import TokenStore, write_store
from heed.data.validation import Row, read_valid, write_valid
from heed.evaluation.evaluation import Evaluation
from heed.evaluation.test_set import HeldOut
from heed.metrics.metric import OutputMetric, Rows, Score
from heed.nn.contract import Source, Vocabularies
from heed.tasks import prepare
from heed.tasks.data import DataConfig
from heed.tasks.defaults import Choices, CorpusStats, Machine, held_out
from heed.tasks.predictor import ALONE, Combination, Prediction, Predictor
from heed.tasks.task import Examination, Loss, Sample, Task, Validation
from heed.text.doctor.files import diagnose_text_files
from heed.text.readers import Errors, fingerprint_file, read_text
from heed.text.vocabulary import Vocabulary

MOST = 10
"""Words from which lines are not told apart."""
ANSWERS = (*map(str, range(MOST)), f"{MOST} or more")


def label_of(line: str) -> int:
    return min(len(line.split()), MOST)


class LineData(DataConfig):
    """Lines to count the words of."""

    path_keys = ("text",)
    text: str = ""
    """One text a line."""

    @property
    def holds_out(self) -> bool:
        return True


@dataclass(frozen=True)
class CountBatch(SourceBatch):
    """Lines with their numbers of words."""

    source: Source
    labels: Tensor
    rows: Tensor

    @property
    def num_targets(self) -> int:
        return len(self.labels)

    def part(self, rows: slice) -> CountBatch:
        return CountBatch(self.source.part(rows), self.labels[rows], self.rows[rows])


def collate(ids: Mapping[str, Sequence[Any]], rows: Any) -> CountBatch:
    labels = torch.tensor([int(row[0]) for row in ids["label"]])
    source = source_from_ids(ids["src"], Vocabulary.eos_id, Vocabulary.pad_id)
    return CountBatch(source, labels, torch.from_numpy(np.array(rows, dtype=np.int64)))


class CountWords(Task):
    """From a line to its number of words, of which ten or more are one answer."""

    name = "count-words"
    title = "Word counter"
    Data = LineData
    sides = ("src",)
    metrics = ("share_right",)

    @classmethod
    def fits(cls, model: Any) -> bool:
        return hasattr(model, "read")

    @classmethod
    def examine(cls, data: Any, quiet: bool) -> Examination:
        return Examination(diagnose_text_files(data.resolve(data.text), None, errors=data.errors, quiet=quiet))

    @classmethod
    def defaults(cls, stats: CorpusStats, machine: Machine, given: Mapping[str, Any]) -> Choices:
        chosen = {**held_out(stats, given), "training.stop_metric": ("share_right", "the only score")}
        left = {key: choice for key, choice in chosen.items() if key not in given}
        return Choices({k: v for k, (v, _) in left.items()}, {k: why for k, (_, why) in left.items()})

    @classmethod
    def prepare(cls, recipe: Any, folder: Path, diagnosis: Any, reuse: Any, quiet: bool) -> prepare.Corpus:
        data, number = recipe.data, diagnosis.num_pairs

        def rows(held: bool) -> Iterator[Row]:
            lines = ((line, ANSWERS[label_of(line)]) for line in read_text(data.resolve(data.text)))
            return prepare.split_rows(lines, number, data.num_held_out, recipe.seed, held)

        valid = list(rows(held=True))
        write_valid(folder, valid)
        texts = lambda: ((line,) for line, _ in rows(held=False))  # noqa: E731
        tokenizers = reuse or prepare.train_tokenizers(recipe.tokenizer, cls.sides, texts, number, folder)
        tokenizer, files = tokenizers["src"], {"text": fingerprint_file(data.resolve(data.text))}
        ids = ((tokenizer.encode([line])[0], [label_of(line)]) for line, _ in rows(held=False))
        store = write_store(
            folder / "data" / "train", ("src", "label"), ids, (len(tokenizer.vocabulary), len(ANSWERS)),
            {"files": {}, **prepare.vocabulary_digests(tokenizers)},
        )  # fmt: skip
        corpus = prepare.Corpus(len(store), len(valid), {}, files)
        prepare.write_corpus(folder, corpus)
        return corpus

    @classmethod
    def vocabularies(cls, sizes: Mapping[str, int]) -> Vocabularies:
        return Vocabularies(sizes["src"], len(ANSWERS))

    def loader(self, tokens_per_batch: int, seed: int, rank: int = 0, world_size: int = 1, workers: int = 0) -> Any:
        store = TokenStore.open(self.folder / "data" / "train")
        return BatchLoader(
            store, collate, tokens_per_batch=tokens_per_batch, seed=seed, rank=rank, world_size=world_size,
            workers=workers,
        )  # fmt: skip

    def text_of(self, row: int) -> str:
        ids = TokenStore.open(self.folder / "data" / "train").row("src", row).tolist()
        return self.tokenizers["src"].decode([ids])[0]

    def loss(self, model: Any, batch: Any, dropout_keys: Any, carried: Any = None) -> Loss:
        nll = torch.nn.functional.cross_entropy(model.read(batch.source), batch.labels, reduction="sum")
        return Loss(nll, nll.detach())

    def validate(self, model: Any, metrics: Sequence[str]) -> Validation:
        rows = read_valid(self.folder)
        outputs = [
            answers[0].text for answers in predictions(model, self.tokenizers["src"], [row[0] for row in rows], 1)
        ]
        return Validation(share_right(outputs, rows), [Sample(rows[0][0], outputs[0], rows[0][1])])

    @classmethod
    def predictor(cls, run: Any, combined: Combination = ALONE) -> Predictor:
        return WordCounter(run, combined)


@dataclass(frozen=True)
class ShareRight(OutputMetric):
    """Share of answers that are right."""

    name = "share_right"
    title = "share right"

    def counts(self, outputs: Sequence[str], references: Sequence[str]) -> Rows:
        return [[float(a == b), 1.0] for a, b in zip(outputs, references, strict=True)]

    def value(self, totals: NDArray[np.float64]) -> float:
        return float(totals[0] / totals[1])


def share_right(outputs: Sequence[str], rows: Sequence[Row]) -> dict[str, Score]:
    return {"share_right": ShareRight().score(outputs, [row[1] for row in rows])}


def predictions(model: Any, tokenizer: Any, lines: Sequence[str], top: int) -> list[list[Prediction]]:
    source = source_from_ids(tokenizer.encode(list(lines)), Vocabulary.eos_id, Vocabulary.pad_id)
    with torch.no_grad():
        probabilities, labels = model.read(source).softmax(-1).topk(min(top, len(ANSWERS)))
    return [
        [Prediction(ANSWERS[label], p) for label, p in zip(*row, strict=True)]
        for row in zip(labels.tolist(), probabilities.tolist(), strict=True)
    ]


class WordCounter(Predictor):
    """A trained word counter."""

    def predict(self, inputs: Sequence[str], top: int = 1) -> list[list[Prediction]]:
        return predictions(self.run.model, self.run.tokenizers["src"], inputs, top)

    def evaluate(self, table: Path, errors: Errors = "strict") -> Evaluation:
        rows = [(line, ANSWERS[label_of(line)]) for line in read_text(table, errors)]
        outputs = [answers[0].text for answers in self.predict([row[0] for row in rows])]
        return Evaluation(str(self.run.folder), HeldOut((table.name,), rows), self.run, share_right(outputs, rows))
