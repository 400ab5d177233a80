"""What must a task say, so that one training loop serves all of them? What to read, to minimise, to measure."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, Protocol

from torch import Tensor

from heed.data.batch import Batch
from heed.data.schedule import Position
from heed.decoding.translator import ModelTranslator, TokenScores
from heed.metrics.likelihood import TextLikelihood
from heed.metrics.score import Score
from heed.metrics.scoring import score_likelihoods
from heed.nn.contract import Autoregressive, Smoothing, State
from heed.nn.dropout_keys import DropoutKeys
from heed.nn.state_io import renewed
from heed.text.vocabulary import Vocabulary


@dataclass(frozen=True)
class Sample:
    """A line of validation as a person reads it."""

    src: str
    output: str
    reference: str


@dataclass(frozen=True)
class Validation:
    """Scores on validation data, by name, with some outputs to read."""

    scores: Mapping[str, Score]
    samples: Sequence[Sample] = ()

    def value(self, name: str) -> float:
        """One score's value."""
        return self.scores[name].value


@dataclass(frozen=True)
class Corpus:
    """What a run was trained on: kept in the run folder and printed in the report."""

    num_rows: int
    num_valid: int
    dropped: Mapping[str, int]
    files: Mapping[str, object]
    valid_files: Mapping[str, object] = field(default_factory=dict)
    """Empty where validation data was held out."""
    num_repeated: int = 0
    """How many of the rows are repetitions."""
    init: str = ""
    """The name of the run whose weights training began with; empty for fresh ones."""
    tokenizer_of: str = ""
    """The name of the run whose tokenizers were taken; empty for new ones."""
    num_by_part: Sequence[int] = ()
    """Of each part of a translator's data, how many pairs are trained on, each counted once."""


class Loss(NamedTuple):
    """What a model makes of a batch."""

    loss_sum: Tensor
    """What is minimised (nats), summed over real tokens; differentiable."""
    nll_sum: Tensor
    """-log p (nats), summed over real tokens."""
    num_tokens: int
    state: State | None = None
    """Of streams: what the next segment goes on with, cut off from the graph."""


class Loader(Protocol):
    """The training batches of one rank."""

    def num_batches(self, epoch: int) -> int:
        """Batches of an epoch, over all ranks."""
        ...

    def batches_from(self, position: Position = ...) -> Generator[tuple[Position, Batch], None, None]:
        """Batches from `position` on, without end, each with the position after it on all ranks."""
        ...


class Task(Protocol):
    """One kind of work on prepared data in a run folder."""

    folder: Path
    metrics: Sequence[str]
    vocabularies: Mapping[str, str]
    """A fingerprint of the vocabulary of each side, which weights made with it carry."""

    def loader(self, tokens_per_batch: int, seed: int, rank: int = 0, world_size: int = 1, workers: int = 0) -> Loader:
        """The training batches that one of several ranks takes, prepared by so many processes (0: by a thread)."""
        ...

    def text_of(self, row: int) -> str:
        """A row of the training data as a person reads it."""
        ...

    def sequences(self) -> Iterable[Sequence[int]]:
        """Every training target once, for a model that counts."""
        ...

    def loss(
        self, model: Autoregressive, batch: Batch, smoothing: Smoothing, dropout_keys: DropoutKeys | None,
        before: State | None = None,
    ) -> Loss:  # fmt: skip
        """What a model makes of a batch, whose rows go on from the state `before` where there is one."""
        ...

    def validate(self, model: Autoregressive, metrics: Sequence[str]) -> Validation:
        """The named scores of a model on the validation data, and sample outputs."""
        ...


def likelihood(
    translator: ModelTranslator, targets: Sequence[str], sources: Sequence[str] | None = None
) -> list[TextLikelihood]:
    """How likely each target is, with the counts of words, characters and bytes that convert perplexities."""
    return likelihoods_of(targets, translator.score(targets, sources))


def likelihoods_of(lines: Sequence[str], scored: Sequence[TokenScores]) -> list[TextLikelihood]:
    """The same from the scores of each line's tokens."""
    return [
        TextLikelihood.of_sentence(line, tokens.log_prob, len(tokens.ids), tokens.ids.count(Vocabulary.unk_id))
        for line, tokens in zip(lines, scored, strict=True)
    ]


def perplexity_per_token(
    translator: ModelTranslator, targets: Sequence[str], sources: Sequence[str] | None = None
) -> Score:
    """Perplexity per token, ends of sentences counted."""
    return score_likelihoods(likelihood(translator, targets, sources), intervals=0)["perplexity"]


def chain_rule_loss(
    model: Autoregressive,
    batch: Batch,
    smoothing: Smoothing,
    dropout_keys: DropoutKeys | None,
    before: State | None = None,
) -> Loss:
    """Teacher forcing: `advance` over the whole target, and the head's fused loss.

    Rows begin from a fresh start, or go on `before` with the dropout keys of this update (truncated back-propagation).
    """
    rows = 1 if batch.source is not None else batch.tgt_in.shape[0]
    state = model.start(batch.source, rows, dropout_keys=dropout_keys)
    if before is not None:
        state = renewed(before, state)
    features, after = model.advance(batch.tgt_in, state)
    found = model.head.loss(features, batch.tgt_out, batch.tgt_mask, smoothing)
    return Loss(*found, after.detach() if batch.segment is not None else None)
