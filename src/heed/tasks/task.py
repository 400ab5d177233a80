"""Task contract: data, loss, validation scores and predictor of a kind of model.

A task is a folder in `heed/tasks/` and a key in `TASKS`. The training loop, the commands, the server and the report use
this contract and a task's `Predictor`, and do not depend on a particular task.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple, Protocol

import torch
from torch import Tensor

from heed.core.config import Config
from heed.core.errors import UsageError
from heed.core.run_files import RunFiles
from heed.data.batch import TrainingBatch
from heed.data.schedule import Position
from heed.data.store import TokenStore
from heed.data.validation import read_valid
from heed.metrics.metric import Score
from heed.models import build_model
from heed.nn.contract import State, Vocabularies
from heed.nn.dropout_keys import DropoutKeys
from heed.tasks.data import DataConfig
from heed.tasks.defaults import Choices, Chosen, CorpusStats, Machine, shorter_warm_up
from heed.tasks.predictor import ALONE, Combination, Predictor
from heed.tasks.prepare import Corpus, open_tokens
from heed.text.doctor.files import diagnose_text_files
from heed.text.doctor.findings import Diagnosis
from heed.text.tokenizers import Tokenizer


@dataclass(frozen=True)
class Sample:
    """A validation row with its output, as text."""

    src: str
    output: str
    reference: str


@dataclass(frozen=True)
class Validation:
    """Scores on the validation data by name, with sample outputs."""

    scores: Mapping[str, Score]
    samples: Sequence[Sample] = ()

    def value(self, name: str) -> float:
        """The value of a score."""
        return self.scores[name].value


class Loss(NamedTuple):
    """Loss of a model on a batch."""

    loss_sum: Tensor
    """The differentiable loss (nats), summed over the targets of the batch."""
    nll_sum: Tensor
    """-log p of the targets (nats), without label smoothing."""
    state: State | None = None
    """For streams: the detached state that the next segment starts from."""


class Loader(Protocol):
    """The training batches of one rank."""

    def num_batches(self, epoch: int) -> int:
        """Number of batches in an epoch, over all ranks."""
        ...

    def batches_from(self, position: Position = ...) -> Generator[tuple[Position, TrainingBatch], None, None]:
        """Yield batches from `position` on, endlessly, each with the position after it on all ranks."""
        ...


@dataclass(frozen=True)
class Examination:
    """Findings of the data doctor before training."""

    diagnosis: Diagnosis
    num_repeated: int = 0
    """Additional rows of an epoch, because parts of the data are repeated."""


def examine_text(data: Any, quiet: bool) -> Examination:
    """Examine the text of a `[data]` table with the keys `text` and `valid_text`. Raises UsageError without a text."""
    data.require("text")
    valid = data.resolve(data.valid_text) if data.valid_text else None
    return Examination(
        diagnose_text_files(data.resolve(data.text), valid, errors=data.errors, normaliser=data.normaliser, quiet=quiet)
    )


class Task(ABC):
    """A task. Class methods describe it; an instance is the task on the prepared data of a run folder.

    A `recipe` is a `heed.recipe.Recipe`, whose module imports this one.
    """

    name: ClassVar[str]
    """The key in `TASKS`."""
    title: ClassVar[str]
    """Title of a model of this task in reports, such as "Translation"."""
    row: ClassVar[str] = "line"
    """Name of a row of the data: "line", "sentence pair", ..."""
    targets: ClassVar[Literal["target tokens", "texts"]] = "target tokens"
    """What the speed of a training counts: the tokens of the target, or texts that have one target each."""
    Data: ClassVar[type[DataConfig]]
    """The `[data]` table of a recipe."""
    Head: ClassVar[type[Config] | None] = None
    """The `[head]` table of a recipe, for tasks that put a head on a reader."""
    sides: ClassVar[tuple[str, ...]] = ("tgt",)
    """Columns of text, each with a tokenizer; the last one is the target of tasks that generate text."""
    metrics: ClassVar[tuple[str, ...]]
    """Names of the validation scores, each of which can be the `training.stop_metric`."""
    headline: ClassVar[tuple[str, ...]] = ()
    """Titles of the scores in the summary of a report; empty: all."""
    tie_breaker: ClassVar[str] = ""
    """Score that decides between equal values of the stop metric; empty: the earlier weights are kept."""
    tokenizer_note: ClassVar[str] = ""
    """Note that is printed when a new tokenizer is trained; may be empty."""
    refuses_unknown: ClassVar[bool] = True
    """Whether a training stops if too much of the validation text is unknown to the vocabulary, as it does not for
    readers of words that have other features of unknown words."""
    can_read_own: ClassVar[bool] = False
    """Whether its models can read their own predictions in training (scheduled sampling, minimum risk training)."""
    can_combine: ClassVar[bool] = False
    """Whether its runs can be combined in an ensemble."""
    model_files: ClassVar[tuple[str, ...]] = ()
    """Files of a run folder that its predictor reads besides recipe, tokenizers and weights; not every run has all."""
    chosen_anew: ClassVar[tuple[str, ...]] = ()
    """Recipe keys that fine-tuning does not inherit, but chooses for the new data."""

    update: int = 0
    """Number of the current update, for losses that change with it; the training loop sets it."""
    moving_nll: float | None = None
    """Moving average of -log p (nats) of a target over the updates so far, for losses that compare with it; the
    training loop sets it. None before the first update."""

    def __init__(self, folder: Path, recipe: Any, tokenizers: Mapping[str, Tokenizer], device: torch.device) -> None:
        self.folder = folder
        self.recipe = recipe
        self.tokenizers = tokenizers
        self.device = device

    # --- settings and preparation -----------------------------------------------------------------------

    @classmethod
    @abstractmethod
    def fits(cls, model: Any) -> bool:
        """Whether models of this class can be trained for the task."""

    @classmethod
    def measures(cls, metric: str) -> bool:
        """Whether `validate` can compute a metric that is not among `metrics`."""
        return False

    @classmethod
    def check(cls, recipe: Any, is_new: bool) -> None:
        """Raise ValueError for contradictory settings, with their keys in the message.

        `is_new`: the recipe is not that of an existing run, in which older versions may have ignored a setting.
        """
        return

    @classmethod
    @abstractmethod
    def examine(cls, data: Any, quiet: bool) -> Examination:
        """Run the data doctor. Raises UsageError if no data is given."""

    @classmethod
    @abstractmethod
    def defaults(cls, stats: CorpusStats, machine: Machine, given: Mapping[str, Any]) -> Choices:
        """Choose the settings for a corpus and a machine that the user did not give."""

    @classmethod
    def shorter_texts(cls, most: int) -> Mapping[str, Any]:
        """Settings for a reader that can read `most` tokens of a text, fewer than the task would choose."""
        return {"data.max_tokens": most}

    @classmethod
    def schedule_for(cls, recipe: Any, num_updates: float, free: Collection[str]) -> Chosen:
        """Changes of the default schedule for a training of this number of updates, by recipe key, with reasons.

        `free`: the keys of `SCHEDULE` that may be changed.
        """
        return shorter_warm_up(recipe.training.warmup_steps, num_updates, free)

    @classmethod
    def similar_corpora(cls, num_rows: int, characters_per_row: float) -> Sequence[str]:
        """A heading and lines about what heed reached on measured corpora of about this size; empty if none are."""
        return ()

    @classmethod
    def expected_quality(cls, recipe: Any, stats: CorpusStats, machine: Machine) -> str:
        """The score to expect from a training from nothing, with its spread; empty if that is not known."""
        return ""

    @classmethod
    def inherited_keys(cls, given: Mapping[str, Any], trained: Mapping[str, Any]) -> Sequence[str]:
        """Recipe keys that fine-tuning inherits in addition to those of the model, the tokenizer and the normaliser.

        `trained`: the tables of the run's recipe.
        """
        return ()

    @classmethod
    @abstractmethod
    def prepare(
        cls, recipe: Any, folder: Path, diagnosis: Diagnosis, reuse: Mapping[str, Tokenizer] | None, quiet: bool
    ) -> Corpus:
        """Hold out validation rows, train tokenizers (or `reuse` another run's) and encode, into the run folder."""

    @classmethod
    def vocabularies(cls, sizes: Mapping[str, int]) -> Vocabularies:
        """The vocabulary sizes of a model, from the number of pieces of each side."""
        return Vocabularies(sizes.get("src", 0), sizes[cls.sides[-1]])

    @classmethod
    def read_vocabularies(cls, files: RunFiles, tokenizers: Mapping[str, Tokenizer]) -> Vocabularies:
        """The vocabulary sizes of the model of a run folder, from its tokenizers and, if necessary, other files."""
        return cls.vocabularies({side: len(tokenizer.vocabulary) for side, tokenizer in tokenizers.items()})

    @classmethod
    def new_model(cls, recipe: Any, vocabularies: Vocabularies) -> Any:
        """The recipe's model with random weights from torch's global generator; tasks of readers add their head."""
        return build_model(recipe.model, vocabularies)

    @classmethod
    def require_new_tokenizers(cls, recipe: Any) -> None:
        """Raise UsageError if the recipe's model cannot use the tokenizers that would be trained."""
        return

    @classmethod
    def require_tokenizers(cls, tokenizers: Mapping[str, Tokenizer], data: Any) -> None:
        """Raise UsageError if the tokenizers of another run cannot encode this data."""
        return

    @classmethod
    def require_whole(cls, folder: Path) -> None:
        """Compare prepared data outside the token store with its checksums. Raises DataError if it is damaged."""
        return

    # --- training on a prepared run folder --------------------------------------------------------------

    @cached_property
    def store(self) -> TokenStore:
        """The training data."""
        return open_tokens(self.folder)

    @abstractmethod
    def loader(self, tokens_per_batch: int, seed: int, rank: int = 0, world_size: int = 1, workers: int = 0) -> Loader:
        """The training batches of one rank, prepared by `workers` processes (0: by a thread)."""

    def text_of(self, row: int) -> str:
        """A row of the training data as text; of several columns the last one."""
        side = self.sides[-1]
        return repr(self.tokenizers[side].decode([self.store.row(side, row).tolist()])[0])

    @property
    def num_valid(self) -> int:
        """Number of validation rows."""
        return len(read_valid(self.folder))

    def sequences(self) -> Iterable[Sequence[int]]:
        """All training targets, for count-based models. Raises UsageError if the task has no count-based models."""
        raise UsageError(f"the task {self.name} has no count-based models.")

    def estimate(self, model: Any) -> None:
        """Estimate a count-based model from the training data, without the training loop."""
        model.estimate(self.sequences())

    @property
    def replayable(self) -> bool:
        """Whether the loss depends on the batch alone and not on the update, so that its kernels can be recorded."""
        return False

    @abstractmethod
    def loss(self, model: Any, batch: Any, dropout_keys: DropoutKeys | None, carried: State | None = None) -> Loss:
        """Loss of a model on a batch; `carried`: for streams, the state that its rows start from."""

    @abstractmethod
    def validate(self, model: Any, metrics: Sequence[str]) -> Validation:
        """Score a model on the validation data with these metrics, and add sample outputs."""

    def trial_batch(self, vocabularies: Vocabularies, length: float, processes: int) -> TrainingBatch | None:
        """A batch of random ids for estimating the time of a training, or None if it is not estimated.

        It has the size of training batches; texts have `length` tokens on average.
        """
        return None

    def weights_changed(self) -> None:
        """Remove files from the run folder that were derived from earlier weights."""
        return

    def refit(self, model: Any) -> None:
        """Fit anew what was fitted on the validation data to other weights than the model's, in the run folder."""
        return

    def warnings(self) -> Sequence[str]:
        """Warnings about the prepared data, before training starts."""
        return ()

    # --- prediction -------------------------------------------------------------------------------------

    @classmethod
    @abstractmethod
    def predictor(cls, run: Any, combined: Combination = ALONE) -> Predictor:
        """The predictor of a trained run of this task, alone or combined with other runs."""


def refuse_settings_of_translation(recipe: Any) -> None:
    """Raise ValueError for settings that have an effect on translators only."""
    if recipe.training.r_drop:
        raise ValueError('training.r_drop requires task = "translation": set it to 0')
    if recipe.tokenizer.dropout:
        raise ValueError('tokenizer.dropout requires task = "translation" and tokenizer.kind = "bpe": set it to 0')
