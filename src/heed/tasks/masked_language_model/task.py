"""Masked language modelling task (Devlin et al. 2019): cross-entropy of masked pieces given the text around them.

With next sentences, the loss is the mean over masked pieces plus the mean over pairs of texts.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from heed.core.errors import UsageError
from heed.data.batch import Ids
from heed.data.masking import MaskedBatch, MaskedLoader, Masking
from heed.data.next_sentence import PairedBatch, PairedLoader, joined, paired
from heed.data.validation import read_valid
from heed.metrics.masked import score_masked, score_next_sentence
from heed.models import ReaderModel, build_model
from heed.nn.contract import State, Vocabularies
from heed.nn.dropout_keys import DropoutKeys
from heed.nn.masked_head import MaskedHead, MaskedHeadConfig
from heed.nn.reader_heads import ReaderWithHead
from heed.tasks import prepare
from heed.tasks.defaults import Choices, CorpusStats, Machine
from heed.tasks.masked_language_model.data import MaskedTextData
from heed.tasks.masked_language_model.defaults import choose_masked_language_model
from heed.tasks.masked_language_model.predictor import MaskedLanguageModelPredictor
from heed.tasks.masked_language_model.prepare import MASK, SIDES, cut, most_tokens, prepare_text
from heed.tasks.predictor import ALONE, Combination
from heed.tasks.task import Examination, Loader, Loss, Sample, Task, Validation, examine_text
from heed.text.doctor.findings import Diagnosis
from heed.text.tokenizers import Tokenizer
from heed.text.vocabulary import EOS_ID, PAD_ID, SPECIAL_PIECES

VALIDATION_SEED, VALIDATION_EPOCH = 0, 0
"""Keys of the masks of the validation text, which are the same in every run and at every update."""
ROWS_AT_ONCE = 64
NEXT_SENTENCE = ("next_sentence_loss", "next_sentence_accuracy")
"""Scores of runs that predict next sentences."""


class MaskedLanguageModelTask(Task):
    """Prediction of masked pieces of a text from those around them."""

    name = "masked-language-model"
    title = "Masked language model"
    Data = MaskedTextData
    Head = MaskedHeadConfig
    sides = SIDES
    metrics = ("masked_perplexity", "masked_accuracy", *NEXT_SENTENCE)
    tokenizer_note = (
        "only models with the same tokenizer can be compared by masked perplexity; --tokenizer-of RUN uses that run's"
    )

    # --- settings and preparation -----------------------------------------------------------------------

    @classmethod
    def fits(cls, model: Any) -> bool:
        return issubclass(model, ReaderModel) and model.token_vectors is not ReaderModel.token_vectors

    @classmethod
    def check(cls, recipe: Any, is_new: bool) -> None:
        if recipe.tokenizer.dropout:
            raise ValueError('tokenizer.dropout requires task = "translation" and tokenizer.kind = "bpe": set it to 0')
        if recipe.training.r_drop:
            raise ValueError('training.r_drop requires task = "translation": set it to 0')
        model = recipe.model
        if not recipe.data.next_sentence and recipe.training.stop_metric in NEXT_SENTENCE:
            raise ValueError(f'training.stop_metric = "{recipe.training.stop_metric}" needs data.next_sentence = true')
        if recipe.data.next_sentence and not (getattr(model, "begin", False) and model.num_segments >= 2):
            raise ValueError("data.next_sentence = true needs model.begin = true and model.num_segments of at least 2")
        needed, most = recipe.data.max_tokens + 2, getattr(recipe.model, "max_len", 0)
        if getattr(recipe.model, "positions", "") == "learned" and needed > most:
            raise ValueError(
                f"data.max_tokens = {needed - 2} needs {needed} positions, with the ends of a line; model.max_len = "
                f"{most}"
            )

    @classmethod
    def examine(cls, data: MaskedTextData, quiet: bool) -> Examination:
        return examine_text(data, quiet)

    @classmethod
    def defaults(cls, stats: CorpusStats, machine: Machine, given: Mapping[str, Any]) -> Choices:
        return choose_masked_language_model(stats, machine, given)

    @classmethod
    def inherited_keys(cls, given: Mapping[str, Any], trained: Mapping[str, Any]) -> Sequence[str]:
        return ["data.max_tokens"]

    @classmethod
    def prepare(
        cls, recipe: Any, folder: Path, diagnosis: Diagnosis, reuse: Mapping[str, Tokenizer] | None, quiet: bool
    ) -> prepare.Corpus:
        return prepare_text(recipe, folder, diagnosis.num_pairs, reuse, quiet)

    @classmethod
    def vocabularies(cls, sizes: Mapping[str, int]) -> Vocabularies:
        return Vocabularies(sizes["src"], sizes["src"])

    @classmethod
    def require_tokenizers(cls, tokenizers: Mapping[str, Tokenizer], data: Any) -> None:
        if MASK not in tokenizers["src"].vocabulary.tag_ids:
            raise UsageError(
                f"the other run's vocabulary has no <{MASK}>: only those of masked language models do. Train a new one."
            )

    @classmethod
    def new_model(cls, recipe: Any, vocabularies: Vocabularies) -> ReaderWithHead:
        """The reader, with an output layer that shares its token vectors."""
        reader = build_model(recipe.model, vocabularies)
        head = MaskedHead(recipe.head, reader.token_vectors(), vocabularies.pad_id, recipe.data.next_sentence)
        return ReaderWithHead(reader, head)

    # --- training on a prepared run folder --------------------------------------------------------------

    @property
    def tokenizer(self) -> Tokenizer:
        """The tokenizer of the text."""
        return self.tokenizers["src"]

    @cached_property
    def masking(self) -> Masking:
        """The rule by which pieces are masked."""
        data: MaskedTextData = self.recipe.data
        return masking_of(self.tokenizer, data.mask_share, data.whole_words)

    def loader(self, tokens_per_batch: int, seed: int, rank: int = 0, world_size: int = 1, workers: int = 0) -> Loader:
        loader = PairedLoader if self.recipe.data.next_sentence else MaskedLoader
        return loader(
            self.store, self.masking, tokens_per_batch=tokens_per_batch, seed=seed, rank=rank, world_size=world_size,
            workers=workers,
        )  # fmt: skip

    def loss(
        self, model: ReaderWithHead, batch: MaskedBatch, dropout_keys: DropoutKeys | None, carried: State | None = None
    ) -> Loss:
        head, smoothing = model.head, self.recipe.training.smoothing
        assert isinstance(head, MaskedHead)
        if not isinstance(batch, PairedBatch) or head.next_sentence is None:
            features = model.read(batch.source, dropout_keys)
            return Loss(*head.loss(features, batch.truth, batch.chosen, smoothing))
        begin, features = _begin_and_others(model, batch, dropout_keys)
        loss_sum, nll_sum = head.loss(features, batch.truth, batch.chosen, smoothing)
        of_pairs = head.next_sentence.loss(begin, batch.is_next)
        return Loss(loss_sum + batch.masked_per_row * of_pairs, nll_sum)

    def validate(self, model: ReaderWithHead, metrics: Sequence[str]) -> Validation:
        """Perplexity and accuracy at the masks of the validation text, which are always the same, and of its pairs."""
        nll_sum, num_right, num_masked = 0.0, 0, 0
        of_pairs: list[Tensor] = []
        samples: list[Sample] = []
        for batch in self._validation_batches():
            truth = batch.truth[batch.chosen]
            log_probs, of_next = _predicted(model, batch)
            nll_sum -= float(log_probs.gather(1, truth[:, None]).sum(dtype=torch.float64))
            best = log_probs.argmax(1)
            num_right, num_masked = num_right + int((best == truth).sum()), num_masked + len(truth)
            of_pairs += [of_next]
            samples = samples or [self._sample(batch, best)]
        how = f"share:{self.recipe.data.mask_share}" + ("|whole words" if self.recipe.data.whole_words else "")
        scores = score_masked(nll_sum, num_right, num_masked, how)
        if self.recipe.data.next_sentence:
            log_probs = torch.cat(of_pairs)
            right = int((log_probs > math.log(0.5)).sum())
            scores |= score_next_sentence(-float(log_probs.sum(dtype=torch.float64)), right, len(log_probs))
        return Validation(scores, samples)

    def _validation_batches(self) -> Iterator[MaskedBatch]:
        parts, is_next = self._validation_rows()
        order = sorted(range(len(parts)), key=lambda index: -len(parts[index]))
        for rows in prepare.chunks(order, ROWS_AT_ONCE):
            keys = DropoutKeys.for_step(VALIDATION_SEED, VALIDATION_EPOCH, torch.tensor(rows))
            batch = self.masking.batch([parts[row] for row in rows], rows, keys)
            if self.recipe.data.next_sentence:
                batch = paired(batch, torch.tensor([is_next[row] for row in rows]))
            yield batch.to(self.device)

    def _validation_rows(self) -> tuple[list[Ids], list[bool]]:
        """The parts of each line; or pairs of lines, half of which have the second line of another pair.

        Every other pair has it. The last of an odd number, if there are others, is read both ways.
        """
        ids = self.tokenizer.encode([row[0] for row in read_valid(self.folder)])
        most = most_tokens(self.recipe.data)
        if not self.recipe.data.next_sentence:
            return [part for line in ids for part in cut(line, most)], []
        firsts, seconds = ids[::2], ids[1::2]
        number = len(firsts)
        places = [*range(number), *[number - 1] * (number % 2 if number > 1 else 0)]
        is_next = [at % 2 == 0 for at in range(len(places))]
        of_second = [at if follows else (at + 1) % number for at, follows in zip(places, is_next, strict=True)]
        pairs = zip(places, of_second, strict=True)
        return [joined(firsts[at][:most], seconds[other][:most], EOS_ID) for at, other in pairs], is_next

    def _sample(self, batch: MaskedBatch, best: Tensor) -> Sample:
        """The last row of a batch with its predictions, which is the shortest one."""
        filled = batch.truth.clone()
        filled[batch.chosen] = best
        length = int(batch.source.mask[-1].sum()) - 1
        rows = (ids[-1, :length].tolist() for ids in (batch.source.ids, filled, batch.truth))
        return Sample(*("".join(self.tokenizer.pieces(row)) for row in rows))

    def trial_batch(self, vocabularies: Vocabularies, length: float, processes: int) -> MaskedBatch:
        tokens_per_batch = self.recipe.training.tokens_per_batch
        tokens = max(2, min(round(length), tokens_per_batch, self.recipe.data.max_tokens))
        num_rows, size = max(1, tokens_per_batch // tokens), vocabularies.src_size
        ids = torch.randint(len(SPECIAL_PIECES), size - 1, (num_rows, tokens - 1)).tolist()
        nothing = torch.zeros(size, dtype=torch.bool)
        text = size - 1 - len(SPECIAL_PIECES)
        share = self.recipe.data.mask_share
        masking = Masking(share, False, size - 1, len(SPECIAL_PIECES), text, nothing, nothing, EOS_ID, PAD_ID)
        return masking.batch(ids, range(num_rows), DropoutKeys.for_step(0, 0, torch.arange(num_rows)))

    @classmethod
    def predictor(cls, run: Any, combined: Combination = ALONE) -> MaskedLanguageModelPredictor:
        return MaskedLanguageModelPredictor(run, combined)


def masking_of(tokenizer: Tokenizer, share: float, whole_words: bool) -> Masking:
    """The rule for the pieces of a tokenizer, whose words are separated by white space."""
    vocabulary = tokenizer.vocabulary
    pieces = [data.decode("utf-8", "replace") for data in tokenizer.bytes_of(range(len(vocabulary)))]
    return Masking(
        share, whole_words, vocabulary.tag_ids[MASK], len(SPECIAL_PIECES), len(vocabulary.text_pieces),
        torch.tensor([piece[:1].isspace() for piece in pieces]),
        torch.tensor([piece[-1:].isspace() for piece in pieces]),
        vocabulary.eos_id, vocabulary.pad_id,
    )  # fmt: skip


def _begin_and_others(model: ReaderWithHead, batch: MaskedBatch, keys: DropoutKeys | None) -> tuple[Tensor, Tensor]:
    """The features of the begin [B, D], and those of the tokens [B, S, D]."""
    features = model.read_begun(batch.source, keys)
    return features[:, 0], features[:, features.shape[1] - batch.source.ids.shape[1] :]


@torch.inference_mode()
def _predicted(model: ReaderWithHead, batch: MaskedBatch) -> tuple[Tensor, Tensor]:
    """Log-probabilities [N, V] at the masks, and those of whether each pair's second text follows [B] (else zeros)."""
    head = model.head
    assert isinstance(head, MaskedHead)
    begin, features = _begin_and_others(model, batch, None)
    log_probs = head.log_probs(features[batch.chosen])
    if not isinstance(batch, PairedBatch) or head.next_sentence is None:
        return log_probs, log_probs.new_zeros(len(features))
    truth = (~batch.is_next).long()[:, None]
    return log_probs, head.next_sentence(begin).float().log_softmax(1).gather(1, truth)[:, 0]
