"""Language modelling: a text is read, the cross-entropy of each token is minimised, perplexity is measured.

A text is independent lines; or one stream, whose state is carried from batch to batch; or windows of that stream
(`data.text_as`). In each case every token is predicted, and what ends each line.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from heed.core.errors import UsageError
from heed.data.batch import Batch
from heed.data.loader import BatchLoader
from heed.data.store import TokenStore
from heed.data.text_stream import StreamLoader, TextStream, WindowLoader
from heed.decoding.scoring import MAX_SCORED_TOKENS, Reader, TextScorer, make_reader
from heed.decoding.translator import ModelTranslator
from heed.metrics import score_likelihoods
from heed.metrics.metric import Score
from heed.nn.contract import Autoregressive, Smoothing, State, Vocabularies
from heed.nn.dropout_keys import DropoutKeys
from heed.tasks import prepare
from heed.tasks.defaults import Choices, CorpusStats, Machine
from heed.tasks.generation import chain_rule_loss, random_batch, text_batch
from heed.tasks.language_model.data import TextData
from heed.tasks.language_model.defaults import choose_language_model
from heed.tasks.language_model.predictor import LanguageModelPredictor
from heed.tasks.language_model.prepare import SIDES, prepare_language_model
from heed.tasks.predictor import ALONE, Combination
from heed.tasks.task import Examination, Loader, Loss, RecipeTables, Task, Validation
from heed.text.doctor import Diagnosis, diagnose_text_files
from heed.text.readers import read_text
from heed.text.tokenizers import Tokenizer
from heed.text.vocabulary import Vocabulary

VALIDATION_STREAMS = 16
"""Places of the validation text that are read at once, where it is one stream."""
MAX_TRAINING_TOKENS = 50_000
"""Tokens of the training text that are scored together with the validation text, to show how much is memorised."""


class LanguageModelTask(Task):
    """A text: each token from those before it."""

    name = "language-model"
    title = "Language model"
    Data = TextData
    sides = SIDES
    metrics = ("perplexity",)
    headline = ("perplexity per word", "bits per byte")
    tie_breaker = "perplexity"
    tokenizer_note = (
        "only models with the same tokenizer can be compared by perplexity (all can by bits per byte); "
        "--tokenizer-of RUN uses that run's"
    )

    # --- from a user's words to a prepared run folder ---------------------------------------------------

    @classmethod
    def fits(cls, model: Any) -> bool:
        return hasattr(model, "advance") and not model.needs_source

    @classmethod
    def check(cls, recipe: RecipeTables, is_new: bool) -> None:
        if recipe.data.line_end == "newline" and recipe.tokenizer.kind in ("word", "char-bigram"):
            raise ValueError('data.line_end = "newline" needs a tokenizer that keeps line breaks: bpe, byte, character')
        if is_new and recipe.tokenizer.dropout:
            raise ValueError('tokenizer.dropout is for a translation with tokenizer.kind = "bpe": set it to 0')
        if recipe.training.r_drop:
            raise ValueError("training.r_drop is for translation; a language model is trained without it")

    @classmethod
    def examine(cls, data: TextData, quiet: bool) -> Examination:
        if not data.text:
            raise UsageError("data.text is missing: give --text F.")
        if data.vocabulary_text:
            next(iter(read_text(data.resolve(data.vocabulary_text), data.errors)), None)  # whether it can be read
        valid = data.resolve(data.valid_text) if data.valid_text else None
        return Examination(diagnose_text_files(data.resolve(data.text), valid, errors=data.errors, quiet=quiet))

    @classmethod
    def defaults(cls, stats: CorpusStats, machine: Machine, given: Mapping[str, Any]) -> Choices:
        return choose_language_model(stats, machine, given)

    @classmethod
    def inherited_keys(cls, given: Mapping[str, Any]) -> Sequence[str]:
        """How the text is read; independent lines are never blank, and end in one way."""
        of_text = (
            ["data.text_as", "data.line_end", "data.keep_blank_lines"] if given.get("data.text_as") != "lines" else []
        )
        return ["training.context", "training.num_streams", *of_text]

    @classmethod
    def prepare(
        cls,
        recipe: RecipeTables,
        folder: Path,
        diagnosis: Diagnosis,
        reuse: Mapping[str, Tokenizer] | None,
        quiet: bool,
    ) -> prepare.Corpus:
        return prepare_language_model(
            recipe.data, recipe.tokenizer, recipe.seed, folder, diagnosis.num_pairs, reuse, quiet
        )

    # --- training on a prepared run folder --------------------------------------------------------------

    @property
    def data(self) -> TextData:
        """The `[data]` table."""
        data: TextData = self.recipe.data
        return data

    @property
    def tokenizer(self) -> Tokenizer:
        """The tokenizer of the text."""
        return self.tokenizers["tgt"]

    @property
    def context(self) -> int:
        """Tokens of a segment or a window."""
        context: int = self.recipe.training.context
        return context

    @cached_property
    def valid(self) -> list[str]:
        """The validation lines."""
        return [row[0] for row in prepare.read_valid(self.folder)]

    @property
    def _store(self) -> TokenStore:
        return TokenStore.open(self.folder / "data" / "train")

    def loader(self, tokens_per_batch: int, seed: int, rank: int = 0, world_size: int = 1, workers: int = 0) -> Loader:
        """Batches of lines, segments of streams, or batches of windows; the last two need no workers."""
        if self.data.text_as == "lines":
            return BatchLoader(
                self._store, text_batch, tokens_per_batch=tokens_per_batch, seed=seed, rank=rank,
                world_size=world_size, workers=workers,
            )  # fmt: skip
        text = TextStream.of_store(self._store)
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
        """A line of the training data; of a stream, what follows the token `row`."""
        store = self._store
        alone = self.data.text_as == "lines"
        ids = store.row("tgt", row) if alone else store.all_tokens("tgt")[0][row : row + self.context]
        return repr(self.tokenizer.decode([ids.tolist()])[0])

    def sequences(self) -> Iterable[Sequence[int]]:
        """Every training line, without its end; a text whose lines do not end is one sequence."""
        store, ended = self._store, self.data.text_as != "lines" and self.data.line_end == "eos"
        if self.data.line_end != "eos":
            return [store.all_tokens("tgt")[0].tolist()]
        return (store.row("tgt", index).tolist()[: -1 if ended else None] for index in range(len(store)))

    def loss(
        self, model: Autoregressive, batch: Batch, smoothing: Smoothing, dropout_keys: DropoutKeys | None,
        before: State | None = None,
    ) -> Loss:  # fmt: skip
        """Cross-entropy of each token after those before it."""
        return chain_rule_loss(model, batch, smoothing, dropout_keys, before)

    def trial_batch(self, vocabularies: Vocabularies, length: float, processes: int) -> Batch:
        training = self.recipe.training
        if self.data.text_as == "stream":
            return random_batch(max(1, training.num_streams // processes), training.context, vocabularies)
        tokens = training.context if self.data.text_as == "windows" else round(length)
        tokens = max(2, min(tokens, training.tokens_per_batch))
        return random_batch(max(1, training.tokens_per_batch // tokens), tokens, vocabularies)

    def translator(self, model: Autoregressive) -> ModelTranslator:
        """The model with this run's tokenizer, to generate."""
        line_end = None if self.data.text_as == "lines" else self.data.line_end
        return ModelTranslator(model, None, self.tokenizer, self.data.normaliser, self.device, line_end=line_end)

    def validate(self, model: Autoregressive, metrics: Sequence[str]) -> Validation:
        """Perplexity per token, per word and per character, and bits per byte; and what some training text scores.

        Streams are read in several places at once, and windows do not overlap: it is done often, and has to be fast.
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
        """Perplexity per token, read as the validation text is, of about as much of the training text."""
        reader, text = self._reader(model), self._beginning(min(num_tokens, MAX_TRAINING_TOKENS))
        mean = -float(reader.read(text).sum()) / len(text)
        signature = f"unit:token|n:{len(text)}|text:training|{reader.signature}"
        return Score("perplexity per token", math.exp(mean) if mean < 700 else math.inf, signature)

    def _beginning(self, num_tokens: int) -> TextStream:
        """The first tokens of the training text; of lines that stand alone whole ones, with what ends them.

        Without lines that are too long to be read at once, as validation text has none of them either.
        """
        store = self._store
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
