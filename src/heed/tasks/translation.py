"""Translation: what to read, what to minimise, what to measure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain
from pathlib import Path

import torch

from heed.core.errors import UsageError
from heed.data.batch import Batch
from heed.data.loader import BatchLoader
from heed.data.store import TokenStore
from heed.data.subword_dropout import SIDES, SubwordDropout
from heed.decoding.options import SearchOptions
from heed.decoding.translator import MAX_SCORED_TOKENS, ModelTranslator
from heed.metrics.score import Score
from heed.metrics.scoring import score_outputs
from heed.metrics.translation import bleu_tokenizer
from heed.metrics.word_frequency import WordCounts
from heed.nn.contract import Autoregressive, Smoothing, State
from heed.nn.dropout_keys import DropoutKeys
from heed.tasks import prepare
from heed.tasks.config import DataConfig
from heed.tasks.parts import Part, listed, with_tag
from heed.tasks.r_drop import r_drop_loss
from heed.tasks.task import Corpus, Loss, Sample, Validation, chain_rule_loss, perplexity_per_token
from heed.tasks.training_pairs import TrainingPairs
from heed.text.readers import fingerprint
from heed.text.tokenizers import Tokenizer, TokenizerConfig
from heed.text.vocabulary import Vocabulary

_MAX_VALID_TOKENS = MAX_SCORED_TOKENS - 10
"""Beside them are what ends a line and the tag of a source."""


def prepare_translation(
    data: DataConfig, tokenizer: TokenizerConfig, seed: int, folder: Path, num_pairs: int,
    reuse: Mapping[str, Tokenizer] | None = None, quiet: bool = True, num_in_parts: int = 0,
) -> Corpus:  # fmt: skip
    """Hold out, train tokenizers (or `reuse` those of a run that is fine-tuned), encode; all into the run folder.

    `num_pairs`: those of the files of `data` itself, without its further parts, which have `num_in_parts`.
    """
    pairs = TrainingPairs(data, seed, num_pairs, quiet)
    valid = prepare.cap_valid(pairs.held_out(), data, quiet)
    prepare.require_valid(valid)
    pairs.held = frozenset(chain.from_iterable(valid))
    of_parts = [fingerprint(part.files) for part in pairs.parts]
    text = partial(pairs.all, "reading for the tokenizer")
    tokenizers = reuse or prepare.train_tokenizers(
        tokenizer, SIDES, text, num_pairs + num_in_parts, folder, data.tags, quiet
    )
    valid = prepare.readable(valid, [tokenizers["src"], tokenizers["tgt"]], _MAX_VALID_TOKENS, quiet)
    prepare.write_valid(folder, valid)
    seen = prepare.Seen(folder, WordCounts(bleu_tokenizer(data.tgt_lang or None, data.tokenised)))
    dropped = {part: Counter[str]() for part in pairs.parts}
    num_distinct = Counter[Part]()
    ids = (_encoded(pairs, part, tokenizers, dropped[part], seen, num_distinct) for part in pairs.parts)
    files = {
        f"{part.prefix}{side}": file
        for part, of_part in zip(pairs.parts, of_parts, strict=True)
        for side, file in of_part.items()
    }
    store = prepare.write_tokens(folder, SIDES, chain.from_iterable(ids), tokenizers, files)
    seen.write()
    valid_files = data.valid_files()
    valid_fingerprint = fingerprint(valid_files) if valid_files else {}
    num_repeated = len(store) - num_distinct.total()
    corpus = Corpus(
        len(store), len(valid), _by_reason(dropped), files, valid_fingerprint, num_repeated,
        num_by_part=[num_distinct[part] for part in pairs.parts],
    )  # fmt: skip
    prepare.write_corpus(folder, corpus)
    return corpus


def require_tags(tokenizer: Tokenizer, data: DataConfig) -> None:
    """Raise UsageError where the vocabulary, which another run brought, lacks a tag."""
    known = tokenizer.vocabulary.tags
    if missing := [tag for tag in data.tags if tag not in known]:
        knows = f"it has {listed(known)}" if known else "it has none"
        raise UsageError(
            f"the vocabulary of the other run does not have the tag {listed(missing)} ({knows}). Give sources tags "
            "that it has, or train a new vocabulary: with --init that is --init-vocabulary new."
        )


def _encoded(
    pairs: TrainingPairs, part: Part, tokenizers: Mapping[str, Tokenizer], dropped: Counter[str], seen: prepare.Seen,
    num_distinct: Counter[Part],
) -> Iterator[tuple[list[int], ...]]:  # fmt: skip
    """The ids of a part, with its tag and as often as it comes; each pair is counted once."""
    sides = [tokenizers[side] for side in SIDES]
    rows = pairs.of(part, dropped, "encoding")
    ids = prepare.encode_rows(rows, sides, pairs.data.max_tokens, dropped, seen)
    for row in with_tag(ids, tag_ids(tokenizers["src"], part.tag)):
        num_distinct[part] += 1
        yield from (row,) * part.repeat


def tag_ids(tokenizer: Tokenizer, tag: str) -> tuple[int, ...]:
    """The ids before a source with this tag; none where there is no tag."""
    return (tokenizer.vocabulary.tag_ids[tag],) if tag else ()


def _by_reason(dropped: Mapping[Part, Counter[str]]) -> dict[str, int]:
    """How many pairs were left out and why; of further parts with their name."""
    return {
        f"{part.label}: {reason}" if part.number else reason: count
        for part, reasons in dropped.items()
        for reason, count in reasons.items()
    }


class TranslationTask:
    """Sentence pairs of a prepared run folder."""

    def __init__(
        self, folder: Path, data: DataConfig, src_tokenizer: Tokenizer, tgt_tokenizer: Tokenizer,
        subword_dropout: float, seed: int, device: torch.device, r_drop: float = 0.0,
        decoding: SearchOptions | None = None,
    ) -> None:  # fmt: skip
        self.folder = folder
        self.data = data
        self.tokenizers = {"src": src_tokenizer, "tgt": tgt_tokenizer}
        self.subword_dropout = subword_dropout
        self.seed = seed
        self.device = device
        self.r_drop = r_drop
        self.decoding = decoding or SearchOptions()
        self.metrics: Sequence[str] = ("bleu", "chrf", "perplexity")
        self.valid = prepare.read_valid(folder)
        self.vocabularies: Mapping[str, str] = prepare.vocabulary_digests(self.tokenizers)

    def loader(
        self, tokens_per_batch: int, seed: int, rank: int = 0, world_size: int = 1, workers: int = 0
    ) -> BatchLoader:
        """Batches of pairs, cut into subwords anew in every epoch where subword dropout is on."""
        return BatchLoader(
            TokenStore.open(self.folder / "data" / "train"), tokens_per_batch=tokens_per_batch, seed=seed,
            bos_id=Vocabulary.bos_id, eos_id=Vocabulary.eos_id, pad_id=Vocabulary.pad_id,
            subword_dropout=self._subword_dropout(), rank=rank, world_size=world_size, workers=workers,
        )  # fmt: skip

    def text_of(self, row: int) -> str:
        """A pair of the training data, with its tag."""
        store = TokenStore.open(self.folder / "data" / "train")
        ids = {side: store.row(side, row).tolist() for side in SIDES}
        src, tgt = (self.tokenizers[side].decode([ids[side]])[0] for side in SIDES)
        tags = "".join(self.tokenizers["src"].pieces(ids["src"][: self._num_tags(ids["src"])]))
        return f"{tags}{src!r} → {tgt!r}"

    def _num_tags(self, src_ids: Sequence[int]) -> int:
        """How many tags stand before a source: one or none."""
        tags = self.tokenizers["src"].vocabulary.tag_ids.values()
        return sum(id in tags for id in src_ids[:1])

    def _subword_dropout(self) -> SubwordDropout | None:
        return SubwordDropout(self.tokenizers, self.subword_dropout, self.seed) if self.subword_dropout else None

    def sequences(self) -> Iterable[Sequence[int]]:
        """Every training target."""
        store = TokenStore.open(self.folder / "data" / "train")
        return (store.row("tgt", index).tolist() for index in range(len(store)))

    def loss(
        self, model: Autoregressive, batch: Batch, smoothing: Smoothing, dropout_keys: DropoutKeys | None,
        before: State | None = None,
    ) -> Loss:  # fmt: skip
        """Cross-entropy of the target given the source, under teacher forcing. No pair goes on from another."""
        if self.r_drop and dropout_keys is not None:
            return r_drop_loss(model, batch, smoothing, dropout_keys, self.r_drop)
        return chain_rule_loss(model, batch, smoothing, dropout_keys)

    def translator(self, model: Autoregressive) -> ModelTranslator:
        """The model with this run's tokenizers, for validation data."""
        before = tag_ids(self.tokenizers["src"], self.data.tag_of_validation)
        sides = self.tokenizers["src"], self.tokenizers["tgt"]
        return ModelTranslator(model, *sides, self.data.normaliser, self.device, before_source=before)

    def num_beyond_reach(self) -> int:
        """How many validation references have more tokens than the recipe's search may put out for their source."""
        src, tgt = (
            self.tokenizers[side].encode([row[place] for row in self.valid]) for place, side in enumerate(SIDES)
        )
        num_tags = len(tag_ids(self.tokenizers["src"], self.data.tag_of_validation))
        pairs = zip(src, tgt, strict=True)
        return sum(len(theirs) >= self.decoding.limit(num_tags + len(ours)) for ours, theirs in pairs)

    def validate(
        self, model: Autoregressive, metrics: Sequence[str], options: SearchOptions | None = None
    ) -> Validation:
        """BLEU and chrF of greedy translations (or of `options`), and perplexity of the references.

        Greedy outputs are limited in length as those of the recipe's search are.
        """
        translator = self.translator(model)
        sources, references = [row[0] for row in self.valid], [row[1] for row in self.valid]
        found = translator.translate(sources, options or self.decoding.greedy())
        outputs = [hypothesis.text for hypothesis in found]
        names = [name for name in metrics if name != "perplexity"]
        scores: dict[str, Score] = {}
        if names:
            _, language = self.data.languages(self.data.tag_of_validation)
            measured = score_outputs(
                outputs, references, language or None, names, intervals=0, tokenised=self.data.tokenised
            )
            scores.update(zip(names, measured, strict=True))
        if "perplexity" in metrics:
            scores["perplexity"] = perplexity_per_token(translator, references, sources)
        picks = sample_rows(len(sources))
        return Validation(scores, [Sample(sources[i], outputs[i], references[i]) for i in picks])


def sample_rows(num_rows: int, num_samples: int = 4) -> list[int]:
    """Rows spread over the validation data."""
    return sorted({num_rows * k // num_samples for k in range(num_samples)}) if num_rows else []
