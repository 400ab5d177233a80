"""Toy texts and language models that are small enough to be trained in a test.

A toy language of lines in which a word follows from the two before it, across the ends of lines; and a recurrent model
of 16 features with dropout, which has a number of tokens next to its tensors in the state.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor, nn
from toy import write_lines

from heed.core.config import Document
from heed.execute import execute, prepare_run
from heed.nn.contract import Source, Trace, Vocabularies
from heed.nn.dropout_keys import DropoutKeys, dropout
from heed.nn.heads import LinearHead
from heed.planner import Planner, TrainOptions
from heed.run import Run
from heed.tasks.language_model.data import TextData
from heed.tasks.language_model.prepare import prepare_language_model
from heed.tasks.language_model.task import LanguageModelTask
from heed.text.tokenizers import TokenizerConfig, load_tokenizer
from heed.training.config import TrainingConfig
from heed.training.ranks import ALONE, Ranks
from heed.training.trainer import Trainer

CPU = torch.device("cpu")


TINY_TRAINING: dict[str, Any] = {
    "training.context": 8, "training.max_steps": 40,
    "training.eval_every": 20, "training.save_every": 20, "training.lr": 2e-2, "training.warmup_steps": 2,
    "training.precision": "float32", "training.average": "none", "training.log_every": 10,
}  # fmt: skip
TINY_MODELS: dict[str, dict[str, Any]] = {
    "rnn": {"model.d_model": 16, "model.hidden_size": 16, "model.dropout": 0.1, "training.num_streams": 8},
    "gpt": {
        "model.d_model": 16, "model.d_ff": 32, "model.num_heads": 2, "model.num_layers": 1, "model.max_len": 8,
        "model.dropout": 0.0, "model.attention_dropout": 0.0, "training.tokens_per_batch": 64,
    },
}  # fmt: skip


def text(num_lines: int = 120, seed: int = 0) -> list[str]:
    """Lines of one to six words."""
    dice = random.Random(seed)
    words, a, b = ["ba", "ce", "di", "fo", "gu", "ha"], 0, 1
    lines = []
    for _ in range(num_lines):
        line = []
        for _ in range(dice.randint(1, 6)):
            a, b = b, (a + b + (dice.random() < 0.2)) % len(words)
            line.append(words[b])
        lines.append(" ".join(line))
    return lines


@dataclass(frozen=True)
class TinyState:
    """The hidden state, and how many tokens there were."""

    hidden: Tensor
    length: int = 0
    dropout_keys: DropoutKeys | None = None

    def select(self, rows: Tensor) -> TinyState:
        return replace(
            self, hidden=self.hidden[rows], dropout_keys=self.dropout_keys and DropoutKeys(self.dropout_keys.keys[rows])
        )

    def join(self, other: TinyState) -> TinyState:
        dropout_keys = (
            self.dropout_keys
            and other.dropout_keys
            and DropoutKeys(torch.cat((self.dropout_keys.keys, other.dropout_keys.keys)))
        )
        return replace(self, hidden=torch.cat((self.hidden, other.hidden)), dropout_keys=dropout_keys)

    def detach(self) -> TinyState:
        return replace(self, hidden=self.hidden.detach())


class TinyRecurrent(nn.Module):
    """h_t = tanh(W e_t + U h_{t-1}), with dropout of the embeddings that goes by the position."""

    count_based = False

    def __init__(self, vocabularies: Vocabularies, d_model: int = 16) -> None:
        super().__init__()
        self.embedding = nn.Parameter(torch.randn(vocabularies.tgt_size, d_model) * 0.3)
        self.input = nn.Linear(d_model, d_model)
        self.recurrent = nn.Linear(d_model, d_model)
        self.head = LinearHead(self.embedding, vocabularies.pad_id)

    def start(
        self,
        source: Source | None,
        rows_per_source: int = 1,
        reserve: int | None = None,
        dropout_keys: DropoutKeys | None = None,
    ) -> TinyState:
        return TinyState(
            self.embedding.new_zeros(rows_per_source, self.embedding.shape[1]), 0, dropout_keys and dropout_keys.fold(3)
        )

    def advance(self, ids: Tensor, state: TinyState, trace: Trace | None = None) -> tuple[Tensor, TinyState]:
        embedded = dropout(self.embedding[ids], 0.2, state.dropout_keys, 0, state.length)
        hidden, features = state.hidden, []
        for x in self.input(embedded).unbind(1):
            hidden = torch.tanh(x + self.recurrent(hidden))
            features.append(hidden)
        return torch.stack(features, 1), TinyState(hidden, state.length + ids.shape[1], state.dropout_keys)


def tiny_model(task: LanguageModelTask, seed: int = 0) -> TinyRecurrent:
    """A fresh model for the task."""
    torch.manual_seed(seed)
    return TinyRecurrent(Vocabularies(0, len(task.tokenizer.vocabulary)))


def prepared_text(folder: Path, training: TrainingConfig | None = None, **data: Any) -> LanguageModelTask:
    """The toy text prepared as `data` says, by words."""
    source = folder / "toy.txt"
    if not source.exists():
        write_lines(source, text())
    run = folder / "prepared"
    (run / "data").mkdir(parents=True, exist_ok=True)
    config = TextData(**{"text": str(source), "hold_out": 20, "text_as": "stream", **data})
    kind = "character" if config.line_end == "newline" else "word"
    tokenizer = TokenizerConfig(kind=kind, vocab_size=50, min_frequency=1)
    if not (run / "data" / "train").exists():
        prepare_language_model(config, tokenizer, 1, run, len(text()))
    training = training or TrainingConfig()
    recipe: Any = SimpleNamespace(data=config, training=training, tokenizer=tokenizer, seed=1)
    return LanguageModelTask(run, recipe, {"tgt": load_tokenizer(run / "tokenizer.json")}, CPU)


def trainer_for(
    folder: Path, name: str = "run", ranks: Ranks = ALONE, text_as: str = "stream", threads: int = 1, **keys: Any
) -> Trainer:
    """A trainer of the tiny model on the toy text, into `folder / name`."""
    config = TrainingConfig(**{
        "context": 7, "num_streams": 4, "tokens_per_batch": 28, "lr": 1e-2, "warmup_steps": 1, "label_smoothing": 0.0,
        "max_steps": 24, "eval_every": 12, "save_every": 6, "log_every": 5, "stop_metric": "perplexity", **keys,
    })  # fmt: skip
    torch.set_num_threads(threads)
    task = prepared_text(folder, config, text_as=text_as)
    (folder / name).mkdir(exist_ok=True)
    return Trainer(config, tiny_model(task), task, folder / name, 1, CPU, 16, quiet=True, ranks=ranks)


def language_run(folder: Path, name: str, kind: str = "rnn", train: bool = True, **changes: Any) -> Run:
    """A run on the toy text by words; of a kind that is trained, after a few updates. `__` stands for a dot."""
    source = folder / "toy.txt"
    if not source.exists():
        write_lines(source, text(400))
    keys: dict[str, Any] = {
        "task": "language-model", "data.text": str(source), "data.hold_out": 40, "tokenizer.kind": "word",
        "tokenizer.vocab_size": 50, "tokenizer.min_frequency": 1, "model.kind": kind,
    }  # fmt: skip
    if kind in TINY_MODELS:
        keys |= TINY_TRAINING | TINY_MODELS[kind]
    keys |= {key.replace("__", "."): value for key, value in changes.items()}
    options = TrainOptions(folder / name, device="cpu", quiet=True)
    plan = Planner(Document(), keys, options).plan()
    if train:
        execute(plan, options)
    else:
        prepare_run(plan, options.out, quiet=True)
    return Run(folder / name)
