"""Language modelling: what to read, what to minimise, what to measure.

A text is lines that stand alone; or one stream, whose state is carried from batch to batch; or windows of that stream
(`data.text_as`). What is predicted is the same: every token, and what ends each line.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path

import numpy as np
import torch

from heed.core.errors import UsageError
from heed.core.progress import watched
from heed.data.batch import Batch
from heed.data.loader import BatchLoader
from heed.data.store import TokenStore
from heed.data.streams import StreamLoader
from heed.data.text_stream import TextStream
from heed.data.windows import WindowLoader
from heed.decoding.reading import MAX_LINE, Reader, make_reader
from heed.decoding.text_scorer import TextScorer
from heed.decoding.translator import ModelTranslator
from heed.metrics.score import Score
from heed.metrics.scoring import score_likelihoods
from heed.nn.contract import Autoregressive, Smoothing, State
from heed.nn.dropout_keys import DropoutKeys
from heed.tasks import prepare
from heed.tasks.config import DataConfig
from heed.tasks.task import Corpus, Loader, Loss, Validation, chain_rule_loss
from heed.text.line_ends import SPELLED, encode_ended
from heed.text.readers import fingerprint_file, read_text
from heed.text.tokenizers import Tokenizer, TokenizerConfig
from heed.text.vocabulary import Vocabulary

SIDES = ("tgt",)
VALIDATION_STREAMS = 16
"""Places of the validation text that are read at once, where it is one stream."""
MAX_TRAINING_TOKENS = 50_000
"""Of the training text that are scored beside the validation text, to show how much is learned by heart."""


def read_lines_of(data: DataConfig, path: str) -> Iterator[prepare.Row]:
    """The lines of a text, normalised; those without words only where they are kept."""
    lines = (data.normaliser.apply(line) for line in read_text(data.resolve(path), data.errors))
    return ((line,) for line in lines if data.keep_blank_lines or line.strip())


def prepare_language_model(
    data: DataConfig, tokenizer: TokenizerConfig, seed: int, folder: Path, num_lines: int,
    reuse: Mapping[str, Tokenizer] | None = None, quiet: bool = True,
) -> Corpus:  # fmt: skip
    """Hold out, train a tokenizer (or `reuse` one), encode; all into the run folder."""
    if not data.text:
        raise UsageError("data.text is missing: give --text F.")
    dropped: Counter[str] = Counter()

    def rows(held: bool, title: str) -> Iterator[prepare.Row]:
        lines = watched(read_lines_of(data, data.text), title, "lines", quiet)
        if data.valid_text:
            return read_lines_of(data, data.valid_text) if held else lines
        if data.text_as == "lines":
            return prepare.split_rows(lines, num_lines, data.num_held_out, seed, held)
        return prepare.split_end(lines, num_lines, data.num_held_out, held)

    held_out = rows(True, "holding out")
    if data.text_as == "lines" and not data.valid_text:  # with a line all that are like it are held out
        held_out = prepare.distinct(held_out)
    valid = [*islice(held_out, data.max_valid)]

    def spelled() -> Iterator[prepare.Row]:
        of_training = not data.vocabulary_text
        lines = rows(False, "reading for the tokenizer") if of_training else read_lines_of(data, data.vocabulary_text)
        return ((line + SPELLED[data.line_end],) for (line,) in lines)

    num_spelled = sum(1 for _ in read_lines_of(data, data.vocabulary_text)) if data.vocabulary_text else num_lines
    tokenizers = reuse or prepare.train_tokenizers(tokenizer, SIDES, spelled, num_spelled, folder, quiet=quiet)
    if data.text_as == "lines":
        valid = prepare.readable(valid, [tokenizers["tgt"]], MAX_LINE - 1, quiet)  # and what ends it
    prepare.write_valid(folder, valid)
    seen = prepare.Seen(folder)
    ids = _encoded(rows(False, "encoding"), tokenizers["tgt"], data, dropped, seen)
    files = {"text": fingerprint_file(data.resolve(data.text))}
    if data.vocabulary_text:
        files["vocabulary"] = fingerprint_file(data.resolve(data.vocabulary_text))
    store = prepare.write_tokens(folder, SIDES, ids, tokenizers, files)
    seen.write()
    valid_files = {"text": fingerprint_file(data.resolve(data.valid_text))} if data.valid_text else {}
    corpus = Corpus(len(store), len(valid), dict(dropped), files, valid_files)
    prepare.write_corpus(folder, corpus)
    return corpus


def _encoded(
    rows: Iterable[prepare.Row], tokenizer: Tokenizer, data: DataConfig, dropped: Counter[str], seen: prepare.Seen
) -> Iterator[tuple[list[int], ...]]:
    """The ids of each line; of a stream with what ends it."""
    if data.text_as == "lines":
        yield from prepare.encode_rows(rows, [tokenizer], data.max_tokens, dropped, seen)
        return
    for chunk in prepare.chunks(rows):
        for row in chunk:
            seen.add(row)
        yield from ((ids,) for ids in encode_ended(tokenizer, [line for (line,) in chunk], data.line_end))


class LanguageModellingTask:
    """The text of a prepared run folder. `context`, `num_streams`, `random_context`: as in `TrainingConfig`."""

    def __init__(
        self, folder: Path, data: DataConfig, tokenizer: Tokenizer, device: torch.device, context: int,
        num_streams: int, random_context: bool,
    ) -> None:  # fmt: skip
        self.folder = folder
        self.data = data
        self.tokenizer = tokenizer
        self.device = device
        self.context = context
        self.num_streams = num_streams
        self.random_context = random_context
        self.metrics: Sequence[str] = ("perplexity",)
        self.valid = [row[0] for row in prepare.read_valid(folder)]
        self.vocabularies: Mapping[str, str] = prepare.vocabulary_digests({"tgt": tokenizer})

    @property
    def _store(self) -> TokenStore:
        return TokenStore.open(self.folder / "data" / "train")

    def loader(self, tokens_per_batch: int, seed: int, rank: int = 0, world_size: int = 1, workers: int = 0) -> Loader:
        """Batches of lines, segments of streams, or batches of windows; the last two need no workers."""
        if self.data.text_as == "lines":
            return BatchLoader(
                self._store, tokens_per_batch=tokens_per_batch, seed=seed, bos_id=Vocabulary.bos_id,
                eos_id=Vocabulary.eos_id, pad_id=Vocabulary.pad_id, rank=rank, world_size=world_size, workers=workers,
            )  # fmt: skip
        text = TextStream.of_store(self._store)
        if self.data.text_as == "stream":
            return StreamLoader(
                text, num_streams=self.num_streams, context=self.context, random_context=self.random_context,
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
        readable = np.flatnonzero(lengths < MAX_LINE)
        num_lines = max(1, int(np.searchsorted(np.cumsum(lengths[readable]), num_tokens)))
        rows = [store.row("tgt", i)[: MAX_LINE - 1] for i in (readable[:num_lines].tolist() or [0])]
        return TextStream.of_lines([[*row.tolist(), Vocabulary.eos_id] for row in rows])
