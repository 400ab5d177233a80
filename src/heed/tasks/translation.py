"""Translation: what to read, what to minimise, what to measure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from heed.core.progress import watched
from heed.data.batch import Batch
from heed.data.loader import BatchLoader, Resegment
from heed.data.store import TokenStore
from heed.decoding.options import SearchOptions
from heed.decoding.translator import ModelTranslator
from heed.metrics.score import Score
from heed.metrics.translation import bleu_tokenizer, evaluate_translations
from heed.metrics.word_frequency import WordCounts
from heed.nn.contract import Autoregressive, Smoothing
from heed.nn.noise import Noise
from heed.tasks import prepare
from heed.tasks.config import DataConfig
from heed.tasks.task import Corpus, Sample, Validation, chain_rule_loss, perplexity_per_token
from heed.text.pair_filter import PairFilter
from heed.text.readers import CorpusFiles, fingerprint, read_pairs
from heed.text.tokenizers import Tokenizer, TokenizerConfig
from heed.text.vocabulary import Vocabulary

SIDES = ("src", "tgt")


def normalised_pairs(data: DataConfig, files: CorpusFiles) -> Iterator[tuple[str, str]]:
    """The pairs of some files, normalised."""
    return ((data.normaliser.apply(src), data.normaliser.apply(tgt)) for src, tgt in read_pairs(files, data.errors))


def filtered_pairs(data: DataConfig, dropped: Counter[str]) -> Iterator[tuple[str, str]]:
    """The training pairs, normalised, without those that the filter drops."""
    pair_filter = PairFilter(data.filter)
    for row in normalised_pairs(data, data.train_files()):
        reason = pair_filter.reason_to_drop(*row)
        if reason is None:
            yield row
        else:
            dropped[reason] += 1


def prepare_translation(
    data: DataConfig, tokenizer: TokenizerConfig, seed: int, folder: Path, num_pairs: int,
    reuse: Mapping[str, Tokenizer] | None = None, quiet: bool = True,
) -> Corpus:  # fmt: skip
    """Hold out, train tokenizers (or `reuse` those of a run that is fine-tuned), encode; all into the run folder."""
    dropped: Counter[str] = Counter()
    valid_files = data.valid_files()

    def rows(held: bool, counter: Counter[str], title: str) -> Iterator[prepare.Row]:
        pairs = watched(filtered_pairs(data, counter), title, "pairs", quiet)
        return pairs if valid_files else prepare.split_rows(pairs, num_pairs, data.hold_out, seed, held)

    held_out = normalised_pairs(data, valid_files) if valid_files else rows(True, Counter(), "holding out")
    valid = prepare.cap_valid(held_out, data)
    prepare.write_valid(folder, valid)
    text = partial(rows, False, Counter(), "reading for the tokenizer")
    tokenizers = reuse or prepare.train_tokenizers(tokenizer, SIDES, text, num_pairs, folder)
    seen = prepare.Seen(WordCounts(bleu_tokenizer(data.tgt_lang or None)))
    sides = [tokenizers[side] for side in SIDES]
    ids = prepare.encode_rows(rows(False, dropped, "encoding"), sides, data.max_tokens, dropped, seen)
    files = fingerprint(data.train_files())
    store = prepare.write_tokens(folder, SIDES, ids, tokenizers, files)
    seen.write(folder)
    valid_fingerprint = fingerprint(valid_files) if valid_files else {}
    corpus = Corpus(len(store), len(valid), dict(dropped), files, valid_fingerprint)
    prepare.write_corpus(folder, corpus)
    return corpus


class TranslationTask:
    """Sentence pairs of a prepared run folder."""

    def __init__(
        self, folder: Path, data: DataConfig, src_tokenizer: Tokenizer, tgt_tokenizer: Tokenizer,
        subword_dropout: float, seed: int, device: torch.device,
    ) -> None:  # fmt: skip
        self.folder = folder
        self.data = data
        self.tokenizers = {"src": src_tokenizer, "tgt": tgt_tokenizer}
        self.subword_dropout = subword_dropout
        self.seed = seed
        self.device = device
        self.metrics: Sequence[str] = ("bleu", "chrf", "perplexity")
        self.valid = prepare.read_valid(folder)
        self.vocabularies: Mapping[str, str] = prepare.vocabulary_digests(self.tokenizers)

    def loader(self, tokens_per_batch: int, seed: int, rank: int = 0, world_size: int = 1) -> BatchLoader:
        """Batches of pairs, cut into subwords anew in every epoch where subword dropout is on."""
        return BatchLoader(
            TokenStore.open(self.folder / "data" / "train"), tokens_per_batch=tokens_per_batch, seed=seed,
            bos_id=Vocabulary.bos_id, eos_id=Vocabulary.eos_id, pad_id=Vocabulary.pad_id,
            resegment=self._resegment() if self.subword_dropout else None, rank=rank, world_size=world_size,
        )  # fmt: skip

    def text_of(self, row: int) -> str:
        """A pair of the training data."""
        store = TokenStore.open(self.folder / "data" / "train")
        src, tgt = (self.tokenizers[side].decode([store.row(side, row).tolist()])[0] for side in SIDES)
        return f"{src!r} → {tgt!r}"

    def _resegment(self) -> Resegment:
        def resegment(side: str, ids: NDArray[np.integer], epoch: int, row: int) -> Sequence[int]:
            key = (self.seed, epoch, 2 * row + SIDES.index(side))
            return self.tokenizers[side].encode_with_dropout(ids.tolist(), self.subword_dropout, key)

        return resegment

    def sequences(self) -> Iterable[Sequence[int]]:
        """Every training target."""
        store = TokenStore.open(self.folder / "data" / "train")
        return (store.row("tgt", index).tolist() for index in range(len(store)))

    def loss(
        self, model: Autoregressive, batch: Batch, smoothing: Smoothing, noise: Noise | None
    ) -> tuple[Tensor, Tensor, int]:
        """Cross-entropy of the target given the source, under teacher forcing."""
        return chain_rule_loss(model, batch, smoothing, noise)

    def translator(self, model: Autoregressive) -> ModelTranslator:
        """The model with this run's tokenizers."""
        return ModelTranslator(model, self.tokenizers["src"], self.tokenizers["tgt"], self.data.normaliser, self.device)

    def validate(
        self, model: Autoregressive, metrics: Sequence[str], options: SearchOptions | None = None
    ) -> Validation:
        """BLEU and chrF of greedy translations (or of `options`), and perplexity of the references."""
        translator = self.translator(model)
        sources, references = [row[0] for row in self.valid], [row[1] for row in self.valid]
        found = translator.translate(sources, options or SearchOptions(beam_size=1))
        outputs = [hypothesis.text for hypothesis in found]
        names = [name for name in metrics if name != "perplexity"]
        scores: dict[str, Score] = {}
        if names:
            measured = evaluate_translations(outputs, references, self.data.tgt_lang or None, names, intervals=0)
            scores.update(zip(names, measured, strict=True))
        if "perplexity" in metrics:
            scores["perplexity"] = perplexity_per_token(translator, references, sources)
        picks = sample_rows(len(sources))
        return Validation(scores, [Sample(sources[i], outputs[i], references[i]) for i in picks])


def sample_rows(num_rows: int, num_samples: int = 4) -> list[int]:
    """Rows spread over the validation data."""
    return sorted({num_rows * k // num_samples for k in range(num_samples)}) if num_rows else []
