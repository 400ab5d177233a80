"""Language modelling task: a text, cross-entropy of each token given those before it, perplexity.

A text consists of independent lines, of one stream whose state is carried from batch to batch, or of independent
windows of that stream (`data.text_as`). The end of each line is predicted too.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from heed.data.batch import Batch
from heed.data.text_stream import StreamLoader, TextStream, WindowLoader
from heed.data.validation import read_valid
from heed.decoding.scoring import MAX_SCORED_TOKENS, Reader, TextScorer, make_reader
from heed.metrics import score_likelihoods
from heed.metrics.metric import Score
from heed.models import MODELS
from heed.nn.contract import Autoregressive, Vocabularies
from heed.tasks import prepare
from heed.tasks.defaults import Choices, CorpusStats, Machine
from heed.tasks.generation import GenerationTask, random_batch
from heed.tasks.language_model.data import TextData
from heed.tasks.language_model.defaults import choose_language_model
from heed.tasks.language_model.predictor import LanguageModelPredictor
from heed.tasks.language_model.prepare import SIDES, prepare_language_model
from heed.tasks.predictor import ALONE, Combination
from heed.tasks.task import Examination, Loader, Validation, examine_text
from heed.text.doctor.findings import Diagnosis
from heed.text.readers import read_text
from heed.text.tokenizers import Tokenizer
from heed.text.vocabulary import Vocabulary

VALIDATION_STREAMS = 16
"""Positions of a validation stream that are read in parallel."""
MAX_TRAINING_TOKENS = 50_000
"""Tokens of the training text that each validation scores too, to show overfitting."""


class LanguageModelTask(GenerationTask):
    """Prediction of each token of a text from those before it."""

    name = "language-model"
    title = "Language model"
    Data = TextData
    sides = SIDES
    metrics = ("perplexity",)
    headline = ("perplexity per word", "bits per byte")
    tokenizer_note = (
        "only models with the same tokenizer can be compared by perplexity (all can by bits per byte); "
        "--tokenizer-of RUN uses that run's"
    )

    # --- settings and preparation -----------------------------------------------------------------------

    @classmethod
    def fits(cls, model: Any) -> bool:
        return bool(model.generates and not model.needs_source)

    @classmethod
    def check(cls, recipe: Any, is_new: bool) -> None:
        if recipe.data.line_end == "newline" and recipe.tokenizer.kind in ("word", "char-bigram", "wordpiece"):
            raise ValueError('data.line_end = "newline" needs a tokenizer that keeps line breaks: bpe, byte, character')
        if is_new and recipe.tokenizer.dropout:
            raise ValueError('tokenizer.dropout requires task = "translation" and tokenizer.kind = "bpe": set it to 0')
        if recipe.training.r_drop:
            raise ValueError('training.r_drop requires task = "translation": set it to 0')
        is_counted, is_stream = MODELS[recipe.model.kind].count_based, recipe.data.text_as == "stream"
        if is_new and is_stream and not is_counted and "tokens_per_batch" in recipe.training.model_fields_set:
            raise ValueError(
                'training.tokens_per_batch has no effect on a stream (data.text_as = "stream"), whose updates have '
                "training.num_streams times training.context tokens: set these, and leave it out"
            )
        streams, unset = recipe.training.num_streams, type(recipe.training).model_fields["num_streams"].default
        if is_new and not is_stream and not is_counted and streams != unset:
            raise ValueError(
                f"training.num_streams = {streams} has no effect on {recipe.data.text_as} (data.text_as): leave it "
                'out, or set data.text_as = "stream"'
            )

    @classmethod
    def examine(cls, data: TextData, quiet: bool) -> Examination:
        if data.vocabulary_text:
            next(
                iter(read_text(data.resolve(data.vocabulary_text), data.errors)), None
            )  # fails early if it cannot be read
        return examine_text(data, quiet)

    @classmethod
    def defaults(cls, stats: CorpusStats, machine: Machine, given: Mapping[str, Any]) -> Choices:
        return choose_language_model(stats, machine, given)

    @classmethod
    def inherited_keys(cls, given: Mapping[str, Any], trained: Mapping[str, Any]) -> Sequence[str]:
        """Settings of reading the text. Independent lines have no choice of line ends and blank lines."""
        reads = given.get("data.text_as", trained["data"].get("text_as", "stream"))
        is_new_kind = given.get("data.text_as") == "lines"
        of_text = [] if is_new_kind else ["data.text_as", "data.line_end", "data.keep_blank_lines"]
        return ["training.context", *(["training.num_streams"] if reads == "stream" else []), *of_text]

    @classmethod
    def prepare(
        cls, recipe: Any, folder: Path, diagnosis: Diagnosis, reuse: Mapping[str, Tokenizer] | None, quiet: bool
    ) -> prepare.Corpus:
        data, num_lines = recipe.data, diagnosis.num_pairs
        return prepare_language_model(data, recipe.tokenizer, recipe.seed, folder, num_lines, reuse, quiet)

    # --- training on a prepared run folder --------------------------------------------------------------

    @property
    def data(self) -> TextData:
        """The `[data]` table."""
        data: TextData = self.recipe.data
        return data

    @property
    def tokenizer(self) -> Tokenizer:
        """The tokenizer of the text, in the direction in which it is read."""
        return self.data.reading(self.tokenizers["tgt"])

    @property
    def context(self) -> int:
        """Tokens per segment or window."""
        context: int = self.recipe.training.context
        return context

    @cached_property
    def valid(self) -> list[str]:
        """The validation lines."""
        return [row[0] for row in read_valid(self.folder)]

    def loader(self, tokens_per_batch: int, seed: int, rank: int = 0, world_size: int = 1, workers: int = 0) -> Loader:
        """Batches of lines, segments of streams, or batches of windows; only lines are prepared by workers."""
        if self.data.text_as == "lines":
            return self.row_loader(tokens_per_batch, seed, rank, world_size, workers)
        text = TextStream.of_store(self.store)
        if self.data.text_as == "stream":
            training = self.recipe.training
            return StreamLoader(
                text, num_streams=training.num_streams, context=self.context, random_context=training.random_context,
                seed=seed, rank=rank, world_size=world_size,
            )  # fmt: skip
        return WindowLoader(
            text, context=self.context, tokens_per_batch=tokens_per_batch, seed=seed, rank=rank, world_size=world_size
        )

    def text_of(self, row: int) -> str:
        """A line of the training data; of a stream, the text from the token `row` on."""
        is_line = self.data.text_as == "lines"
        ids = self.store.row("tgt", row) if is_line else self.store.all_tokens("tgt")[0][row : row + self.context]
        return repr(self.tokenizer.decode([ids.tolist()])[0])

    def sequences(self) -> Iterable[Sequence[int]]:
        """All training lines without their ends; a text whose lines do not end with eos is one sequence."""
        if self.data.line_end != "eos":
            return [self.store.all_tokens("tgt")[0].tolist()]
        lines = super().sequences()
        return lines if self.data.text_as == "lines" else (ids[:-1] for ids in lines)

    def trial_batch(self, vocabularies: Vocabularies, length: float, processes: int) -> Batch | None:
        if self.data.text_as == "stream":
            num_rows = max(1, self.recipe.training.num_streams // processes)
            return random_batch(num_rows, self.context, vocabularies)
        length = self.context if self.data.text_as == "windows" else length
        return super().trial_batch(vocabularies, length, processes)

    def validate(self, model: Autoregressive, metrics: Sequence[str]) -> Validation:
        """Perplexity per token, word and character, bits per byte, and perplexity of some training text.

        To save time, streams are read at several positions in parallel, and windows do not overlap.
        """
        scorer = TextScorer(self._reader(model), self.tokenizer, self.data.normaliser, self.data.line_end)
        scored = scorer.score(self.valid)
        scores = score_likelihoods(scored.likelihoods(), intervals=0, how=scorer.signature)
        scores["training_perplexity"] = self._training_perplexity(model, len(scored.text))
        return Validation(scores)

    def _reader(self, model: Autoregressive) -> Reader:
        return make_reader(
            self.data.text_as, model, self.device, self.context, stride=self.context, num_streams=VALIDATION_STREAMS
        )

    def _training_perplexity(self, model: Autoregressive, num_tokens: int) -> Score:
        """Perplexity per token of about `num_tokens` of the training text, read in the same way."""
        reader, text = self._reader(model), self._beginning(min(num_tokens, MAX_TRAINING_TOKENS))
        mean = -float(reader.read(text).sum()) / len(text)
        signature = f"unit:token|n:{len(text)}|text:training|{reader.signature}"
        return Score("perplexity per token", math.exp(mean) if mean < 700 else math.inf, signature)

    def _beginning(self, num_tokens: int) -> TextStream:
        """The first tokens of the training text.

        Of independent lines, complete ones with their ends, except those that are too long to be scored; validation
        text has none of these either.
        """
        store = self.store
        ids, offsets = store.all_tokens("tgt")
        if self.data.text_as != "lines":
            return TextStream.of_lines([ids[:num_tokens].tolist()])
        lengths = np.diff(offsets)
        readable = np.flatnonzero(lengths < MAX_SCORED_TOKENS)
        num_lines = max(1, int(np.searchsorted(np.cumsum(lengths[readable]), num_tokens)))
        rows = [store.row("tgt", i)[: MAX_SCORED_TOKENS - 1] for i in (readable[:num_lines].tolist() or [0])]
        return TextStream.of_lines([[*row.tolist(), Vocabulary.eos_id] for row in rows])

    @classmethod
    def predictor(cls, run: Any, combined: Combination = ALONE) -> LanguageModelPredictor:
        return LanguageModelPredictor(run, combined)
