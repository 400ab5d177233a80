"""Shared parts of the tasks whose models generate text: batches, losses, likelihoods, and combinations of models."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray

from heed.core.errors import UsageError
from heed.data.batch import Batch, Ids, collate
from heed.data.loader import BatchLoader
from heed.data.subword_dropout import SubwordDropout
from heed.decoding.scoring import TokenScores
from heed.inference.translator import ModelTranslator
from heed.metrics import score_likelihoods
from heed.metrics.likelihood import TextLikelihood
from heed.metrics.metric import Score
from heed.models.ensemble import Ensemble, ShallowFusion
from heed.nn.contract import Autoregressive, PairedHead, Smoothing, State, Vocabularies
from heed.nn.dropout_keys import DropoutKeys
from heed.nn.state_io import renewed
from heed.tasks.predictor import Combination
from heed.tasks.scheduled_sampling import read_partly_own, truth_probability
from heed.tasks.task import Loss, Task
from heed.text.vocabulary import Vocabulary

SECOND_PASS = 1 << 20
"""Dropout site that derives the keys of the second pass of R-Drop; no layer uses it."""


class GenerationTask(Task):
    """A task that learns to predict each token of the side `tgt`, from a source or without one."""

    tie_breaker = "perplexity"
    can_combine = True

    def row_loader(
        self, tokens_per_batch: int, seed: int, rank: int, world_size: int, workers: int,
        subword_dropout: SubwordDropout | None = None,
    ) -> BatchLoader[Batch]:  # fmt: skip
        """Batches of independent rows."""
        return BatchLoader(
            self.store, text_batch, tokens_per_batch=tokens_per_batch, seed=seed, subword_dropout=subword_dropout,
            rank=rank, world_size=world_size, workers=workers,
        )  # fmt: skip

    def sequences(self) -> Iterable[Sequence[int]]:
        store = self.store
        return (store.row("tgt", index).tolist() for index in range(len(store)))

    @property
    def replayable(self) -> bool:
        training = self.recipe.training
        return bool(training.truth_probability == 1 and not training.r_drop and training.risk == "none")

    def loss(
        self, model: Autoregressive, batch: Batch, dropout_keys: DropoutKeys | None, carried: State | None = None
    ) -> Loss:
        training = self.recipe.training
        if training.r_drop and dropout_keys is not None:
            return r_drop_loss(model, batch, training.smoothing, dropout_keys, training.r_drop)
        truth = truth_probability(training, self.update)
        return chain_rule_loss(model, batch, training.smoothing, dropout_keys, carried, truth)

    def trial_batch(self, vocabularies: Vocabularies, length: float, processes: int) -> Batch | None:
        tokens_per_batch = self.recipe.training.tokens_per_batch
        tokens = max(2, min(round(length), tokens_per_batch))
        return random_batch(max(1, tokens_per_batch // tokens), tokens, vocabularies)


def text_batch(ids: Mapping[str, Sequence[Ids]], rows: Sequence[int] | NDArray[np.int64]) -> Batch:
    """A batch of the columns `src` and `tgt`, or of `tgt` alone."""
    return collate(ids.get("src"), ids["tgt"], rows, Vocabulary.bos_id, Vocabulary.eos_id, Vocabulary.pad_id)


def random_batch(num_rows: int, length: int, vocabularies: Vocabularies) -> Batch:
    """A batch of random ids, with sources if there is a source vocabulary."""
    ids = torch.randint(4, vocabularies.tgt_size, (num_rows, max(1, length - 1))).tolist()
    return text_batch({"src": ids, "tgt": ids} if vocabularies.src_size else {"tgt": ids}, range(num_rows))


def chain_rule_loss(
    model: Autoregressive,
    batch: Batch,
    smoothing: Smoothing,
    dropout_keys: DropoutKeys | None,
    carried: State | None = None,
    truth: float = 1.0,
) -> Loss:
    """Cross-entropy of each target token under teacher forcing: one `advance` and the head's fused loss.

    Rows start from the state `carried`, if given, with the dropout keys of this update (truncated back-propagation).
    With `truth` below 1, positions read their true predecessor with this probability (scheduled sampling).
    """
    rows = 1 if batch.source is not None else batch.tgt_in.shape[0]
    state = model.start(batch.source, rows, dropout_keys=dropout_keys)
    if carried is not None:
        state = renewed(carried, state)
    read = batch.tgt_in
    if truth < 1 and dropout_keys is not None:
        read = read_partly_own(model, read, state, dropout_keys, truth)
    features, after = model.advance(read, state)
    sums = model.head.loss(features, batch.tgt_out, batch.tgt_mask, smoothing)
    return Loss(*sums, after.detach() if batch.segment is not None else None)


def r_drop_loss(
    model: Autoregressive, batch: Batch, smoothing: Smoothing, dropout_keys: DropoutKeys, alpha: float
) -> Loss:
    """R-Drop (Liang et al. 2021): the mean loss of two passes with different dropout, and their divergence.

    Both passes are one batch with twice the rows (see `LinearHead.paired_loss`). The dropout keys of the second pass
    are derived from those of the first, so the loss does not depend on resuming, the parts of a batch or the rank.
    """
    both = dropout_keys.join(dropout_keys.fold(SECOND_PASS))
    source = batch.source and batch.source.repeat(2)
    rows = 1 if source is not None else len(both.keys)
    features, _ = model.advance(batch.tgt_in.repeat(2, 1), model.start(source, rows, dropout_keys=both))
    head = cast(PairedHead, model.head)
    return Loss(*head.paired_loss(features, batch.tgt_out, batch.tgt_mask, smoothing, alpha))


def likelihood(
    translator: ModelTranslator, targets: Sequence[str], sources: Sequence[str] | None = None
) -> list[TextLikelihood]:
    """Log-probability of each target, with the counts of words, characters and bytes that convert perplexities."""
    return likelihoods_of(targets, translator.score(targets, sources))


def likelihoods_of(lines: Sequence[str], scored: Sequence[TokenScores]) -> list[TextLikelihood]:
    """Log-probability and counts of each line, from the scores of its tokens."""
    return [
        TextLikelihood.of_sentence(line, tokens.log_prob, len(tokens.ids), tokens.ids.count(Vocabulary.unk_id))
        for line, tokens in zip(lines, scored, strict=True)
    ]


def perplexity_per_token(
    translator: ModelTranslator, targets: Sequence[str], sources: Sequence[str] | None = None
) -> Score:
    """Perplexity per token, with the ends of sentences."""
    return score_likelihoods(likelihood(translator, targets, sources), intervals=0)["perplexity"]


def combined_model(run: Any, combined: Combination) -> tuple[Autoregressive, Autoregressive | None]:
    """The model of a run, as an ensemble and with shallow fusion as configured; and the fused language model."""
    models = [cast(Autoregressive, each.model) for each in (run, *combined.others)]
    model = cast(Autoregressive, Ensemble(models)) if combined.others else models[0]
    if combined.lm is None:
        return model, None
    language_model = cast(Autoregressive, combined.lm.model)
    return cast(Autoregressive, ShallowFusion(model, language_model, combined.lm_weight)), language_model


def require_vocabularies(run: Any, other: Any) -> None:
    """Raise UsageError unless two runs have the same vocabulary on each side of the second one."""
    for side in other.sides:
        if other.tokenizers[side].vocabulary.sha256 != run.tokenizers[side].vocabulary.sha256:
            raise UsageError(
                f"{other.folder} and {run.folder} have different vocabularies ({side} side), and only runs with the "
                "same vocabulary can be combined: train one with --tokenizer-of the other."
            )
