"""The task contract: what data is read, what is minimised, what is measured, and what users get.

A task is a folder in `heed/tasks/` and a key in `TASKS`. The training loop, the verbs, the server and the report know
this contract and a task's `Predictor`; they never ask which task they have.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Protocol

import torch
from torch import Tensor

from heed.data.batch import TrainingBatch
from heed.data.schedule import Position
from heed.decoding.options import SearchOptions
from heed.metrics.metric import Score
from heed.nn.contract import Smoothing, State, Vocabularies
from heed.nn.dropout_keys import DropoutKeys
from heed.tasks.data import DataConfig
from heed.tasks.defaults import Choices, CorpusStats, Machine
from heed.tasks.predictor import ALONE, Combination, Predictor
from heed.tasks.prepare import Corpus, read_valid, vocabulary_digests
from heed.text.doctor import Diagnosis
from heed.text.tokenizers import Tokenizer, TokenizerConfig


@dataclass(frozen=True)
class Sample:
    """A validation row as a person reads it."""

    src: str
    output: str
    reference: str


@dataclass(frozen=True)
class Validation:
    """Scores on validation data, by name, with some outputs to read."""

    scores: Mapping[str, Score]
    samples: Sequence[Sample] = ()

    def value(self, name: str) -> float:
        """The value of one score."""
        return self.scores[name].value


class Loss(NamedTuple):
    """Loss of a model on one batch."""

    loss_sum: Tensor
    """What is minimised (nats), summed over the batch's targets; differentiable."""
    nll_sum: Tensor
    """-log p of the targets (nats), summed."""
    num_targets: int
    """What both sums are divided by for a mean: target tokens, labels, ..."""
    state: State | None = None
    """For streams: the state that the next segment starts from, detached from the graph."""


class Loader(Protocol):
    """The training batches of one rank."""

    def num_batches(self, epoch: int) -> int:
        """Number of batches of an epoch, over all ranks."""
        ...

    def batches_from(self, position: Position = ...) -> Generator[tuple[Position, TrainingBatch], None, None]:
        """Yield batches from `position` on, without end, each with the position after it on all ranks."""
        ...


class RecipeTables(Protocol):
    """The tables of a recipe, as tasks read them (`heed.recipe.Recipe`)."""

    @property
    def task(self) -> str: ...
    @property
    def seed(self) -> int: ...
    @property
    def data(self) -> Any: ...
    @property
    def tokenizer(self) -> TokenizerConfig: ...
    @property
    def model(self) -> Any: ...
    @property
    def training(self) -> Any: ...
    @property
    def decoding(self) -> SearchOptions: ...


@dataclass(frozen=True)
class Examination:
    """Findings of the data doctor before training."""

    diagnosis: Diagnosis
    num_repeated: int = 0
    """Additional rows of an epoch, because parts of the data are repeated."""


