"""What must a task say, so that one training loop serves all of them? What to read, to minimise, to measure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from torch import Tensor

from heed.data.batch import Batch
from heed.data.loader import BatchLoader
from heed.decoding.translator import ModelTranslator
from heed.metrics.likelihood import TextLikelihood, evaluate_likelihood
from heed.metrics.score import Score
from heed.nn.contract import Autoregressive, Smoothing
from heed.nn.noise import Noise


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


class Task(Protocol):
    """One kind of work on prepared data in a run folder."""

    folder: Path
    metrics: Sequence[str]
    vocabularies: Mapping[str, str]
    """A fingerprint of the vocabulary of each side, which weights made with it carry."""

    def loader(self, tokens_per_batch: int, seed: int, rank: int = 0, world_size: int = 1) -> BatchLoader:
        """The training batches that one of several ranks takes."""
        ...

    def text_of(self, row: int) -> str:
        """A row of the training data as a person reads it."""
        ...

    def sequences(self) -> Iterable[Sequence[int]]:
        """Every training target once, for a model that counts."""
        ...

    def loss(
        self, model: Autoregressive, batch: Batch, smoothing: Smoothing, noise: Noise | None
    ) -> tuple[Tensor, Tensor, int]:
        """Sum over real tokens of the loss to minimise and of -log p (nats), and the number of tokens."""
        ...

    def validate(self, model: Autoregressive, metrics: Sequence[str]) -> Validation:
        """The named scores of a model on the validation data, and sample outputs."""
        ...


def likelihood(
    translator: ModelTranslator, targets: Sequence[str], sources: Sequence[str] | None = None
) -> list[TextLikelihood]:
    """How likely each target is, with the counts of words, characters and bytes that convert perplexities."""
    scored = translator.score(targets, sources)
    return [
        TextLikelihood.of_sentence(text, tokens.log_prob, len(tokens.ids))
        for text, tokens in zip(targets, scored, strict=True)
    ]


def perplexity_per_token(
    translator: ModelTranslator, targets: Sequence[str], sources: Sequence[str] | None = None
) -> Score:
    """Perplexity per token, ends of sentences counted."""
    return evaluate_likelihood(likelihood(translator, targets, sources), intervals=0)[0]


def chain_rule_loss(
    model: Autoregressive, batch: Batch, smoothing: Smoothing, noise: Noise | None
) -> tuple[Tensor, Tensor, int]:
    """Teacher forcing: `advance` over the whole target from a fresh start, and the head's fused loss."""
    rows = 1 if batch.source is not None else batch.tgt_in.shape[0]
    features, _ = model.advance(batch.tgt_in, model.start(batch.source, rows, noise=noise))
    return model.head.loss(features, batch.tgt_out, batch.tgt_mask, smoothing)
