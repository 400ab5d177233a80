"""Language modelling, a line at a time: what to read, what to minimise, what to measure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

import torch
from torch import Tensor

from heed.core.errors import UsageError
from heed.core.progress import watched
from heed.data.batch import Batch
from heed.data.loader import BatchLoader
from heed.data.store import TokenStore
from heed.decoding.translator import ModelTranslator
from heed.metrics.likelihood import evaluate_likelihood
from heed.nn.contract import Autoregressive, Smoothing
from heed.nn.noise import Noise
from heed.tasks import prepare
from heed.tasks.config import DataConfig
from heed.tasks.task import Corpus, Sample, Validation, chain_rule_loss, likelihood
from heed.text.readers import fingerprint_file, read_text
from heed.text.tokenizers import Tokenizer, TokenizerConfig
from heed.text.vocabulary import Vocabulary

SIDES = ("tgt",)


def read_lines_of(data: DataConfig, path: str) -> Iterator[prepare.Row]:
    """The lines of a text that are not empty, normalised."""
    lines = (data.normaliser.apply(line) for line in read_text(data.resolve(path), data.errors))
    return ((line,) for line in lines if line.strip())


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
        return prepare.split_rows(lines, num_lines, data.hold_out, seed, held)

    valid = prepare.cap_valid(rows(True, "holding out"), data)
    prepare.write_valid(folder, valid)
    text = partial(rows, False, "reading for the tokenizer")
    tokenizers = reuse or prepare.train_tokenizers(tokenizer, SIDES, text, num_lines, folder)
    seen = prepare.Seen()
    ids = prepare.encode_rows(rows(False, "encoding"), [tokenizers["tgt"]], data.max_tokens, dropped, seen)
    files = {"text": fingerprint_file(data.resolve(data.text))}
    store = prepare.write_tokens(folder, SIDES, ids, tokenizers, files)
    seen.write(folder)
    valid_files = {"text": fingerprint_file(data.resolve(data.valid_text))} if data.valid_text else {}
    corpus = Corpus(len(store), len(valid), dict(dropped), files, valid_files)
    prepare.write_corpus(folder, corpus)
    return corpus


class LanguageModellingTask:
    """Lines of text of a prepared run folder."""

    def __init__(self, folder: Path, data: DataConfig, tokenizer: Tokenizer, device: torch.device) -> None:
        self.folder = folder
        self.data = data
        self.tokenizer = tokenizer
        self.device = device
        self.metrics: Sequence[str] = ("perplexity",)
        self.valid = [row[0] for row in prepare.read_valid(folder)]
        self.vocabularies: Mapping[str, str] = prepare.vocabulary_digests({"tgt": tokenizer})

    def loader(self, tokens_per_batch: int, seed: int, rank: int = 0, world_size: int = 1) -> BatchLoader:
        """Batches of lines."""
        return BatchLoader(
            TokenStore.open(self.folder / "data" / "train"), tokens_per_batch=tokens_per_batch, seed=seed,
            bos_id=Vocabulary.bos_id, eos_id=Vocabulary.eos_id, pad_id=Vocabulary.pad_id,
            rank=rank, world_size=world_size,
        )  # fmt: skip

    def text_of(self, row: int) -> str:
        """A line of the training data."""
        store = TokenStore.open(self.folder / "data" / "train")
        return repr(self.tokenizer.decode([store.row("tgt", row).tolist()])[0])

    def sequences(self) -> Iterable[Sequence[int]]:
        """Every training line."""
        store = TokenStore.open(self.folder / "data" / "train")
        return (store.row("tgt", index).tolist() for index in range(len(store)))

    def loss(
        self, model: Autoregressive, batch: Batch, smoothing: Smoothing, noise: Noise | None
    ) -> tuple[Tensor, Tensor, int]:
        """Cross-entropy of each line, under teacher forcing."""
        return chain_rule_loss(model, batch, smoothing, noise)

    def translator(self, model: Autoregressive) -> ModelTranslator:
        """The model with this run's tokenizer."""
        return ModelTranslator(model, None, self.tokenizer, self.data.normaliser, self.device)

    def validate(self, model: Autoregressive, metrics: Sequence[str]) -> Validation:
        """Perplexity per token, per word and per character, and bits per byte."""
        scores = evaluate_likelihood(likelihood(self.translator(model), self.valid), intervals=0)
        names = ("perplexity", "perplexity_per_word", "perplexity_per_character", "bits_per_character", "bits_per_byte")
        return Validation(dict(zip(names, scores, strict=True)), [Sample("", "", line) for line in self.valid[:1]])