class Task(ABC):
    """One kind of work. The class describes it; an instance is the task on the prepared data of a run folder."""

    name: ClassVar[str]
    """The key in `TASKS`."""
    title: ClassVar[str]
    """What reports call a model of this task, such as "Translation"."""
    row: ClassVar[str] = "line"
    """What a row of the data is called: "line", "sentence pair", ..."""
    Data: ClassVar[type[DataConfig]]
    """The `[data]` table of a recipe."""
    sides: ClassVar[tuple[str, ...]] = ("tgt",)
    """Columns of text, each of which has a tokenizer; the last is the target where text is generated."""
    metrics: ClassVar[tuple[str, ...]]
    """Names of the validation scores, any of which `training.stop_metric` may name."""
    headline: ClassVar[tuple[str, ...]] = ()
    """Titles of the scores that the first lines of a report name; empty: all."""
    tie_breaker: ClassVar[str] = ""
    """The score that decides between equal values of the stop metric; empty: the earlier weights are kept."""
    tokenizer_note: ClassVar[str] = ""
    """What the user should know when a new tokenizer is chosen; empty: nothing."""
    chosen_anew: ClassVar[tuple[str, ...]] = ()
    """Recipe keys that fine-tuning chooses for the new data instead of inheriting them."""

    def __init__(
        self, folder: Path, recipe: RecipeTables, tokenizers: Mapping[str, Tokenizer], device: torch.device
    ) -> None:
        self.folder = folder
        self.recipe = recipe
        self.tokenizers = tokenizers
        self.device = device

    # --- from a user's words to a prepared run folder ---------------------------------------------------

    @classmethod
    @abstractmethod
    def fits(cls, model: Any) -> bool:
        """Whether models of this class can be trained for the task."""

    @classmethod
    def measures(cls, metric: str) -> bool:
        """Whether `validate` can compute a metric that is not among `metrics`."""
        return False

    @classmethod
    def check(cls, recipe: RecipeTables, is_new: bool) -> None:
        """Raise ValueError for settings that contradict each other; the message names their keys.

        `is_new`: the recipe is not yet that of a run folder, where an older heed may have ignored a setting.
        """
        return

    @classmethod
    @abstractmethod
    def examine(cls, data: Any, quiet: bool) -> Examination:
        """Run the data doctor. Raises UsageError where no data is named."""

    @classmethod
    @abstractmethod
    def defaults(cls, stats: CorpusStats, machine: Machine, given: Mapping[str, Any]) -> Choices:
        """Choose what a recipe needs for such a corpus and machine, around the keys that the user gave."""

    @classmethod
    def inherited_keys(cls, given: Mapping[str, Any]) -> Sequence[str]:
        """Recipe keys that fine-tuning takes from the other run, in addition to its model, tokenizer and normaliser."""
        return ()

    @classmethod
    @abstractmethod
    def prepare(
        cls,
        recipe: RecipeTables,
        folder: Path,
        diagnosis: Diagnosis,
        reuse: Mapping[str, Tokenizer] | None,
        quiet: bool,
    ) -> Corpus:
        """Hold out validation rows, train tokenizers (or `reuse` another run's), encode; all into the run folder."""

    @classmethod
    def vocabularies(cls, sizes: Mapping[str, int]) -> Vocabularies:
        """What a model must know of its vocabularies, from the number of pieces of each side."""
        return Vocabularies(sizes.get("src", 0), sizes[cls.sides[-1]])

    @classmethod
    def require_new_tokenizers(cls, recipe: RecipeTables) -> None:
        """Raise UsageError where the recipe's model cannot have the tokenizers that would be trained for it."""
        return

    @classmethod
    def require_tokenizers(cls, tokenizers: Mapping[str, Tokenizer], data: Any) -> None:
        """Raise UsageError where the tokenizers of another run cannot encode this data."""
        return

    # --- training on a prepared run folder --------------------------------------------------------------

    @cached_property
    def vocabulary_digests(self) -> Mapping[str, str]:
        """A fingerprint of the vocabulary of each side; weights carry those that they were trained with."""
        return vocabulary_digests(self.tokenizers)

    @abstractmethod
    def loader(self, tokens_per_batch: int, seed: int, rank: int = 0, world_size: int = 1, workers: int = 0) -> Loader:
        """Return the training batches of one rank, prepared by `workers` processes (0: by a thread)."""

    @abstractmethod
    def text_of(self, row: int) -> str:
        """A row of the training data as a person reads it."""

    @property
    def num_valid(self) -> int:
        """Number of validation rows."""
        return len(read_valid(self.folder))

    def sequences(self) -> Iterable[Sequence[int]]:
        """Yield every training target once, for count-based models."""
        raise NotImplementedError

    @abstractmethod
    def loss(
        self,
        model: Any,
        batch: Any,
        smoothing: Smoothing,
        dropout_keys: DropoutKeys | None,
        before: State | None = None,
    ) -> Loss:
        """Loss of a model on a batch, whose rows continue from the state `before` if there is one."""

    @abstractmethod
    def validate(self, model: Any, metrics: Sequence[str]) -> Validation:
        """Score a model on the validation data by the named metrics, and show sample outputs."""

    def trial_batch(self, vocabularies: Vocabularies, length: float, processes: int) -> TrainingBatch | None:
        """A batch of random ids as large as those of training, whose texts have `length` tokens on average.

        Timing it predicts how long training takes. None: no prediction is made.
        """
        return None

    def weights_changed(self) -> None:
        """Remove from the run folder what was derived from earlier weights."""
        return

    def warnings(self) -> Sequence[str]:
        """What the user should know of the prepared data before training starts."""
        return ()

    # --- use --------------------------------------------------------------------------------------------

    @classmethod
    @abstractmethod
    def predictor(cls, run: Any, combined: Combination = ALONE) -> Predictor:
        """Return what users do with a trained run of this task, alone or combined with other runs."""
