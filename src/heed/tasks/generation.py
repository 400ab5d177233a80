"""What tasks of generators share: batches of text, teacher forcing, and the likelihood of given texts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray

from heed.core.errors import UsageError
from heed.data.batch import Batch, Ids, collate
from heed.decoding.scoring import TokenScores
from heed.decoding.translator import ModelTranslator
from heed.metrics import score_likelihoods
from heed.metrics.likelihood import TextLikelihood
from heed.metrics.metric import Score
from heed.models.ensemble import Ensemble, ShallowFusion
from heed.nn.contract import Autoregressive, Smoothing, State, Vocabularies
from heed.nn.dropout_keys import DropoutKeys
from heed.nn.state_io import renewed
from heed.tasks.predictor import Combination
from heed.tasks.task import Loss
from heed.text.vocabulary import Vocabulary


def text_batch(ids: Mapping[str, Sequence[Ids]], rows: Sequence[int] | NDArray[np.int64]) -> Batch:
    """A batch of the columns `src` and `tgt`, or of `tgt` alone."""
    return collate(ids.get("src"), ids["tgt"], rows, Vocabulary.bos_id, Vocabulary.eos_id, Vocabulary.pad_id)


def random_batch(num_rows: int, length: int, vocabularies: Vocabularies) -> Batch:
    """A batch of random ids, with sources where the model has a vocabulary of them."""
    ids = torch.randint(4, vocabularies.tgt_size, (num_rows, max(1, length - 1))).tolist()
    return text_batch({"src": ids, "tgt": ids} if vocabularies.src_size else {"tgt": ids}, range(num_rows))


def chain_rule_loss(
    model: Autoregressive,
    batch: Batch,
    smoothing: Smoothing,
    dropout_keys: DropoutKeys | None,
    before: State | None = None,
) -> Loss:
    """Teacher forcing: `advance` over the whole target, and the head's fused loss.

    Rows start fresh, or continue from the state `before` with the dropout keys of this update (truncated
    back-propagation).
    """
    rows = 1 if batch.source is not None else batch.tgt_in.shape[0]
    state = model.start(batch.source, rows, dropout_keys=dropout_keys)
    if before is not None:
        state = renewed(before, state)
    features, after = model.advance(batch.tgt_in, state)
    sums = model.head.loss(features, batch.tgt_out, batch.tgt_mask, smoothing)
    return Loss(*sums, after.detach() if batch.segment is not None else None)


def likelihood(
    translator: ModelTranslator, targets: Sequence[str], sources: Sequence[str] | None = None
) -> list[TextLikelihood]:
    """Log-probability of each target, with the counts of words, characters and bytes that convert perplexities."""
    return likelihoods_of(targets, translator.score(targets, sources))


def likelihoods_of(lines: Sequence[str], scored: Sequence[TokenScores]) -> list[TextLikelihood]:
    """The same, from the scores of each line's tokens."""
    return [
        TextLikelihood.of_sentence(line, tokens.log_prob, len(tokens.ids), tokens.ids.count(Vocabulary.unk_id))
        for line, tokens in zip(lines, scored, strict=True)
    ]


def perplexity_per_token(
    translator: ModelTranslator, targets: Sequence[str], sources: Sequence[str] | None = None
) -> Score:
    """Perplexity per token; ends of sentences count."""
    return score_likelihoods(likelihood(translator, targets, sources), intervals=0)["perplexity"]


def combined_model(run: Any, combined: Combination) -> tuple[Autoregressive, Autoregressive | None]:
    """The model of a run and its ensemble, fused with a language model if there is one; and that language model."""
    models = [cast(Autoregressive, each.model) for each in (run, *combined.others)]
    model = cast(Autoregressive, Ensemble(models)) if combined.others else models[0]
    if combined.lm is None:
        return model, None
    language_model = cast(Autoregressive, combined.lm.model)
    return cast(Autoregressive, ShallowFusion(model, language_model, combined.lm_weight)), language_model


def require_vocabularies(run: Any, other: Any) -> None:
    """Raise UsageError where another run's vocabulary differs: its ids would mean something else."""
    for side in other.sides:
        if other.tokenizers[side].vocabulary.sha256 != run.tokenizers[side].vocabulary.sha256:
            raise UsageError(
                f"{other.folder} has another vocabulary than {run.folder} ({side} side), and only runs with the "
                "same one work together: train one with --tokenizer-of the other."
            )
