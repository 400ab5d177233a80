"""Task of word vectors: a text, the negative sampling loss of its words and their contexts.

The training loop is the one of all tasks. Gradients are sparse (`heed.nn.negative_sampling`), and each pair of words
makes a step of plain SGD, as in word2vec: `training.reduction = "sum"`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from heed.data.store import TokenStore
from heed.data.validation import read_valid
from heed.data.word_windows import InputRows, WindowBatch, WindowSampler, WordWindowLoader, batch_random
from heed.metrics import METRICS
from heed.metrics.metric import Score
from heed.models import MODELS
from heed.nn.contract import State, Vocabularies
from heed.nn.dropout_keys import DropoutKeys
from heed.nn.negative_sampling import negative_sampling_loss, pair_losses
from heed.tasks import prepare
from heed.tasks.defaults import Choices, CorpusStats, Machine
from heed.tasks.predictor import ALONE, Combination
from heed.tasks.task import Examination, Loader, Loss, Task, Validation, examine_text, refuse_settings_of_translation
from heed.tasks.word_vectors.data import WordText
from heed.tasks.word_vectors.defaults import choose_word_vectors
from heed.tasks.word_vectors.predictor import WordVectorPredictor, input_rows
from heed.tasks.word_vectors.prepare import SIDES, prepare_words
from heed.text.doctor.findings import Diagnosis
from heed.text.tokenizers import Tokenizer
from heed.text.vocabulary import SPECIAL_PIECES, UNK_ID

_LINES_AT_ONCE = 200
"""Validation lines in a batch."""


class WordVectorTask(Task):
    """Vectors of words, from the words around them."""

    name = "word-vectors"
    title = "Word vectors"
    Data = WordText
    sides = SIDES
    metrics = ("negative_sampling",)

    # --- settings and preparation -----------------------------------------------------------------------

    @classmethod
    def fits(cls, model: Any) -> bool:
        return hasattr(model, "windows")

    @classmethod
    def check(cls, recipe: Any, is_new: bool) -> None:
        training, ngrams = recipe.training, (recipe.model.min_ngram, recipe.model.max_ngram)
        if recipe.tokenizer.kind != "word":
            raise ValueError(f'word vectors need tokenizer.kind = "word", got {recipe.tokenizer.kind!r}')
        if ngrams[1] and ngrams[0] > ngrams[1]:
            raise ValueError(f"model.min_ngram = {ngrams[0]} is greater than model.max_ngram = {ngrams[1]}")
        if is_new:
            refuse_settings_of_translation(recipe)
        needed = {"optimizer": "sgd", "precision": "float32", "weight_decay": 0, "parallel": "data"}
        for key, value in needed.items() if not MODELS[recipe.model.kind].count_based else ():
            if getattr(training, key) != value:
                raise ValueError(f"word vectors have sparse gradients: set training.{key} = {value!r}")

    @classmethod
    def examine(cls, data: WordText, quiet: bool) -> Examination:
        return examine_text(data, quiet)

    @classmethod
    def defaults(cls, stats: CorpusStats, machine: Machine, given: Mapping[str, Any]) -> Choices:
        return choose_word_vectors(stats, given)

    @classmethod
    def prepare(
        cls, recipe: Any, folder: Path, diagnosis: Diagnosis, reuse: Mapping[str, Tokenizer] | None, quiet: bool
    ) -> prepare.Corpus:
        return prepare_words(recipe.data, recipe.tokenizer, recipe.seed, folder, diagnosis.num_pairs, reuse, quiet)

    # --- training on a prepared run folder --------------------------------------------------------------

    @property
    def tokenizer(self) -> Tokenizer:
        """The tokenizer of the text."""
        return self.tokenizers["tgt"]

    @cached_property
    def store(self) -> TokenStore:
        """The training text."""
        return prepare.open_tokens(self.folder)

    @cached_property
    def counts(self) -> NDArray[np.int64]:
        """Occurrences of each piece of the vocabulary in the training text; 0 for special pieces and unknown words."""
        ids, _ = self.store.all_tokens("tgt")
        counts = np.bincount(ids, minlength=len(self.tokenizer.vocabulary))
        counts[: len(SPECIAL_PIECES)] = 0
        return counts

    @cached_property
    def sampler(self) -> WindowSampler:
        """The sampler of the model's examples."""
        config = self.recipe.model
        rows = input_rows(self.tokenizer.vocabulary.pieces, config)
        model: Any = MODELS[config.kind]
        return WindowSampler(model.windows(config), self.counts, rows)

    def loader(self, tokens_per_batch: int, seed: int, rank: int = 0, world_size: int = 1, workers: int = 0) -> Loader:
        """Batches of examples, prepared by a thread."""
        ids, offsets = self.store.all_tokens("tgt")
        return WordWindowLoader(
            ids, offsets, self.sampler, words_per_batch=tokens_per_batch, seed=seed, rank=rank, world_size=world_size
        )

    def sequences(self) -> Iterable[Sequence[int]]:
        """The known words of all training lines."""
        for index in range(len(self.store)):
            row = self.store.row("tgt", index)
            yield row[row != UNK_ID]

    def loss(
        self, model: Any, batch: WindowBatch, dropout_keys: DropoutKeys | None, carried: State | None = None
    ) -> Loss:
        total = negative_sampling_loss(model.inputs, model.outputs, batch.bags, batch.targets)
        return Loss(total, total.detach())

    def validate(self, model: Any, metrics: Sequence[str]) -> Validation:
        """The loss per predicted word on the validation lines, with negatives that depend on nothing but the lines."""
        lines = self.tokenizer.encode([row[0] for row in read_valid(self.folder)])
        loss, number = 0.0, 0
        for index, part in enumerate(prepare.chunks(lines, _LINES_AT_ONCE)):
            ids = np.concatenate([*map(np.array, part)]).astype(np.int64)
            rows = np.repeat(np.arange(len(part)), [*map(len, part)])
            batch = self.sampler.batch(ids, rows, batch_random(0, 0, index)).to(model.outputs.device)
            with torch.no_grad():
                loss += float(pair_losses(model.inputs, model.outputs, batch.bags, batch.targets).sum())
            number += batch.num_targets
        options = self.sampler.options
        signature = f"unit:predicted word|n:{number}|negatives:{options.negatives}|window:{options.window}"
        title = METRICS["negative_sampling"].title
        return Validation({"negative_sampling": Score(title, loss / max(1, number), signature)})

    def trial_batch(self, vocabularies: Vocabularies, length: float, processes: int) -> WindowBatch:
        """Examples of random words; each counts as one target, though several words may be predicted from it."""
        config, size = self.recipe.model, self.recipe.training.tokens_per_batch
        counts = np.ones(vocabularies.tgt_size, dtype=np.int64)
        model: Any = MODELS[config.kind]
        sampler = WindowSampler(model.windows(config), counts, InputRows.of_words(len(counts)))
        random = batch_random(0, 0, 0)
        ids = (random.random_raw(size) % np.uint64(len(counts))).astype(np.int64)
        batch = sampler.batch(ids, np.arange(size) // max(2, round(length)), random)
        return replace(batch, num_targets=size)

    @classmethod
    def predictor(cls, run: Any, combined: Combination = ALONE) -> WordVectorPredictor:
        return WordVectorPredictor(run, combined)
